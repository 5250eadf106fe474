"""The weights that balance the gradients of the four branches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "isv.grad_balancer"
EXPONENT = 0.5
LOW = 0.25
HIGH = 4.0
FLOOR = float(np.float32(1e-12))

READINGS = ("normalised",)
WRONG_FORMULAS = {
    "normalised_before_clip": "the mean of the weights is no longer 1",
    "not_normalised": "the mean of the weights is not brought to 1",
    "exponent_one": "(m / n) itself",
    "inverse": "n / m: the loudest branch is amplified",
    "two_branches": "magnitude and direction only",
    "sum_for_mean": "m = sum of the norms",
    "unclipped": "weights are not clipped",
    "reversed": "weights in the other order",
}
WRONG = tuple(WRONG_FORMULAS)


def _set(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values


def _equal(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"norms": np.full(4, 10.0 ** rng.uniform(-3.0, 3.0))}


def _uneven(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"norms": np.array([400.0, 1.0, 0.02, 3.0])}


def _silent(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"norms": np.array([2.0, 0.0, 1.0, 1e-20])}


def _nan(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"norms": np.array([2.0, np.nan, 1.0, 3.0])}


FAMILIES = (
    Family("ordinary", "norms within a decade", _set),
    Family("equal", "equal norms: every weight is 1", _equal, right_kernel_only=True),
    Family("uneven", "norms over four decades: both bounds hold", _uneven),
    Family("silent", "a branch without a gradient gets the upper bound", _silent),
    Family("nan", "a NaN norm makes every weight NaN: it is in the mean", _nan),
)


def grad_balancer_by_roots(
    norms: F64, exponent: float = EXPONENT, low: float = LOW, high: float = HIGH
) -> F64:
    """Write the weight as m^a / n^a, and the last step as a division by the mean weight."""
    mean = np.sum(norms) / 4.0
    floored = np.where(norms < FLOOR, FLOOR, norms)
    w = clip(mean**exponent / floored**exponent, low, high)
    return w / (np.sum(w) / 4.0)


@equation(
    ID,
    title="Gradient balancer",
    source="ISV programme, grad_balancer",
    grade="mechanism fixed by the programme; formula and constants proposed",
    formula="w = clip((mean(n) / max(n, 1e-12))^a, w_lo, w_hi), then w 4 / sum(w)",
    axes=(),
    inputs=(
        Symbol("norms", ("4",), Domain("nonnegative", 0.3, 3.0), "gradient norm of each branch"),
        Symbol("exponent", (), Domain("unit", 0.3, 0.8), "strength a", True),
        Symbol("low", (), Domain("positive", 0.2, 0.4), "least weight before normalising", True),
        Symbol("high", (), Domain("positive", 3.0, 5.0), "largest weight before it", True),
    ),
    outputs=(Symbol("weights", ("4",), Domain("positive"), "weight of each branch, mean 1"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"normalised": (grad_balancer_by_roots,)},
    families=FAMILIES,
)
def grad_balancer(
    norms: F64,
    exponent: float = EXPONENT,
    low: float = LOW,
    high: float = HIGH,
    *,
    reading: str = "normalised",
) -> F64:
    """Give the weight of each branch's gradient.

    Equation: ISV programme, grad_balancer [proposed]
        w_k = clip((mean(n) / max(n_k, 1e-12))^a, w_lo, w_hi),   then w_k 4 / sum(w)
    Shapes: norms, weights (4,); constants are scalars. A NaN norm gives four NaN.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    mean = np.sum(norms) if reading == "sum_for_mean" else np.sum(norms) / 4.0
    if reading == "two_branches":
        mean = (norms[0] + norms[1]) / 2.0
    floored = np.where(norms < FLOOR, FLOOR, norms)
    ratio = floored / mean if reading == "inverse" else mean / floored
    w = ratio if reading == "exponent_one" else ratio**exponent
    if reading == "normalised_before_clip":
        return clip(w * (4.0 / np.sum(w)), low, high)
    if reading != "unclipped":
        w = clip(w, low, high)
    if reading == "two_branches":
        w = np.concatenate([w[:2], np.ones(2)])
    if reading != "not_normalised":
        w = w * (4.0 / np.sum(w))
    return w[::-1] if reading == "reversed" else w
