"""Eq. 15-16: a write of linear attention is one proximal step of an associative memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.hebbian_step"
READING_FORMULAS = {
    "derived": "M + v k^T, which is Eq. 16 and the write of Eq. 13",
    "literal": "M - v k^T / 2, the minimum of Eq. 15 as printed",
}
WRONG_FORMULAS = {
    "sign_only": "M + v k^T / 2: the sign of Eq. 15 corrected, the penalty not",
    "half_only": "M - v k^T: the penalty corrected, the sign not; also the text's own gradient",
    "outer_swapped": "M + k v^T, square only",
    "key_normalized": "M + v k^T / |k|^2",
    "delta_rule": "M + (v - M k) k^T: the l2 objective",
    "memory_dropped": "v k^T",
}
READINGS, WRONG = tuple(READING_FORMULAS), tuple(WRONG_FORMULAS)


def _no_key(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"k": np.zeros_like(values["k"])}


def _no_value(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"v": np.zeros_like(values["v"])}


def _empty(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"M": np.zeros_like(values["M"])}


FAMILIES = (
    Family("no_value", "v = 0: nothing is written", _no_value),
    Family("no_key", "k = 0: nothing is written", _no_key, right_kernel_only=True),
    Family(
        "empty",
        "M = 0: rules that write what the memory lacks write all of it",
        _empty,
        right_kernel_only=True,
    ),
)


def hebbian_step_scaled_key(M: F64, k: F64, v: F64) -> F64:
    """Eq. 15 as printed, its factor taken into the key: M + v (-k / 2)^T; M (d_v, d_k)."""
    return M + np.outer(v, -0.5 * k)


def hebbian_step_by_columns(M: F64, k: F64, v: F64) -> F64:
    """Eq. 16 column by column: the memory's column j gains k_j v; M (d_v, d_k)."""
    return M + v[:, None] * k[None, :]


def attention_objective(M: F64, M_t: F64, k: F64, v: F64, *, reading: str = "derived") -> Scalar:
    """Give what Eq. 15 minimises in M, by the signs and weights of a reading.

    Shapes: M, M_t (d_v, d_k); k (d_k,); v (d_v,). Raises UnknownReading.
    """
    product, distance = np.sum((M @ k) * v), np.sum((M - M_t) ** 2)
    if reading == "derived":
        return -product + 0.5 * distance
    if reading == "literal":
        return product + distance
    raise UnknownReading(ID, reading, READINGS)


@equation(
    ID,
    title="Linear attention as one descent step",
    source="Nested Learning, NeurIPS 2025",
    numbers=("15", "16"),
    grade="as printed, corrected",
    formula="M' = arg min_M -<M k, v> + |M - M_t|_F^2 / 2 = M_t + v k^T",
    axes=("d_v", "d_k"),
    inputs=(
        Symbol("M", ("d_v", "d_k"), Domain("real", -2.0, 2.0), "memory, 0 at the start"),
        Symbol("k", ("d_k",), Domain("real", -2.0, 2.0), "key"),
        Symbol("v", ("d_v",), Domain("real", -2.0, 2.0), "value"),
    ),
    outputs=(Symbol("M_next", ("d_v", "d_k"), Domain("real"), "memory after the write"),),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={"derived": (hebbian_step_by_columns,), "literal": (hebbian_step_scaled_key,)},
    families=FAMILIES,
    notes="The second line, Eq. 16, is right as printed. Hebb's rule; for reads and sequences see "
    "the equation of Eq. 13-14.",
    errata=errata("E3", "E9", "E10"),
    coincide=(
        Coincidence(READINGS, "k = 0", "no_key"),
        Coincidence(READINGS, "v = 0", "no_value"),
    ),
)
def hebbian_step(M: F64, k: F64, v: F64, *, reading: str = "derived") -> F64:
    """Write one pair into the memory.

    Equation: Nested Learning (NeurIPS 2025), Eq. 15-16, Eq. 15 corrected
        M_{t+1} = arg min_M -<M k_{t+1}, v_{t+1}> + |M - M_t|_F^2 / 2 = M_t + v_{t+1} k_{t+1}^T
    Shapes: M (d_v, d_k); k (d_k,); v (d_v,).
    Readings:
        derived  M + v k^T
        literal  M - v k^T / 2, the minimum of <M k, v> + |M - M_t|^2
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "outer_swapped":
        if M.shape[0] != M.shape[1]:
            raise NotApplicable(ID, reading, f"d_v = d_k, got {M.shape[0]} and {M.shape[1]}")
        return M + np.outer(k, v)
    if reading == "delta_rule":
        return M + np.outer(v - M @ k, k)
    write = np.outer(v, k)  # (d_v, d_k)
    if reading == "literal":
        return M - 0.5 * write
    if reading == "sign_only":
        return M + 0.5 * write
    if reading == "half_only":
        return M - write
    if reading == "key_normalized":
        return M + write / np.sum(k * k)
    if reading == "memory_dropped":
        return write
    return M + write
