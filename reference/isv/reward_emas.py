"""Running averages of the six components of the reward."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "isv.reward_emas"
ALPHA = float(np.float32(0.05))

READINGS = ("counted",)
WRONG_FORMULAS = {
    "sentinel": "prev <= 0 means not set: a negative average is assigned in every step",
    "absolute": "|rc|",
    "slot_shifted": "each average in its neighbour's slot",
    "alpha_on_prev": "alpha on the old average, 1 - alpha on the new value",
    "count_ignored": "the first observation is blended with whatever was there",
    "count_kept": "never counted: every observation is the first",
    "sum_for_each": "the sum of the components in every slot",
}
WRONG = tuple(WRONG_FORMULAS)


def _running(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"count": np.full(1, float(rng.integers(1, 1000)))}


def _first(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"count": np.zeros(1)}


def _negative(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _running(rng, sizes, values) | {
        "reward": -np.abs(np.asarray(values["reward"])) - 0.1,
        "ema": -np.abs(np.asarray(values["ema"])) - 0.1,
    }


def _steady(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return _running(rng, sizes, values) | {"reward": np.array(values["ema"])}


def _nan(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    reward = np.array(values["reward"])
    reward[2] = np.nan
    return _running(rng, sizes, values) | {"reward": reward}


FAMILIES = (
    Family("running", "averages that are set", _running),
    Family("first", "the first observation is taken as it is", _first),
    Family("negative", "rewards below zero are ordinary observations", _negative),
    Family("steady", "observation and average are equal", _steady, right_kernel_only=True),
    Family("nan", "a NaN component makes its own average NaN and no other", _nan),
)


def reward_emas_by_difference(
    reward: F64, ema: F64, count: F64, alpha: float = ALPHA
) -> tuple[F64, F64]:
    """Write the blend as prev + alpha (obs - prev)."""
    return np.where(count > 0, ema + alpha * (reward - ema), reward), count + 1.0


@equation(
    ID,
    title="Averages of the reward components",
    source="ISV programme, REWARD_TRAIL_EMA to REWARD_BONUS_EMA",
    grade="six slots fixed by the programme; count and rate proposed",
    formula="ema = count > 0 ? (1 - a) ema + a rc : rc,  count = count + 1",
    axes=(),
    inputs=(
        Symbol("reward", ("6",), Domain("real", -2.0, 2.0), "reward components rc[0..5]"),
        Symbol("ema", ("6",), Domain("real", -2.0, 2.0), "averages so far"),
        Symbol("count", ("1",), Domain("nonnegative", 1.0, 100.0), "observations so far"),
        Symbol("alpha", (), Domain("unit", 0.02, 0.2), "rate, float32(0.05)", True),
    ),
    outputs=(
        Symbol("ema_next", ("6",), Domain("real"), "averages after the step"),
        Symbol("count_next", ("1",), Domain("positive"), "observations after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"counted": (reward_emas_by_difference,)},
    families=FAMILIES,
    prepare=lambda rng, sizes, values: values | {"count": np.floor(np.asarray(values["count"]))},
    notes="Rewards are signed, so 'not set' is told by a count, never by the value.",
)
def reward_emas(
    reward: F64, ema: F64, count: F64, alpha: float = ALPHA, *, reading: str = "counted"
) -> tuple[F64, F64]:
    """Update the six averages.

    Equation: ISV programme, reward EMAs
        ema_i = count > 0 ? (1 - a) ema_i + a rc_i : rc_i,   count = count + 1
    Shapes: reward, ema (6,); count (1,), a whole number; alpha a scalar, by default the float32
    nearest to 0.05. Returns (ema, count).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    obs = np.abs(reward) if reading == "absolute" else reward
    if reading == "sum_for_each":
        obs = np.sum(reward) + 0.0 * reward
    kept, taken = (alpha, 1.0 - alpha) if reading == "alpha_on_prev" else (1.0 - alpha, alpha)
    blend = kept * ema + taken * obs
    unset = ema <= 0.0 if reading == "sentinel" else count <= 0.0
    if reading == "count_ignored":
        unset = count < 0.0
    out = np.where(unset, obs, blend)
    if reading == "slot_shifted":
        out = out[np.array([5, 0, 1, 2, 3, 4])]
    return out, count if reading == "count_kept" else count + 1.0
