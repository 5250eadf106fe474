"""Preprint, Eq. 100-105: the normalised momentum of Adam as a least-squares memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "nl.adam_memory"
READING_FORMULAS = {
    "root_target": "P = sqrt(sum g^2): M = P sum g / (lam + sum g^2)",
    "given_target": "P is given, one for each element",
}
WRONG_FORMULAS = {
    "ema": "sums replaced by averages, 0.9 and 0.999: Adam's buffers, not a minimum of Eq. 101",
    "sums_before": "M from the sums before this gradient",
    "square_of_sum": "(sum g)^2 for sum g^2",
    "lam_under_root": "M = sum g / sqrt(lam + sum g^2)",
    "lam_beside_root": "M = sum g / (sqrt(sum g^2) + lam), as libraries add their epsilon",
    "lam_dropped": "M = P sum g / sum g^2",
    "target_one": "P = 1",
    "negated": "M = -P sum g / (lam + sum g^2)",
}
READINGS, WRONG = tuple(READING_FORMULAS), tuple(WRONG_FORMULAS)


def _from_rest(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    zeros = {name: np.zeros_like(values[name]) for name in ("sum_g", "sum_gg")}
    return values | zeros


def _no_gradient(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"g": np.zeros_like(values["g"])}


def _never_any(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    zeros = {name: np.zeros_like(values[name]) for name in ("sum_g", "sum_gg", "g")}
    return values | zeros | {"lam": 0.0}


def _without_lam(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"lam": 0.0}


FAMILIES = (
    Family("from_rest", "the first gradient: sums of one term", _from_rest),
    Family("no_gradient", "g = 0: the sums stay as they are", _no_gradient),
    Family(
        "without_lam",
        "lam = 0: ways to regularise are the same",
        _without_lam,
        right_kernel_only=True,
    ),
    Family(
        "never_any",
        "no gradient so far and lam = 0: every memory fits, and the least one is 0",
        _never_any,
        right_kernel_only=True,
    ),
)


def adam_memory_root_divided(
    sum_g: F64, sum_gg: F64, g: F64, lam: float, P: F64 | None = None
) -> tuple[F64, F64, F64]:
    """Eq. 101 with the root taken out of the fraction: sum g / (lam / P + P), P = sqrt(sum g^2)."""
    first, second = sum_g + g, sum_gg + g * g
    root = np.sqrt(second)
    safe = np.where(root == 0, 1.0, root)
    return first, second, np.where(root == 0, 0.0, first / (lam / safe + safe))


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Adam as an associative memory",
    source="Nested Learning, preprint arXiv:2512.24695",
    numbers=("101", "102", "105"),
    grade="preprint, seen in two transcriptions; the print has no such rule",
    formula="M = arg min_m sum_i (m g_i - P)^2 + lam m^2 = P sum g / (lam + sum g^2)",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("sum_g", _MATRIX, Domain("real", -2.0, 2.0), "sum of the gradients before"),
        Symbol("sum_gg", _MATRIX, Domain("nonnegative", 0.1, 4.0), "sum of their squares"),
        Symbol("g", _MATRIX, Domain("real", -2.0, 2.0), "gradient of this step"),
        Symbol("lam", (), Domain("nonnegative", 0.05, 1.0), "weight of the memory's own size"),
        Symbol(
            "P",
            _MATRIX,
            Domain("real", -2.0, 2.0),
            "target of every element; read by 'given_target' only",
            optional=True,
        ),
    ),
    outputs=(
        Symbol("sum_g_next", _MATRIX, Domain("real"), "sum of the gradients"),
        Symbol("sum_gg_next", _MATRIX, Domain("nonnegative"), "sum of their squares"),
        Symbol("M", _MATRIX, Domain("real"), "the memory that fits the target best"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={"root_target": (adam_memory_root_divided,)},
    families=FAMILIES,
    notes="With lam = 0, M1 = beta_1 sum g, H = beta_2 sum g^2 and P = sqrt(sum g^2), the memory "
    "is (sqrt(beta_2) / beta_1) M1 / sqrt(H). One problem weighs numerator and denominator alike, "
    "so beta_1 != beta_2 is not its minimum; and sums forget nothing and correct no bias, so this "
    "is AdaGrad with summed momentum. It is not library Adam, and the step from it to Adam was "
    "not recovered.",
)
def adam_memory(
    sum_g: F64,
    sum_gg: F64,
    g: F64,
    lam: float,
    P: F64 | None = None,
    *,
    reading: str = "root_target",
) -> tuple[F64, F64, F64]:
    """Take in one gradient and give the element-wise least-squares memory of all of them.

    Equation: Nested Learning, preprint arXiv:2512.24695, Eq. 101, 102, 105 (as two transcriptions
    have them)
        M = arg min_m sum_i (m g_i - P)^2 + lam m^2 = P sum_i g_i / (lam + sum_i g_i^2)
    Shapes: sum_g, sum_gg, g, P (d_out, d_in), each element by itself; lam a scalar, 0 or greater.
    Sums are 0 at the start. Where lam + sum g^2 = 0 the memory is 0, the least one that fits.
    Returns (sum_g', sum_gg', M).
    Readings:
        root_target   P = sqrt(sum g^2), with this gradient in the sum
        given_target  P as given. Raises NotApplicable without one
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "ema":
        first, second = 0.9 * sum_g + 0.1 * g, 0.999 * sum_gg + 0.001 * g * g
    else:
        first, second = sum_g + g, sum_gg + g * g
    if reading == "lam_beside_root":
        return first, second, _fraction(first, np.sqrt(second) + lam)
    if reading == "lam_under_root":
        return first, second, _fraction(first, np.sqrt(lam + second))
    if reading == "sums_before":
        return first, second, _fraction(np.sqrt(sum_gg) * sum_g, lam + sum_gg)
    squares = first * first if reading == "square_of_sum" else second
    denominator = squares if reading == "lam_dropped" else lam + squares
    memory = _fraction(_target(squares, P, reading) * first, denominator)
    return first, second, -memory if reading == "negated" else memory


def _target(squares: F64, P: F64 | None, reading: str) -> F64 | float:
    if reading == "target_one":
        return 1.0
    if reading == "given_target":
        if P is None:
            raise NotApplicable(ID, reading, "P, the target of every element")
        return P
    return np.sqrt(squares)


def _fraction(numerator: F64, denominator: F64) -> F64:
    """Divide, 0 where there is nothing to divide by."""
    empty = denominator == 0
    return np.where(empty, 0.0, numerator / np.where(empty, 1.0, denominator))
