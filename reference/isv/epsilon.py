"""The exploration rate, from the epoch and the learning health."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.epsilon"
E_MIN = float(np.float32(0.02))
E_START = 1.0
HEALTH_WEIGHT = 0.5

READINGS = ("linear",)
WRONG_FORMULAS = {
    "over_total": "e / T: the last epoch still explores",
    "integer_division": "e // (T - 1): no decay until the last epoch",
    "progress_unclipped": "an epoch past the last makes the rate negative",
    "total_unguarded": "T = 1 divides by zero",
    "health_unclipped": "health is not clipped to [0, 1]",
    "health_missing": "no damping by health",
    "health_added": "1 + c h: a healthy agent explores more",
    "floor_missing": "without e_min",
    "nan_hidden": "the bound where health is NaN",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Epochs are whole numbers, and the epoch is one of the run's."""
    total = np.floor(np.asarray(values["total"]))
    return values | {"total": total, "epoch": np.floor(np.asarray(values["epoch"]))}


def _at(**given: float) -> Make:
    """Make the family in which some inputs have given values."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {name: np.full(1, value) for name, value in given.items()}

    return make


FAMILIES = (
    Family("first", "the first epoch of many", _at(epoch=0.0, total=60.0)),
    Family("last", "the last epoch: exactly e_min", _at(epoch=59.0, total=60.0)),
    Family("past_the_end", "an epoch past the last is the last", _at(epoch=80.0, total=60.0)),
    Family("only_one", "a run of one epoch starts at the top", _at(epoch=0.0, total=1.0)),
    Family("none", "no epochs declared, one done: e_min", _at(epoch=1.0, total=0.0)),
    Family("healthy", "a health above 1 counts as 1", _at(health=1.5)),
    Family("sick", "a health below 0 counts as 0", _at(health=-0.5)),
    Family("nan", "a NaN health is passed on", _at(health=np.nan)),
)


def epsilon_by_remaining(
    epoch: F64,
    total: F64,
    health: F64,
    e_min: float = E_MIN,
    e_start: float = E_START,
    weight: float = HEALTH_WEIGHT,
) -> F64:
    """Write the decay as (last - e) / last, which is exact in its difference."""
    last = np.where(total - 1.0 < 1.0, 1.0, total - 1.0)
    left = np.where(epoch > last, 0.0, last - epoch) / last
    return e_min + ((e_start - e_min) * (1.0 - weight * clip(health, 0.0, 1.0))) * left


@equation(
    ID,
    title="Exploration rate",
    source="ISV programme, EPSILON_EFF",
    grade="mechanism fixed by the programme; formula and constants proposed",
    formula="eps = e_min + (e_0 - e_min) (1 - min(1, e / max(1, T - 1))) (1 - c clip(h, 0, 1))",
    axes=(),
    inputs=(
        Symbol("epoch", ("1",), Domain("nonnegative", 1.0, 20.0), "number of the epoch, from 0"),
        Symbol("total", ("1",), Domain("nonnegative", 25.0, 90.0), "epochs of the run"),
        Symbol("health", ("1",), Domain("real", 0.05, 0.95), "learning health"),
        Symbol("e_min", (), Domain("unit", 0.01, 0.05), "least rate", True),
        Symbol("e_start", (), Domain("unit", 0.5, 1.0), "rate of the first epoch, e_0", True),
        Symbol("weight", (), Domain("unit", 0.2, 0.8), "weight of the health, c", True),
    ),
    outputs=(Symbol("epsilon", ("1",), Domain("unit"), "exploration rate"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"linear": (epsilon_by_remaining,)},
    families=FAMILIES,
    prepare=_prepare,
    notes="Each branch draws its own random number against this one rate.",
)
def epsilon(
    epoch: F64,
    total: F64,
    health: F64,
    e_min: float = E_MIN,
    e_start: float = E_START,
    weight: float = HEALTH_WEIGHT,
    *,
    reading: str = "linear",
) -> F64:
    """Give the exploration rate of an epoch.

    Equation: ISV programme, EPSILON_EFF [proposed]
        eps = e_min + (e_0 - e_min) (1 - min(1, e / max(1, T - 1))) (1 - c clip(h, 0, 1))
    Shapes: epoch, total, health, epsilon (1,); constants are scalars, by default the float32 that a
    kernel holds. A NaN health gives NaN.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    done = 1.0 - _progress(epoch, total, reading)
    if reading == "nan_hidden":
        health = np.where(np.isnan(health), 0.0, health)
    h = health if reading == "health_unclipped" else clip(health, 0.0, 1.0)
    damping = 1.0 + weight * h if reading == "health_added" else 1.0 - weight * h
    if reading == "health_missing":
        damping = np.ones(1)
    if reading == "floor_missing":
        return (e_start - e_min) * done * damping
    return e_min + (e_start - e_min) * done * damping


def _progress(epoch: F64, total: F64, reading: str) -> F64:
    last = total if reading == "over_total" else total - 1.0
    if reading != "total_unguarded":
        last = np.where(last < 1.0, 1.0, last)
    ratio = np.floor(epoch / last) if reading == "integer_division" else epoch / last
    if reading == "progress_unclipped":
        return ratio
    return np.where(ratio > 1.0, 1.0, ratio)
