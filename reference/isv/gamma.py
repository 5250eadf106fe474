"""The discount of each branch, from the range of its support and the learning health."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "isv.gamma"
REWARD_SCALE = float(np.float32(0.2))
LOW = float(np.float32(0.8))
HIGH = float(np.float32(0.995))

READINGS = ("per_branch",)
WRONG_FORMULAS = {
    "one_for_all": "the first branch's discount in all four slots",
    "range_not_halved": "1 - r / range",
    "range_squared": "1 - r / (range^2 / 2)",
    "unguarded": "a range of 0 divides by zero",
    "target_unclipped": "1 - r / (range / 2) as it is",
    "health_unclipped": "health is not clipped to [0, 1]",
    "health_missing": "the target itself",
    "from_zero": "h g_hat",
    "reversed": "branches in the other order",
    "nan_hidden": "a NaN health counts as 0",
}
WRONG = tuple(WRONG_FORMULAS)


def _set(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values


def _narrow(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"v_range": rng.uniform(0.05, 1.5, size=4)}


def _wide(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"v_range": rng.uniform(100.0, 1e4, size=4)}


def _unusable(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"v_range": np.array([0.0, -1.0, -0.0, 4.0])}


def _healthy(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"health": np.full(1, 1.5)}


def _sick(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"health": np.full(1, -0.5)}


def _nan_health(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"health": np.full(1, np.nan)}


def _nan_range(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"v_range": np.array([4.0, np.nan, 8.0, 2.0])}


FAMILIES = (
    Family("uneven", "four different ranges: four different discounts", _set),
    Family("narrow", "ranges too narrow for any horizon: the lower bound", _narrow),
    Family("wide", "ranges so wide that the upper bound holds", _wide),
    Family("unusable", "a range that is not above 0 gives the lower bound", _unusable),
    Family("healthy", "a health above 1 counts as 1", _healthy),
    Family("sick", "a health below 0 counts as 0", _sick),
    Family("nan_health", "a NaN health is passed on", _nan_health),
    Family("nan_range", "a NaN range makes its own branch NaN and no other", _nan_range),
)


def gamma_by_ratio(
    v_range: F64,
    health: F64,
    reward_scale: float = REWARD_SCALE,
    low: float = LOW,
    high: float = HIGH,
) -> F64:
    """Write the target as 1 - 2 r / range."""
    unusable = v_range <= 0.0
    with np.errstate(over="ignore", divide="ignore"):  # a subnormal range
        ratio = 2.0 * reward_scale / np.where(unusable, 1.0, v_range)
    target = clip(1.0 - ratio, low, high)
    h = clip(health, 0.0, 1.0)
    return np.where(unusable, low + h * 0.0, low + h * (target - low))


@equation(
    ID,
    title="Discount of each branch",
    source="ISV programme, GAMMA_DIR_EFF to GAMMA_URG_EFF",
    grade="four slots from range and health fixed by the programme; formula proposed",
    formula="g_hat = clip(1 - r / (range / 2), g_lo, g_hi), "
    "gamma = g_lo + clip(h, 0, 1) (g_hat - g_lo)",
    axes=(),
    inputs=(
        Symbol("v_range", ("4",), Domain("real", 2.5, 30.0), "v_max - v_min of each branch"),
        Symbol("health", ("1",), Domain("real", 0.05, 0.95), "learning health"),
        Symbol("reward_scale", (), Domain("positive", 0.1, 0.4), "reward scale r", True),
        Symbol("low", (), Domain("unit", 0.7, 0.85), "least discount g_lo", True),
        Symbol("high", (), Domain("unit", 0.99, 0.999), "largest discount g_hi", True),
    ),
    outputs=(Symbol("gamma", ("4",), Domain("unit"), "discount of each branch"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"per_branch": (gamma_by_ratio,)},
    families=FAMILIES,
    notes="The order of the branches is direction, magnitude, order, urgency.",
)
def gamma(
    v_range: F64,
    health: F64,
    reward_scale: float = REWARD_SCALE,
    low: float = LOW,
    high: float = HIGH,
    *,
    reading: str = "per_branch",
) -> F64:
    """Give the discount of each branch: the horizon that its support can represent.

    Equation: ISV programme, GAMMA_*_EFF [proposed]
        g_hat_k = clip(1 - r / (range_k / 2), g_lo, g_hi)
        gamma_k = g_lo + clip(h, 0, 1) (g_hat_k - g_lo),   g_lo where range_k <= 0
    Shapes: v_range, gamma (4,); health (1,); constants are scalars, by default the float32 that a
    kernel holds.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "nan_hidden":
        health = np.where(np.isnan(health), 0.0, health)
    unusable = v_range <= 0.0
    usable = v_range if reading == "unguarded" else np.where(unusable, 1.0, v_range)
    half = usable if reading == "range_not_halved" else 0.5 * usable
    if reading == "range_squared":
        half = 0.5 * usable * usable
    with np.errstate(
        over="ignore", divide="ignore"
    ):  # a subnormal range: 1 - inf, clipped to the lower bound
        target = 1.0 - reward_scale / half
    if reading != "target_unclipped":
        target = clip(target, low, high)
    h = health if reading == "health_unclipped" else clip(health, 0.0, 1.0)
    out = low + h * (target - low)
    if reading == "from_zero":
        out = h * target
    if reading == "health_missing":
        out = target
    if reading != "unguarded":
        out = np.where(unusable, low + h * 0.0, out)
    if reading == "one_for_all":
        return out[np.zeros(4, dtype=int)]
    return out[::-1] if reading == "reversed" else out
