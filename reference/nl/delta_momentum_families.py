"""Inputs on which the readings of delta-rule momentum part, and on which they must coincide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.errata import Coincidence
from trueup.reference.symbols import F64, Family, Values


def _gradient_norm(values: Values) -> float:
    """Give an upper estimate of sigma_max(g) that is right for rank 1 (the Frobenius norm)."""
    if "g" in values:
        return float(np.linalg.norm(np.asarray(values["g"])))
    return float(np.linalg.norm(np.asarray(values["u"])) * np.linalg.norm(np.asarray(values["x"])))


def _scaled(values: Values, factor: float) -> Values:
    if "g" in values:
        return values | {"g": factor * np.asarray(values["g"])}
    root = np.sqrt(factor)
    return values | {
        "u": root * np.asarray(values["u"]),
        "x": root * np.asarray(values["x"]),
    }


def _balanced(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    norm, eta = _gradient_norm(values), float(values["eta"])
    target = np.sqrt(rng.uniform(0.3, 0.9) / eta)
    return _scaled(values, float(target / norm)) if norm > 0.0 else values


def _low_rank(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Put a part of m outside the row space of g: it must decay by alpha and nothing else."""
    rows, columns = sizes["d_out"], sizes["d_in"]
    rank = max(1, min(rows, columns) // 2)
    left, right = rng.standard_normal((rows, rank)), rng.standard_normal((rank, columns))
    return _balanced(rng, sizes, values | {"g": left @ right})


def _no_gradient(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {name: np.zeros_like(values[name]) for name in ("g", "u") if name in values}


def _outer(values: Values) -> F64:
    if "g" in values:
        return np.asarray(values["g"])
    return np.outer(np.asarray(values["u"]), np.asarray(values["x"]))


def _repeated_sample(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    if "g" in values:
        g = np.outer(rng.standard_normal(sizes["d_out"]), rng.standard_normal(sizes["d_in"]))
        values = values | {"g": g / max(1.0, float(np.linalg.norm(g)))}
    return values | {"m": -float(values["eta"]) * _outer(values)}


def _from_rest(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"m": np.zeros_like(values["m"])}


FULL = (
    Family(
        "balanced",
        "0.3 <= eta |g|^2 <= 0.9: the decay by alpha and the delta term are of one size",
        _balanced,
    ),
    Family(
        "low_rank",
        "m has a part with m z for g z = 0, which only alpha may touch",
        _low_rank,
    ),
    Family(
        "no_gradient",
        "g = 0: m must decay by alpha exactly",
        _no_gradient,
        right_kernel_only=True,
    ),
    Family(
        "repeated_sample",
        "m proportional to g of rank 1, as after one sample from rest: readings coincide",
        _repeated_sample,
        right_kernel_only=True,
    ),
    Family(
        "from_rest",
        "first step, m = 0: every reading with the same P-term coincides",
        _from_rest,
        right_kernel_only=True,
    ),
)

# A single sample has one direction only: there is no lower rank to give it.
RANK1 = tuple(family for family in FULL if family.name != "low_rank")

_SAME_P = ("derived", "literal_right", "literal_left", "left_gg", "scalar", "flat_outer")
COINCIDE = (
    Coincidence(_SAME_P, "m = 0, as on the first step from rest", "from_rest"),
    Coincidence(
        (*_SAME_P, "printed_objective_half", "printed_objective_full"), "g = 0", "no_gradient"
    ),
    Coincidence(
        ("derived", "scalar", "left_gg"),
        "m proportional to a g of rank 1, as after one sample twice from rest",
        "repeated_sample",
    ),
    Coincidence(
        ("literal_right", "flat_outer"),
        "m proportional to a g of rank 1, as after one sample twice from rest",
        "repeated_sample",
    ),
    Coincidence(("derived", "literal_right"), "eta = 1"),
    Coincidence(("derived", "scalar"), "d_in = 1"),
    Coincidence(("literal_right", "flat_outer"), "d_out = 1"),
    Coincidence(("scalar", "left_gg"), "d_out = 1"),
)
