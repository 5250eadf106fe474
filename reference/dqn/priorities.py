"""Prioritised replay: from errors to priorities, and from probabilities to weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.sum_tree import SOURCE
from trueup.reference.errors import BadInputs, NotApplicable, UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.priorities"
WEIGHTS_ID = "dqn.importance_weights"
ALPHA = float(np.float32(0.6))
EPS = float(np.float32(1e-6))
READINGS = ("summed",)
WRONG = {
    "signed_sum": "errors of branches cancel",
    "mean": "divided by the number of branches",
    "largest": "the largest branch alone",
    "alpha_twice": "raised again",
    "alpha_missing": "not raised",
    "eps_missing": "an error of 0 is never drawn again",
    "eps_after_power": "(sum |td|)^alpha + eps",
}


def _mixed(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"td": np.ones((sizes["B"], 4)) * np.array([1.0, -1.0, 0.5, -0.25])}


def _solved(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"td": np.zeros((sizes["B"], 4))}


def _tiny(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"td": 1e-6 * np.asarray(values["td"])}


def priorities_by_logarithm(td: F64, alpha: float = ALPHA, eps: float = EPS) -> F64:
    """Raise through exp(alpha log p)."""
    leaf: F64 = np.exp(alpha * np.log(np.sum(np.abs(td), axis=1) + eps))
    return leaf


@equation(
    ID,
    title="Priorities",
    source=SOURCE,
    grade="form of the paper; sum over branches from branching DQN; constants proposed",
    formula="leaf = (sum_k |td_k| + eps)^alpha",
    axes=("B",),
    inputs=(
        Symbol("td", ("B", "4"), Domain("real", -2.0, 2.0), "errors by branch"),
        Symbol("alpha", (), Domain("unit", 0.4, 0.8), "exponent, float32(0.6)", True),
        Symbol("eps", (), Domain("positive", 1e-6, 1e-6), "floor, float32(1e-6)", True),
    ),
    outputs=(Symbol("leaf", ("B",), Domain("positive"), "raised priority, as a leaf holds it"),),
    readings=READINGS,
    wrong=WRONG,
    forms={"summed": (priorities_by_logarithm,)},
    families=(
        Family("mixed_signs", "errors of branches that would cancel", _mixed),
        Family("solved", "no error at all: eps alone", _solved),
        Family("tiny", "errors as small as eps", _tiny),
    ),
    notes="Raised once, when the leaf is written: P(i) is then leaf / root.",
)
def priorities(td: F64, alpha: float = ALPHA, eps: float = EPS, *, reading: str = "summed") -> F64:
    """Turn the errors of four branches into what a leaf holds.

    Equation: DQN programme, prioritised replay
        leaf = (sum_k |td_k| + eps)^alpha
    Shapes: td (B, 4); alpha, eps scalars, by default the float32 next to 0.6 and 1e-6.
    """
    if reading not in (*READINGS, *WRONG):
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    error: F64 = np.sum(np.abs(td), axis=1)
    if reading == "signed_sum":
        error = np.abs(np.sum(td, axis=1))
    elif reading == "mean":
        error = error / 4.0
    elif reading == "largest":
        error = np.max(np.abs(td), axis=1)
    if reading == "eps_after_power":
        late: F64 = error**alpha + eps
        return late
    floored: F64 = error if reading == "eps_missing" else error + eps
    if reading == "alpha_missing":
        return floored
    leaf: F64 = floored ** (alpha * alpha) if reading == "alpha_twice" else floored**alpha
    return leaf


WEIGHT_READINGS = ("batch", "buffer")
WEIGHT_WRONG = {
    "not_normalised": "without the maximum",
    "exponent_positive": "(N P)^beta",
    "by_mean": "divided by the mean weight",
    "by_minimum": "divided by the smallest weight",
    "beta_missing": "1 / P, whatever beta",
}


def importance_weights_by_ratio(probability: F64, beta: float, p_min: F64 | None = None) -> F64:
    """Form (P_min / P)^beta at once: the number of transitions cancels."""
    return (np.min(probability) / probability) ** beta


@equation(
    WEIGHTS_ID,
    title="Importance weights",
    source=SOURCE,
    grade="as printed; the set of the maximum is a parameter",
    formula="w_i = (N P_i)^-beta / max_j w_j = (P_min / P_i)^beta",
    axes=("B",),
    inputs=(
        Symbol("probability", ("B",), Domain("positive", 0.01, 0.3), "P of the sampled leaves"),
        Symbol("beta", (), Domain("unit", 0.4, 1.0), "exponent"),
        Symbol("p_min", ("1",), Domain("positive", 0.001, 0.009), "least P of the buffer", True),
    ),
    outputs=(Symbol("weight", ("B",), Domain("unit"), "weights, at most 1"),),
    readings=WEIGHT_READINGS,
    wrong=WEIGHT_WRONG,
    forms={"batch": (importance_weights_by_ratio,)},
    families=(
        Family(
            "uniform",
            "equal probabilities: all weights are 1",
            lambda rng, sizes, v: v | {"probability": np.full(sizes["B"], 0.125)},
            True,
        ),
        Family(
            "skewed",
            "probabilities over four decades",
            lambda rng, sizes, v: v | {"probability": 10.0 ** rng.uniform(-4, -1, sizes["B"])},
        ),
    ),
    notes="N, the number of stored transitions, cancels. The largest weight is 1 over the batch; "
    "over the buffer a batch may have less.",
)
def importance_weights(
    probability: F64, beta: float, p_min: F64 | None = None, *, reading: str = "batch"
) -> F64:
    """Weigh samples so that a skewed draw leaves the mean gradient as it was.

    Equation: PER, arXiv:1511.05952, Sec. 3.4
        w_i = (N P_i)^-beta / max_j (N P_j)^-beta
    Shapes: probability (B,); beta a scalar; p_min (1,).
    Readings:
        batch   the maximum is taken over the batch
        buffer  the maximum is that of the least probable stored transition, p_min
    """
    if reading not in (*WEIGHT_READINGS, *WEIGHT_WRONG):
        raise UnknownReading(WEIGHTS_ID, reading, (*WEIGHT_READINGS, *WEIGHT_WRONG))
    if reading == "exponent_positive":
        return probability**beta / np.max(probability**beta)
    exponent = 1.0 if reading == "beta_missing" else beta
    raw = (1.0 / probability) ** exponent
    if reading == "not_normalised":
        return raw
    if reading == "by_mean":
        return raw / np.mean(raw)
    if reading == "by_minimum":
        return raw / np.min(raw)
    if reading == "buffer":
        if p_min is None:
            raise NotApplicable(WEIGHTS_ID, reading, "p_min")
        return raw / (1.0 / p_min) ** beta
    return raw / np.max(raw)


def beta_at(step: int, steps: int, start: float = 0.4) -> float:
    """Give the exponent of a step: from ``start`` to 1 in a straight line, then 1."""
    if step < 0 or steps < 1:
        raise BadInputs(
            "no such step of the schedule", where="beta", got=f"step {step} of {steps}",
            expected="step >= 0, steps >= 1",
        )  # fmt: skip
    return start + (1.0 - start) * min(step / steps, 1.0)


def new_leaf(leaves: F64) -> float:
    """Give a new transition the largest priority so far, so that it is drawn soon; 1 at first."""
    largest = float(np.max(leaves, initial=0.0))
    return largest if largest > 0.0 else 1.0
