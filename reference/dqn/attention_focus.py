"""Running averages of where attention lies: six group weights and retention, or a summary."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import softmax
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ALPHA = float(np.float32(0.05))
READINGS = ("counted",)
EMA_WRONG = {
    "log_weights": "averages of log w: of logits, not of weights",
    "first_blended": "the first observation is blended with whatever was there",
    "count_kept": "the count is not raised",
    "alpha_complement": "alpha prev + (1 - alpha) obs",
    "retention_over_group": "retention is written over the last group's slot",
    "first_sample_only": "the first sample in place of the mean",
}
SUMMARY_WRONG = {
    "mean_of_entropies": "the mean of per-sample entropies, not the entropy of the mean",
    "log2": "entropy in bits",
    "unnormalised": "entropy without 1 / ln 6",
    "smallest": "the smallest mean weight",
    "first_blended": "the first observation is blended with whatever was there",
    "slots_exchanged": "entropy and retention exchanged",
}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Draw weights of the simplex; the count is 0 or above, a whole number."""
    count = np.rint(np.abs(np.asarray(values["count"])))
    return values | {"w": _simplex(np.asarray(values["w"])), "count": count}


def _simplex(w: F64) -> F64:
    sums = w.sum(axis=1, keepdims=True)
    return w if np.allclose(sums, 1.0, atol=1e-9) else softmax(4.0 * w)


def _seen(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"count": np.full(1, 3.0)}


def _first(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"count": np.zeros(1)}


