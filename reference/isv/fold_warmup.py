"""The factor that damps training at the start of a fold, while the gradient norm spikes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.fold_warmup"
LOW = float(np.float32(0.1))
STEPS = 1000.0

READINGS = ("ramp",)
WRONG_FORMULAS = {
    "inverted": "fast / slow: a spike speeds training up",
    "unclipped": "slow / fast as it is",
    "ramp_missing": "r for ever",
    "ratio_missing": "the ramp alone, from 0",
    "ramp_reversed": "s r + (1 - s)",
    "slow_reset": "slow = fast: the factor can never fire",
    "steps_unclipped": "past W the factor leaves 1",
    "sentinel_ignored": "averages that are not set are divided",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"steps": np.floor(np.asarray(values["steps"]))}


def _at(**given: float) -> Make:
    """Make the family in which some inputs have given values."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {name: np.full(1, value) for name, value in given.items()}

    return make


FAMILIES = (
    Family("spike", "the fast average is above the slow one: damped", _at(fast=8.0, slow=2.0)),
    Family("large_spike", "so far above that the floor holds", _at(fast=800.0, slow=2.0)),
    Family("calm", "fast below slow: no damping at any step", _at(fast=1.0, slow=2.0),
           right_kernel_only=True),
    Family("first_step", "step 0: the ratio alone", _at(steps=0.0, fast=5.0, slow=2.0)),
    Family("at_the_end", "step W: exactly 1", _at(steps=1000.0, fast=5.0, slow=2.0)),
    Family("past_the_end", "past W: exactly 1", _at(steps=5000.0, fast=5.0, slow=2.0)),
    Family("fast_unset", "an average that is not above 0 is not set", _at(fast=0.0)),
    Family("slow_unset", "neither is the slow one", _at(slow=-1.0)),
)  # fmt: skip


def fold_warmup_by_lerp(
    fast: F64, slow: F64, steps: F64, low: float = LOW, ramp: float = STEPS
) -> F64:
    """Write the factor as r + s (1 - r)."""
    known = (fast > 0.0) & (slow > 0.0)
    with np.errstate(over="ignore"):  # clipped to 1
        ratio = np.where(known, slow, 1.0) / np.where(known, fast, 1.0)
    r, s = clip(ratio, low, 1.0), clip(steps / ramp, 0.0, 1.0)
    return np.where(s == 1.0, 1.0, r + s * (1.0 - r))


@equation(
    ID,
    title="Fold warm-up factor",
    source="ISV programme, fold_warmup_factor",
    grade="inputs fixed by the programme; formula and constants proposed",
    formula="r = fast, slow > 0 ? clip(slow / fast, f_min, 1) : 1, s = clip(steps / W, 0, 1), "
    "factor = s + (1 - s) r",
    axes=(),
    inputs=(
        Symbol("fast", ("1",), Domain("sentinel", 2.0, 6.0), "fast average of the gradient norm"),
        Symbol("slow", ("1",), Domain("sentinel", 0.8, 1.9), "slow average of the gradient norm"),
        Symbol("steps", ("1",), Domain("nonnegative", 50.0, 900.0), "steps since the fold began"),
        Symbol("low", (), Domain("unit", 0.05, 0.2), "least ratio f_min", True),
        Symbol(
            "ramp", (), Domain("positive", 900.0, 1500.0), "steps of the ramp W, 1 or more", True
        ),
    ),
    outputs=(Symbol("factor", ("1",), Domain("unit"), "factor on the update"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"ramp": (fold_warmup_by_lerp,)},
    families=FAMILIES,
    prepare=_prepare,
    notes="The slow average survives a fold; were it reset, the ratio would be 1 for ever.",
)
def fold_warmup(
    fast: F64,
    slow: F64,
    steps: F64,
    low: float = LOW,
    ramp: float = STEPS,
    *,
    reading: str = "ramp",
) -> F64:
    """Give the warm-up factor of a step.

    Equation: ISV programme, fold_warmup_factor [proposed]
        r = clip(slow / fast, f_min, 1) where both are above 0, else 1
        s = clip(steps / W, 0, 1),   factor = s + (1 - s) r
    Shapes: fast, slow, steps, factor (1,); constants are scalars, by default the float32 that a
    kernel holds.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "slow_reset":
        slow = fast
    known = (fast > 0.0) & (slow > 0.0)
    over, under = np.where(known, fast, 1.0), np.where(known, slow, 1.0)
    if reading == "sentinel_ignored":
        over, under = fast, slow
    with np.errstate(over="ignore"):  # clipped to 1
        ratio = over / under if reading == "inverted" else under / over
    r = ratio if reading == "unclipped" else clip(ratio, low, 1.0)
    s = steps / ramp if reading == "steps_unclipped" else clip(steps / ramp, 0.0, 1.0)
    if reading == "ramp_missing":
        return r
    if reading == "ratio_missing":
        return s
    if reading == "ramp_reversed":
        return s * r + (1.0 - s)
    return s + (1.0 - s) * r
