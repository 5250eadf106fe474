"""The threshold above which a plan is carried out, and the average it follows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.isv.clip import clip
from trueup.reference.symbols import F64, Domain, Family, Make, Symbol, Values

ID = "isv.plan_threshold"
BASE = 0.5
REFERENCE = 0.5
LOW = float(np.float32(0.1))
HIGH = float(np.float32(0.9))
ALPHA = float(np.float32(0.05))
FLOOR = float(np.float32(1e-6))

READINGS = ("compare_first",)
WRONG_FORMULAS = {
    "update_first": "the average takes this step's readiness before the comparison",
    "not_strict": "fires at equality",
    "unclipped": "the threshold is not clipped",
    "reference_missing": "base times the average",
    "base_missing": "the average over the reference, without base",
    "sentinel": "an average that is not above 0 counts as not set",
    "alpha_on_prev": "alpha on the old average, 1 - alpha on the new value",
    "never_updated": "the average never moves",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"count": np.floor(np.asarray(values["count"]))}


def _at(**given: float) -> Make:
    """Make the family in which some inputs have given values."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
        return values | {name: np.full(1, value) for name, value in given.items()}

    return make


def _at_the_bound(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    bound = values.get("high", HIGH)
    return values | {"readiness": np.full(1, bound), "ema": np.full(1, 2.0)}


FAMILIES = (
    Family("fires", "readiness above the threshold", _at(readiness=0.8, ema=0.5)),
    Family("waits", "readiness below it", _at(readiness=0.2, ema=0.6)),
    Family("between", "fires by the average before the step, not by the one after it",
           _at(readiness=0.508, ema=0.5, count=10.0)),
    Family("equal", "at equality it waits: readiness is the upper bound itself", _at_the_bound),
    Family("low", "a small average: the lower bound", _at(ema=0.01, readiness=0.3)),
    Family("high", "a large one: the upper bound", _at(ema=2.0, readiness=0.95)),
    Family("first", "the first readiness is taken as the average", _at(count=0.0, ema=0.0)),
    Family("negative", "a negative average is an ordinary one", _at(ema=-0.25, readiness=0.3)),
    Family("nan", "a NaN average gives a NaN threshold, and nothing fires", _at(ema=np.nan)),
)  # fmt: skip


def plan_threshold_by_difference(
    readiness: F64,
    ema: F64,
    count: F64,
    base: float = BASE,
    reference: float = REFERENCE,
    low: float = LOW,
    high: float = HIGH,
    alpha: float = ALPHA,
) -> tuple[F64, F64, F64, F64]:
    """Write the blend as prev + alpha (obs - prev), and the threshold by one constant."""
    over = reference if reference > FLOOR else FLOOR
    thr = clip((base / over) * ema, low, high)
    updated = np.where(count <= 0.0, readiness, ema + alpha * (readiness - ema))
    return thr, _flag(readiness > thr, readiness), updated, count + 1.0


@equation(
    ID,
    title="Threshold of the plan",
    source="ISV programme, PLAN_THRESHOLD and READINESS_EMA",
    grade="comparison with the readiness average fixed by the programme; formula proposed",
    formula="thr = clip(base ema / max(ref, 1e-6), lo, hi), fires = readiness > thr, then "
    "ema = count > 0 ? (1 - a) ema + a readiness : readiness",
    axes=(),
    inputs=(
        Symbol("readiness", ("1",), Domain("real", 0.1, 0.9), "readiness of this step"),
        Symbol("ema", ("1",), Domain("real", 0.3, 0.8), "its average before the step"),
        Symbol("count", ("1",), Domain("nonnegative", 1.0, 100.0), "observations so far"),
        Symbol("base", (), Domain("unit", 0.4, 0.6), "threshold at the reference", True),
        Symbol(
            "reference", (), Domain("positive", 0.4, 0.6), "readiness at which it is base", True
        ),
        Symbol("low", (), Domain("unit", 0.05, 0.15), "least threshold", True),
        Symbol("high", (), Domain("unit", 0.85, 0.95), "largest threshold", True),
        Symbol("alpha", (), Domain("unit", 0.02, 0.2), "rate of the average, float32(0.05)", True),
    ),
    outputs=(
        Symbol("threshold", ("1",), Domain("unit"), "threshold of this step"),
        Symbol("fires", ("1",), Domain("mask"), "1 where readiness is above it"),
        Symbol("ema_next", ("1",), Domain("real"), "average after the step"),
        Symbol("count_next", ("1",), Domain("positive"), "observations after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"compare_first": (plan_threshold_by_difference,)},
    families=FAMILIES,
    prepare=_prepare,
)
def plan_threshold(
    readiness: F64,
    ema: F64,
    count: F64,
    base: float = BASE,
    reference: float = REFERENCE,
    low: float = LOW,
    high: float = HIGH,
    alpha: float = ALPHA,
    *,
    reading: str = "compare_first",
) -> tuple[F64, F64, F64, F64]:
    """Give the threshold, whether the plan fires, and the average after the step.

    Equation: ISV programme, PLAN_THRESHOLD [proposed]
        thr = clip(base ema / max(ref, 1e-6), lo, hi),   fires = readiness > thr (strict)
        ema = (1 - a) ema + a readiness where count > 0, else readiness;   count = count + 1
    Compared first, updated afterwards. Shapes: all arrays (1,); constants are scalars, by default
    the float32 that a kernel holds. Returns (threshold, fires, ema, count).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    kept, taken = (alpha, 1.0 - alpha) if reading == "alpha_on_prev" else (1.0 - alpha, alpha)
    unset = ema <= 0.0 if reading == "sentinel" else count <= 0.0
    updated = np.where(unset, readiness, kept * ema + taken * readiness)
    if reading == "never_updated":
        updated = ema + 0.0 * readiness
    used = updated if reading == "update_first" else ema
    over = reference if reference > FLOOR else FLOOR
    if reading == "reference_missing":
        over = 1.0
    wanted = (used if reading == "base_missing" else base * used) / over
    thr = wanted if reading == "unclipped" else clip(wanted, low, high)
    fires = readiness >= thr if reading == "not_strict" else readiness > thr
    return thr, _flag(fires, readiness), updated, count + 1.0


def _flag(fires: NDArray[np.bool_], like: F64) -> F64:
    return np.where(fires, np.ones_like(like), np.zeros_like(like))