def _one_hot(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    w = np.zeros_like(values["w"])
    w[:, 1] = 1.0
    return values | {"w": w}


def _uniform(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"w": np.full_like(values["w"], 1.0 / 6.0)}


FAMILIES = (
    Family("seen", "averages that have started", _seen),
    Family("first", "the first observation is taken as it is", _first),
    Family("one_hot", "one group has everything: entropy 0, 0 ln 0 = 0", _one_hot, True),
    Family("uniform", "uniform weights: 1 / 6 each, entropy 1", _uniform, True),
)
_W = Symbol("w", ("B", "6"), Domain("simplex"), "weights of the six groups")
_RETENTION = Symbol("retention", ("1",), Domain("unit", 0.1, 0.9), "mean decay of the scan")
_COUNT = Symbol("count", ("1",), Domain("nonnegative", 0.0, 4.0), "observations so far")
_COUNT_NEXT = Symbol("count_next", ("1",), Domain("nonnegative"), "one more")
_SOURCE = "DQN programme, attention focus"


def _averaged(ema: F64, observed: F64, count: F64, reading: str) -> F64:
    alpha = 1.0 - ALPHA if reading == "alpha_complement" else ALPHA
    blended = (1.0 - alpha) * ema + alpha * observed
    return blended if reading == "first_blended" else np.where(count > 0, blended, observed)


def attention_focus_moved(w: F64, retention: F64, ema: F64, count: F64) -> tuple[F64, F64]:
    """Write the average as a move towards the observation: ema + a (observed - ema)."""
    observed = np.concatenate([np.sum(w, axis=0) / w.shape[0], retention])
    return np.where(count > 0, ema + ALPHA * (observed - ema), observed), count + 1


def attention_summary_moved(w: F64, retention: F64, ema: F64, count: F64) -> tuple[F64, F64]:
    """Write the averages as moves, and the entropy with logarithms to the base 6."""
    mean = np.sum(w, axis=0) / w.shape[0]
    logs = np.log(np.where(mean > 0.0, mean, 1.0)) / np.log(np.asarray(6.0))
    parts = [np.reshape(np.max(mean), (1,)), np.reshape(-np.sum(mean * logs), (1,)), retention]
    observed = np.concatenate(parts)
    return np.where(count > 0, ema + ALPHA * (observed - ema), observed), count + 1


@equation(
    "dqn.attention_focus",
    title="Attention focus, seven averages",
    source=_SOURCE,
    grade="seven slots fixed by the programme, rate proposed",
    formula="ema' = 0.95 ema + 0.05 [mean_b w, retention];  the first observation as it is",
    axes=("B",),
    inputs=(
        _W,
        _RETENTION,
        Symbol("ema", ("7",), Domain("unit", 0.0, 1.0), "six groups, then retention"),
        _COUNT,
    ),
    outputs=(
        Symbol("ema_next", ("7",), Domain("unit"), "averages after the observation"),
        _COUNT_NEXT,
    ),
    readings=READINGS,
    wrong=EMA_WRONG,
    forms={"counted": (attention_focus_moved,)},
    families=FAMILIES,
    notes="The six averages of the groups stay on the simplex.",
    prepare=_prepare,
)
def attention_focus(
    w: F64, retention: F64, ema: F64, count: F64, *, reading: str = "counted"
) -> tuple[F64, F64]:
    """Average the weights of the groups and the retention of the scan.

    Equation: DQN programme, attention focus, mode B: observed = [mean_b w, retention]
        ema' = (1 - a) ema + a observed, a = 0.05; observed where count is 0
    Shapes: w (B, 6); retention (1,); ema (7,); count (1,). Returns (ema', count + 1).
    """
    if reading not in READINGS + tuple(EMA_WRONG):
        raise UnknownReading("dqn.attention_focus", reading, READINGS + tuple(EMA_WRONG))
    weights = w[:1] if reading == "first_sample_only" else w
    if reading == "log_weights":
        with np.errstate(divide="ignore"):
            weights = np.log(weights)
    mean = np.mean(weights, axis=0)
    observed = np.concatenate([mean, retention])
    if reading == "retention_over_group":
        observed = np.concatenate([mean[:5], retention, retention])
    after = _averaged(ema, observed, count, reading)
    return after, count + (0 if reading == "count_kept" else 1)


@equation(
    "dqn.attention_summary",
    title="Attention focus, three averages",
    source=_SOURCE,
    grade="three slots fixed by the programme, content proposed",
    formula="observed = [max_g wbar, -sum wbar ln wbar / ln 6, retention], wbar = mean_b w",
    axes=("B",),
    inputs=(
        _W,
        _RETENTION,
        Symbol("ema", ("3",), Domain("unit", 0.0, 1.0), "largest, entropy, retention"),
        _COUNT,
    ),
    outputs=(
        Symbol("ema_next", ("3",), Domain("unit"), "averages after the observation"),
        _COUNT_NEXT,
    ),
    readings=READINGS,
    wrong=SUMMARY_WRONG,
    forms={"counted": (attention_summary_moved,)},
    families=FAMILIES,
    notes="The entropy is that of the mean weights; 0 ln 0 is 0.",
    prepare=_prepare,
)
def attention_summary(
    w: F64, retention: F64, ema: F64, count: F64, *, reading: str = "counted"
) -> tuple[F64, F64]:
    """Average a summary of the weights of the groups.

    Equation: DQN programme, attention focus, mode A, wbar = mean_b w
        observed = [max_g wbar_g, -(1 / ln 6) sum_g wbar_g ln wbar_g, retention]
        ema' = (1 - a) ema + a observed, a = 0.05; observed where count is 0
    Shapes: w (B, 6); retention (1,); ema (3,); count (1,). Returns (ema', count + 1).
    """
    if reading not in READINGS + tuple(SUMMARY_WRONG):
        raise UnknownReading("dqn.attention_summary", reading, READINGS + tuple(SUMMARY_WRONG))
    mean = np.mean(w, axis=0)
    of = w if reading == "mean_of_entropies" else mean[np.newaxis]
    logs = np.log(np.where(of > 0.0, of, 1.0))
    nats = np.mean(-np.sum(of * logs, axis=1, keepdims=True), axis=0)  # (1,)
    entropy = nats / np.log(np.asarray(2.0 if reading == "log2" else 6.0))
    if reading == "unnormalised":
        entropy = nats
    largest = np.reshape(np.min(mean) if reading == "smallest" else np.max(mean), (1,))
    last = [retention, entropy] if reading == "slots_exchanged" else [entropy, retention]
    after = _averaged(ema, np.concatenate([largest, *last]), count, reading)
    return after, count + 1
