"""Weight of the auxiliary losses, and the direction signal that their regime head feeds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import softmax
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

READINGS = ("reactive",)
WEIGHT_WRONG = {
    "sharpe_rising": "a better Sharpe ratio gives a larger weight",
    "health_unclipped": "health beyond 1 raises the weight",
    "health_dropped": "the weight without health",
    "no_floor": "the schedule may reach 0",
    "floor_on_weight": "the floor holds for the whole weight, also at health 0",
}
DIRECTION_WRONG = {
    "not_recentred": "s = p_up, in [0, 1]",
    "classes_reversed": "classes from strongest up to strongest down",
    "middle_whole": "the middle class counts whole",
    "middle_dropped": "the middle class does not count",
}


def _sick(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"health": np.zeros_like(values["health"])}


def _beyond_one(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"health": 1.0 + np.abs(np.asarray(values["health"]))}


def _high_sharpe(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"sharpe_ema": np.full_like(values["sharpe_ema"], 50.0)}


def _losing(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"sharpe_ema": -np.abs(np.asarray(values["sharpe_ema"]))}


def _uniform(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"logits": np.full_like(values["logits"], -0.5)}


def aux_weight_regrouped(
    health: F64,
    sharpe_ema: F64,
    w_base: float = 0.1,
    sharpe_ref: float = 20.0,
    w_floor: float = 0.1,
) -> F64:
    """Write the schedule as (sharpe_ref - sharpe_ema) / sharpe_ref, and multiply it first."""
    share = (sharpe_ref - sharpe_ema) / sharpe_ref
    schedule = np.minimum(np.maximum(share, w_floor), 1.0)
    weight: F64 = (w_base * schedule) * np.minimum(np.maximum(health, 0.0), 1.0)
    return weight


def aux_direction_signed(logits: F64) -> F64:
    """Sum signed probabilities: those above the middle less those below it."""
    place = 2 * np.arange(logits.shape[1]) - (logits.shape[1] - 1)
    signed: F64 = np.sum(softmax(logits) * np.sign(1.0 * place), axis=1)
    return signed


@equation(
    "dqn.aux_weight",
    title="Weight of the auxiliary losses",
    source="DQN programme, auxiliary heads",
    grade="health and Sharpe fixed by the programme, schedule proposed",
    formula="w = w_base clip(health, 0, 1) clip(1 - sharpe_ema / sharpe_ref, w_floor, 1)",
    axes=(),
    inputs=(
        Symbol("health", ("1",), Domain("unit", 0.0, 1.0), "learning health"),
        Symbol("sharpe_ema", ("1",), Domain("real", 0.0, 18.0), "running Sharpe ratio"),
        Symbol("w_base", (), Domain("positive", 0.05, 0.5), "largest weight, 0.1"),
        Symbol("sharpe_ref", (), Domain("positive", 10.0, 30.0), "where the floor begins, 20"),
        Symbol("w_floor", (), Domain("unit", 0.05, 0.3), "least share of the schedule, 0.1"),
    ),
    outputs=(Symbol("w_aux", ("1",), Domain("nonnegative"), "one weight for both heads"),),
    readings=READINGS,
    wrong=WEIGHT_WRONG,
    forms={"reactive": (aux_weight_regrouped,)},
    families=(
        Family("sick", "health 0: no auxiliary gradient at all", _sick),
        Family("beyond_one", "health above 1 is clipped", _beyond_one),
        Family("high_sharpe", "beyond the reference: the floor holds", _high_sharpe),
        Family("losing", "negative Sharpe: the whole weight", _losing),
    ),
    notes="Better Sharpe, smaller weight. The value is computed on the GPU and read once a step.",
)
def aux_weight(
    health: F64,
    sharpe_ema: F64,
    w_base: float = 0.1,
    sharpe_ref: float = 20.0,
    w_floor: float = 0.1,
    *,
    reading: str = "reactive",
) -> F64:
    """Give the shared weight of the auxiliary losses.

    Equation: DQN programme, auxiliary heads
        w_aux = w_base clip(health, 0, 1) clip(1 - sharpe_ema / sharpe_ref, w_floor, 1)
    Shapes: health, sharpe_ema (1,); the others are scalars. Returns w_aux (1,).
    """
    if reading not in READINGS + tuple(WEIGHT_WRONG):
        raise UnknownReading("dqn.aux_weight", reading, READINGS + tuple(WEIGHT_WRONG))
    share = sharpe_ema / sharpe_ref
    if reading != "sharpe_rising":
        share = 1.0 - share
    least = 0.0 * w_floor if reading in ("no_floor", "floor_on_weight") else w_floor
    schedule = np.minimum(np.maximum(share, least), 1.0)
    fit = np.maximum(health, 0.0)
    if reading != "health_unclipped":
        fit = np.minimum(fit, 1.0)
    if reading == "health_dropped":
        fit = np.ones_like(health)
    weight = w_base * fit * schedule
    return np.maximum(weight, w_base * w_floor) if reading == "floor_on_weight" else weight


@equation(
    "dqn.aux_direction",
    title="Direction signal of the regime head",
    source="DQN programme, auxiliary heads",
    grade="index 121 fixed by the programme, mapping proposed",
    formula="p_up = sum of the upper classes + half the middle one;  s121 = 2 p_up - 1",
    axes=("B", "K"),
    inputs=(
        Symbol("logits", ("B", "K"), Domain("real", -3.0, 3.0), "strongest down to strongest up"),
    ),
    outputs=(Symbol("s121", ("B",), Domain("real"), "direction, in [-1, 1]"),),
    readings=READINGS,
    wrong=DIRECTION_WRONG,
    forms={"reactive": (aux_direction_signed,)},
    families=(Family("uniform", "uniform logits: no direction", _uniform),),
    notes="The producer recentres; its backward pass has the factor 2. With an even number of "
    "classes there is no middle one.",
)
def aux_direction(logits: F64, *, reading: str = "reactive") -> F64:
    """Turn regime logits into a direction between -1 and 1.

    Equation: DQN programme, auxiliary heads: p = softmax(logits), classes from strongest down to
        strongest up; p_up = sum of p above the middle + p of the middle / 2;  s121 = 2 p_up - 1
    Shapes: logits (B, K). Returns s121 (B,).
    """
    if reading not in READINGS + tuple(DIRECTION_WRONG):
        raise UnknownReading("dqn.aux_direction", reading, READINGS + tuple(DIRECTION_WRONG))
    K = logits.shape[1]
    middle = {"middle_whole": 1.0, "middle_dropped": 0.0}.get(reading, 0.5)
    share = np.where(
        2 * np.arange(K) > K - 1, 1.0, np.where(2 * np.arange(K) == K - 1, middle, 0.0)
    )
    if reading == "classes_reversed":
        share = share[::-1]
    p_up: F64 = np.sum(softmax(logits) * share, axis=1)
    return p_up if reading == "not_recentred" else 2.0 * p_up - 1.0
