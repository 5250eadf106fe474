"""Auxiliary heads: next-bar mean squared error and regime cross-entropy under one mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.aux_heads"
IGNORED = -1
READINGS = ("shared_mask",)
WRONG_FORMULAS = {
    "divided_by_batch": "divided by B, not by the number of labelled rows",
    "ignored_is_last_class": "label -1 indexes the last class",
    "mse_unmasked": "the squared error runs over all rows",
    "factor_two_dropped": "dpred = (pred - target) / B_v",
    "weight_on_loss_only": "the gradients without w_aux",
    "ce_weight_dropped": "w_aux on the squared error only",
    "loss_weighted_twice": "loss = w_aux^2 (...)",
    "gradient_sign": "dlogits = (onehot - softmax) / B_v",
    "class_mean": "cross-entropy divided by the number of classes",
}
WRONG = tuple(WRONG_FORMULAS)
Losses = tuple[F64, F64, F64, F64, F64]


def _some_ignored(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    label = np.array(values["label"])
    label[rng.random(label.shape) < 0.5] = IGNORED
    label[0] = IGNORED
    return values | {"label": label}


def _all_ignored(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"label": np.full_like(values["label"], IGNORED)}


def _uniform_logits(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"logits": np.full_like(values["logits"], 0.25)}


def _confident(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"logits": 30.0 * np.asarray(values["logits"])}


def _no_weight(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"w_aux": 0.0}


FAMILIES = (
    Family("some_ignored", "half the rows have no label", _some_ignored),
    Family("all_ignored", "no row has a label: losses and gradients are 0", _all_ignored, True),
    Family("uniform_logits", "cross-entropy is ln n_class", _uniform_logits, True),
    Family("confident", "logits far apart", _confident),
    Family("no_weight", "health 0: the gradients are exactly 0", _no_weight, True),
)


def aux_heads_by_logsumexp(pred: F64, target: F64, logits: F64, label: F64, w_aux: float) -> Losses:
    """Write -log softmax as logsumexp less the logit, and divide each row by B_v."""
    valid = label >= 0
    count = np.maximum(np.sum(np.where(valid, 1.0, 0.0)), 1.0)
    top = np.max(logits, axis=1, keepdims=True)
    total = np.sum(np.exp(logits - top), axis=1, keepdims=True)
    log_total = np.log(total) + top
    chosen = label[:, np.newaxis] == np.arange(logits.shape[1])
    nll = log_total[:, 0] - np.sum(np.where(chosen, logits, 0.0), axis=1)
    residual = np.where(valid, pred - target, 0.0)
    l_mse = np.reshape(np.sum(residual * residual / count), (1,))
    l_ce = np.reshape(np.sum(np.where(valid, nll, 0.0) / count), (1,))
    error = np.exp(logits - top) / total - np.where(chosen, 1.0, 0.0)
    dlogits = w_aux * np.where(valid[:, np.newaxis], error / count, 0.0)
    return l_mse, l_ce, w_aux * l_mse + w_aux * l_ce, w_aux * (2.0 * residual / count), dlogits


@equation(
    ID,
    title="Auxiliary heads: losses and gradients",
    source="DQN programme, auxiliary heads",
    grade="heads fixed by the programme, shared mask and classes proposed",
    formula="L = w_aux (sum_v (pred - target)^2 + sum_v -log softmax(logits)_label) / B_v",
    axes=("B", "K"),
    inputs=(
        Symbol("pred", ("B",), Domain("real", -2.0, 2.0), "next-bar return, predicted"),
        Symbol("target", ("B",), Domain("real", -2.0, 2.0), "next-bar return"),
        Symbol("logits", ("B", "K"), Domain("real", -3.0, 3.0), "regime logits"),
        Symbol("label", ("B",), Domain("index", axis="K"), "regime; -1 is ignored by both heads"),
        Symbol("w_aux", (), Domain("nonnegative", 0.01, 1.0), "shared weight, read once a step"),
    ),
    outputs=(
        Symbol("l_mse", ("1",), Domain("real"), "squared error, unweighted"),
        Symbol("l_ce", ("1",), Domain("real"), "cross-entropy, unweighted"),
        Symbol("loss", ("1",), Domain("real"), "their sum times w_aux"),
        Symbol("dpred", ("B",), Domain("real"), "gradient of the loss"),
        Symbol("dlogits", ("B", "K"), Domain("real"), "gradient of the loss"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"shared_mask": (aux_heads_by_logsumexp,)},
    families=FAMILIES,
    notes="B_v counts rows with label >= 0, at least 1. The history says both 'five bars' and "
    "'five classes': they are two parameters, horizon_bars and n_class.",
)
def aux_heads(
    pred: F64, target: F64, logits: F64, label: F64, w_aux: float, *, reading: str = "shared_mask"
) -> Losses:
    """Give both losses of the auxiliary heads, their weighted sum, and its gradients.

    Equation: DQN programme, auxiliary heads, v the rows with label >= 0, B_v = max(1, their number)
        l_mse = sum_v (pred - target)^2 / B_v;  l_ce = -sum_v log softmax(logits)_label / B_v
        loss = w_aux (l_mse + l_ce);  dpred = w_aux 2 (pred - target) / B_v
        dlogits = w_aux (softmax - onehot) / B_v;  0 on rows without a label
    Shapes: pred, target (B,); logits (B, K); label (B,) integers; w_aux a scalar.
    Returns (l_mse, l_ce, loss, dpred, dlogits), losses as (1,).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    K = logits.shape[1]
    if reading == "ignored_is_last_class":
        label = np.where(label < 0, K - 1, label)
    valid = label >= 0
    rows = valid if reading != "mse_unmasked" else label >= IGNORED
    count = np.maximum(np.sum(np.where(valid, 1.0, 0.0)), 1.0)
    if reading == "divided_by_batch":
        count = np.sum(np.ones_like(pred))
    residual = np.where(rows, pred - target, 0.0)
    l_mse = np.sum(residual * residual) / count
    chosen = label[:, np.newaxis] == np.arange(K)
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    weight = np.exp(shifted)
    total = np.sum(weight, axis=1, keepdims=True)
    nll = np.log(total[:, 0]) - np.sum(np.where(chosen, shifted, 0.0), axis=1)
    l_ce = np.sum(np.where(valid, nll, 0.0)) / count
    if reading == "class_mean":
        l_ce = l_ce / K
    per_row = w_aux / count
    dpred = (1.0 if reading == "factor_two_dropped" else 2.0) * residual * per_row
    error = weight / total - np.where(chosen, 1.0, 0.0)
    dlogits = np.where(valid[:, np.newaxis], error * per_row, 0.0)
    return _weighted(l_mse, l_ce, w_aux, dpred, dlogits, reading)


