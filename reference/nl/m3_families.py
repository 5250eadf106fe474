"""Inputs on which the variants of M3 part."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.nl.newton_schulz_families import ill_conditioned, spread
from trueup.reference.symbols import Family, Values


def _shape(sizes: Mapping[str, int]) -> Mapping[str, int]:
    return {"r": sizes["d_out"], "c": sizes["d_in"]}


def _aligned(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Put the momentum and what is added to it into one well-conditioned direction."""
    M = np.asarray(spread(rng, _shape(sizes), {})["G"])
    return values | {"M1": M, "g": 2.0 * M} if "M1" in values else values | {"M2": M, "S": 2.0 * M}


def _ill_conditioned(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    M = np.asarray(ill_conditioned(rng, _shape(sizes), {})["G"])
    return values | {"M1": M, "g": 0.5 * M} if "M1" in values else values | {"M2": M, "S": 0.5 * M}


def _from_rest(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    state = ("M1", "V", "S", "O2", "M2") if "M1" in values else ("M2",)
    return values | {name: np.zeros_like(values[name]) for name in state if name in values}


def _small_weights(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Let the step be larger than the weights, so that an error of it shows in their sum."""
    return values | {"theta": 1e-3 * np.asarray(values["theta"])}


def _no_squares(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Leave epsilon alone under the fraction: where it stands shows."""
    return values | {
        "V": np.zeros_like(values["V"]),
        "g": 1e-3 * np.asarray(values["g"]),
    }


def _ties(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    changed: Values = {}
    for name, value in values.items():
        if np.ndim(value):
            steps = np.rint(2.0 * np.asarray(value)) / 2.0
            nudge = 0.0 if name == "V" else 1e-4 * rng.integers(0, 2, np.shape(value))
            changed[name] = (np.maximum(steps, 0.5) if name == "V" else steps) + nudge
    return values | changed


def _constant(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {
        name: np.full(np.shape(value), 0.7) for name, value in values.items() if np.ndim(value)
    }


SLOW_FAMILIES = (
    Family("aligned", "singular values from 0.3 to 1 in momentum and buffer alike", _aligned),
    Family("ill_conditioned", "singular values down to 1e-4: the steps show", _ill_conditioned),
    Family("from_rest", "first slow step: sum and average differ by a factor only", _from_rest),
)
FAMILIES = (
    *SLOW_FAMILIES,
    Family("small_weights", "weights below the step: an error of the step shows", _small_weights),
    Family("ties", "exact ties beside gaps of 1e-4, on a grid of squares", _ties),
    Family(
        "constant",
        "all elements equal, the squares as well: systematic rounding",
        _constant,
        right_kernel_only=True,
    ),
    Family("no_squares", "sqrt(V) below epsilon: where it is added shows", _no_squares),
)
