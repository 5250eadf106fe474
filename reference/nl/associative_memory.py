"""Eq. 1: an associative memory is what best maps keys to values; its objectives and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.associative_memory"
READING_FORMULAS = {
    "l2": "1/2 |M K - V|^2, gradient (M K - V) K^T",
    "dot": "-sum_n <M k_n, v_n>, gradient -V K^T; no minimiser unless V K^T = 0",
    "l2_full": "|M K - V|^2, gradient 2 (M K - V) K^T",
}
WRONG_FORMULAS = {
    "mean": "l2 divided by the number of keys",
    "full_gradient": "l2 with the gradient of l2_full",
    "dot_sign": "+sum_n <M k_n, v_n>, gradient +V K^T: the sign of the text",
    "no_target": "1/2 |M K|^2: the values are missing",
    "keys_on_the_left": "gradient K (M K - V)^T, square only",
}
READINGS, WRONG = tuple(READING_FORMULAS), tuple(WRONG_FORMULAS)


def _recalled(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"V": np.asarray(values["M"]) @ np.asarray(values["K"])}


def _one_key(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    K = np.zeros_like(values["K"])
    K[:, :1] = np.asarray(values["K"])[:, :1]
    return values | {"K": K}


FAMILIES = (
    Family("one_key", "all keys but one are zero: the gradient has rank 1", _one_key),
    Family(
        "recalled",
        "V = M K: the memory recalls every value, so every l2 gradient is 0",
        _recalled,
        right_kernel_only=True,
    ),
)


def associative_memory_by_pairs(
    M: F64, K: F64, V: F64, *, reading: str = "l2"
) -> tuple[Scalar, F64]:
    """Eq. 1 summed over the pairs, one outer product each; same shapes as `associative_memory`."""
    objective, gradient = 0.0, 0.0 * M
    for n in range(K.shape[1]):
        k, v = K[:, n], V[:, n]
        if reading == "dot":
            objective = objective - np.sum((M @ k) * v)
            gradient = gradient - np.outer(v, k)
        elif reading in ("l2", "l2_full"):
            factor = 1.0 if reading == "l2" else 2.0
            error = M @ k - v
            objective = objective + 0.5 * factor * np.sum(error * error)
            gradient = gradient + factor * np.outer(error, k)
        else:
            raise UnknownReading(ID, reading, READINGS)
    return objective, gradient


def _pairs(reading: str) -> Any:
    def by_pairs(M: F64, K: F64, V: F64) -> tuple[Scalar, F64]:
        return associative_memory_by_pairs(M, K, V, reading=reading)

    return by_pairs


def least_norm_memory(K: F64, V: F64) -> F64:
    """Give the minimiser of ``l2`` of least norm, V K^+ (d_v, d_k); ``dot`` has none.

    Shapes: K (d_k, N), V (d_v, N). Keys are recalled exactly where V K^+ K = V.
    """
    return V @ np.linalg.pinv(K)


@equation(
    ID,
    title="Associative memory",
    source="Nested Learning, NeurIPS 2025",
    numbers=("1",),
    grade="as printed",
    formula="M* = arg min_M L(M(K); V)",
    axes=("d_v", "d_k", "N"),
    inputs=(
        Symbol("M", ("d_v", "d_k"), Domain("real", -2.0, 2.0), "memory"),
        Symbol("K", ("d_k", "N"), Domain("real", -2.0, 2.0), "keys, one per column"),
        Symbol("V", ("d_v", "N"), Domain("real", -2.0, 2.0), "values, one per column"),
    ),
    outputs=(
        Symbol("objective", (), Domain("real"), "what the memory minimises"),
        Symbol("gradient", ("d_v", "d_k"), Domain("real"), "its gradient in M"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={reading: (_pairs(reading),) for reading in READINGS},
    families=FAMILIES,
    notes="The print leaves the objective open; `dot` is that of linear attention (Eq. 15), `l2` "
    "that of Eq. 27. `dot` is linear in M: only its gradient is ever used.",
    errata=errata("E1"),
    coincide=(Coincidence(("l2", "l2_full"), "M K = V", "recalled"),),
)
def associative_memory(M: F64, K: F64, V: F64, *, reading: str = "l2") -> tuple[Scalar, F64]:
    """Give the objective of an associative memory and its gradient in the memory.

    Equation: Nested Learning (NeurIPS 2025), Eq. 1
        M* = arg min_M L(M(K); V)
    Shapes: M (d_v, d_k); K (d_k, N) and V (d_v, N), one pair per column. N = 0 gives 0 and 0.
    Returns (objective, gradient), the gradient (d_v, d_k).
    Readings, the objectives that the paper uses later:
        l2       1/2 |M K - V|^2         gradient (M K - V) K^T
        dot      -sum_n <M k_n, v_n>     gradient -V K^T
        l2_full  |M K - V|^2             gradient 2 (M K - V) K^T
    """
    if reading in ("dot", "dot_sign"):
        sign = -1.0 if reading == "dot" else 1.0
        return sign * np.sum((M @ K) * V), sign * (V @ K.T)
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    error = M @ K if reading == "no_target" else M @ K - V
    objective, gradient = 0.5 * np.sum(error * error), error @ K.T
    if reading == "l2_full":
        return 2.0 * objective, 2.0 * gradient
    if reading == "full_gradient":
        return objective, 2.0 * gradient
    if reading == "mean":
        count = max(K.shape[1], 1)
        return objective / count, gradient / count
    if reading == "keys_on_the_left":
        if M.shape[0] != M.shape[1]:
            raise NotApplicable(ID, reading, f"d_v = d_k, got {M.shape[0]} and {M.shape[1]}")
        return objective, gradient.T
    return objective, gradient