def _weighted(
    l_mse: F64, l_ce: F64, w_aux: float, dpred: F64, dlogits: F64, reading: str
) -> Losses:
    """Join the losses; the wrong variants misplace the weight or the sign."""
    loss = w_aux * (l_mse + l_ce)
    if reading == "loss_weighted_twice":
        loss = w_aux * loss
    elif reading == "ce_weight_dropped":
        loss, dlogits = w_aux * l_mse + l_ce, dlogits / w_aux
    elif reading == "weight_on_loss_only":
        dpred, dlogits = dpred / w_aux, dlogits / w_aux
    elif reading == "gradient_sign":
        dlogits = -dlogits
    losses = (np.reshape(l_mse, (1,)), np.reshape(l_ce, (1,)), np.reshape(loss, (1,)))
    return (*losses, dpred, dlogits)


def fold_labels(classes: Sequence[int], horizon_bars: int = 5) -> list[int]:
    """Give a fold's labels: the last `horizon_bars` bars have no future and are ignored."""
    known = max(0, len(classes) - horizon_bars)
    return [*classes[:known], *[IGNORED] * (len(classes) - known)]


def next_bar_targets(close: F64) -> F64:
    """Give each bar's return into the next one; the last bar has none, and is 0 behind the mask."""
    target: F64 = np.zeros_like(close)
    target[:-1] = close[1:] / close[:-1] - 1.0
    return target
