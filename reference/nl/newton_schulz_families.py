"""Spectra on which the variants of Newton-Schulz part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.symbols import F64, Family, Values


def _with_spectrum(rng: np.random.Generator, sizes: Mapping[str, int], spectrum: F64) -> F64:
    """Give a matrix with random singular vectors and the given singular values."""
    count = spectrum.size
    left = np.linalg.qr(rng.standard_normal((sizes["r"], count)))[0]
    right = np.linalg.qr(rng.standard_normal((sizes["c"], count)))[0]
    matrix: F64 = (left * spectrum) @ right.T
    return matrix


def _rank(sizes: Mapping[str, int]) -> int:
    return min(sizes["r"], sizes["c"])


def _near_eps(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    G = np.asarray(values["G"])
    norm = float(np.linalg.norm(G))
    eps = float(values.get("eps", 1e-7))
    return values | {"G": G * (eps * rng.uniform(0.3, 0.9) / norm)} if norm > 0.0 else values


def _orthogonal(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"G": _with_spectrum(rng, sizes, np.ones(_rank(sizes)))}


def ill_conditioned(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Put singular values from 1 down to 1e-4 into G (r, c)."""
    return values | {"G": _with_spectrum(rng, sizes, np.logspace(0.0, -4.0, _rank(sizes)))}


def _near_eps_ill_conditioned(
    rng: np.random.Generator, sizes: Mapping[str, int], values: Values
) -> Values:
    return _near_eps(rng, sizes, ill_conditioned(rng, sizes, values))


def spread(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Put singular values from 1 down to 0.3 into G (r, c)."""
    return values | {"G": _with_spectrum(rng, sizes, np.linspace(1.0, 0.3, _rank(sizes)))}


def _rank_one(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"G": _with_spectrum(rng, sizes, np.ones(1))}


def _scaled(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"G": np.asarray(values["G"]) * 10.0 ** rng.uniform(2.0, 4.0)}


def _zero(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"G": np.zeros_like(values["G"])}


FAMILIES = (
    Family("near_eps", "norm just below eps: shows how it is guarded, clamp or sum", _near_eps),
    Family(
        "near_eps_ill_conditioned",
        "the same where many steps have not converged yet, so that their guard still shows",
        _near_eps_ill_conditioned,
    ),
    Family("orthogonal", "all singular values equal: they move together", _orthogonal),
    Family("spread", "singular values from 0.3 to 1: all of them well inside the band", spread),
    Family("ill_conditioned", "down to 1e-4: small ones grow by a power of a", ill_conditioned),
    Family("rank_one", "one singular value, as from a single sample; exact zeros stay", _rank_one),
    Family("scaled", "norm of hundreds and more: the result does not depend on it", _scaled),
    Family("zero", "NS(0) = 0, and never NaN", _zero, right_kernel_only=True),
)
