"""The rate of the target network's average, from the learning health."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.tau"
T_MIN = float(np.float32(1e-3))
T_MAX = float(np.float32(1e-2))

READINGS = ("affine",)
WRONG_FORMULAS = {
    "health_unclipped": "a health above 1 leads past t_max",
    "inverted": "t_max where the health is 0",
    "bounds_swapped_in_span": "t_min + (t_min - t_max) h",
    "from_zero": "t_max h, without t_min",
    "nan_hidden": "min and max return the bound where health is NaN",
}
WRONG = tuple(WRONG_FORMULAS)


def _health(value: float) -> Make:
    """Make the family in which the health has one given value."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {"health": np.full(1, value)}

    return make


FAMILIES = (
    Family("above_one", "a health above 1 counts as 1", _health(1.75)),
    Family("below_zero", "a health below 0 counts as 0", _health(-0.5)),
    Family("one", "the largest rate", _health(1.0)),
    Family("zero", "the smallest rate", _health(0.0)),
    Family("nan", "a NaN is passed on, never turned into a bound", _health(np.nan)),
)


def tau_by_lerp(health: F64, t_min: float = T_MIN, t_max: float = T_MAX) -> F64:
    """Write the rate as (1 - h) t_min + h t_max."""
    h = clip(health, 0.0, 1.0)
    return (1.0 - h) * t_min + h * t_max


@equation(
    ID,
    title="Rate of the target average",
    source="ISV programme, TAU_EFF",
    grade="mechanism fixed by the programme; formula and constants proposed",
    formula="tau = t_min + (t_max - t_min) clip(health, 0, 1)",
    axes=(),
    inputs=(
        Symbol("health", ("1",), Domain("real", 0.05, 0.95), "learning health"),
        Symbol("t_min", (), Domain("unit", 5e-4, 2e-3), "rate at health 0", True),
        Symbol("t_max", (), Domain("unit", 5e-3, 2e-2), "rate at health 1", True),
    ),
    outputs=(Symbol("tau", ("1",), Domain("unit"), "rate of the target average"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"affine": (tau_by_lerp,)},
    families=FAMILIES,
)
def tau(health: F64, t_min: float = T_MIN, t_max: float = T_MAX, *, reading: str = "affine") -> F64:
    """Give the rate of the target average for a learning health.

    Equation: ISV programme, TAU_EFF [proposed]
        tau = t_min + (t_max - t_min) clip(health, 0, 1)
    Shapes: health, tau (1,); the bounds are scalars, by default the float32 nearest to 0.001 and
    to 0.01, which is what a kernel holds. A NaN health gives NaN.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "nan_hidden":
        health = np.where(np.isnan(health), 0.0, health)
    h = health if reading == "health_unclipped" else clip(health, 0.0, 1.0)
    if reading == "inverted":
        h = 1.0 - h
    if reading == "bounds_swapped_in_span":
        return t_min + (t_min - t_max) * h
    if reading == "from_zero":
        return t_max * h
    return t_min + (t_max - t_min) * h
