"""Variable selection over six feature groups, forward."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import sigmoid, softmax
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.vsn_forward"
GROUPS = ("market", "ofi", "tlob", "mtf", "portfolio", "plan_isv")
BOUNDS = (0, 42, 60, 76, 92, 115, 121)
"""The proposed partition of 128 features; 121 is the auxiliary direction signal, the rest pads."""

READINGS = ("gate_first",)
WRONG_FORMULAS = {
    "over_batch": "softmax over the batch",
    "sigmoid_gate": "sigmoid for each group",
    "last_feature_dropped": "the last group ends one feature early",
    "pad_gated": "features beyond the groups are scaled by the last group's gate",
    "order_swapped": "the groups' gates in reverse order",
    "no_bias": "logit = x W^T",
    "sigma_dropped": "gate = w",
    "features_averaged": "a group's gate divided by its size",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Make the bounds ascend, with one feature beyond the last group where there is room."""
    D = sizes["D"]
    inner = np.sort(rng.integers(0, D + 1, 7))
    inner[0] = 0 if D < 9 else 1
    inner[6] = max(D - 1, 1) if D > 1 else D
    return values | {"gb": np.sort(np.clip(inner, 0, D)).astype(np.int64)}


def _no_logits(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"W": np.zeros_like(values["W"]), "b": np.zeros_like(values["b"])}


def _saturated(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    b = np.array(values["b"])
    b[rng.integers(b.shape[0])] = 60.0
    return values | {"b": b}


def _all_rows_alike(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    x = np.asarray(values["x"])
    return values | {"x": np.repeat(x[:1], x.shape[0], axis=0)}


FAMILIES = (
    Family("no_logits", "W = 0, b = 0: every gate is sigma / 6", _no_logits, True),
    Family("saturated", "one group takes all", _saturated, True),
    Family("all_rows_alike", "equal rows: a softmax over the batch is flat", _all_rows_alike),
)


def member(gb: F64, size: int) -> F64:
    """Give 1 where feature i is in group g, as (groups, size); bounds are half-open."""
    at = np.arange(size)
    lower, upper = gb[:-1, np.newaxis], gb[1:, np.newaxis]
    return np.where((at >= lower) & (at < upper), 1.0, 0.0)


def vsn_forward_scaled(x: F64, W: F64, b: F64, gb: F64, sigma: float = 1.0) -> tuple[F64, F64]:
    """Write the weights as exp times the rounded 1 / total."""
    logit = x @ W.T + b
    weight = np.exp(logit - np.max(logit, axis=1, keepdims=True))
    w = weight * (1.0 / np.sum(weight, axis=1, keepdims=True))
    return x * spread(w * sigma, member(gb, x.shape[1])), w


_X = ("B", "D")


@equation(
    ID,
    title="Variable selection over feature groups, forward",
    source="DQN programme, VSN block; temporal fusion transformer, arXiv:1912.09363",
    grade="groups fixed by the programme, one linear as gate and sigma proposed",
    formula="w = softmax(x W^T + b);  out_i = x_i (w_g(i) sigma)",
    axes=("B", "D"),
    inputs=(
        Symbol("x", _X, Domain("real", -2.0, 2.0), "features"),
        Symbol("W", ("6", "D"), Domain("real", -1.0, 1.0), "linear gate"),
        Symbol("b", ("6",), Domain("real", -1.0, 1.0), "its bias"),
        Symbol("gb", ("7",), Domain("index", axis="D"), "ascending bounds of the six groups"),
        Symbol("sigma", (), Domain("positive", 0.5, 6.0), "scale of the gates: 1, or 6"),
    ),
    outputs=(
        Symbol("out", _X, Domain("real"), "features, scaled by their group's gate"),
        Symbol("w", ("B", "6"), Domain("simplex"), "saved: weights of the groups"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"gate_first": (vsn_forward_scaled,)},
    families=FAMILIES,
    notes="The gate w sigma is formed before it multiplies: with W = b = 0 and sigma = 6 the "
    "output is x, bit for bit. Features outside the groups pass unscaled. The full published form "
    "mixes a GRN of each group; it is dqn.moe_mixture over dqn.grn_forward.",
    prepare=_prepare,
)
def vsn_forward(
    x: F64, W: F64, b: F64, gb: F64, sigma: float = 1.0, *, reading: str = "gate_first"
) -> tuple[F64, F64]:
    """Scale every group of features by its weight.

    Equation: DQN programme, VSN block
        logit = x W^T + b;  w = softmax(logit) over the six groups
        out[:, i] = x[:, i] (w[:, g(i)] sigma), the gate formed first; x[:, i] outside the groups
    Shapes: x (B, D); W (6, D); b (6,); gb (7,) integers, group g is [gb[g], gb[g + 1]).
    Returns (out, w).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    logit = x @ W.T if reading == "no_bias" else x @ W.T + b
    if reading == "sigmoid_gate":
        w = sigmoid(logit)
    else:
        w = softmax(logit, axis=0 if reading == "over_batch" else 1)
    group = _groups(gb, x.shape[1], reading)
    gate = w if reading == "sigma_dropped" else w * sigma
    if reading == "order_swapped":
        gate = gate[:, ::-1]
    return x * spread(gate, group), w


def spread(gate: F64, group: F64) -> F64:
    """Give each feature its group's gate, 1 outside: (B, 6), (6, D) -> (B, D), without rounding."""
    result = np.ones((gate.shape[0], group.shape[1]))
    for g in range(group.shape[0]):
        result = np.where(group[g] > 0.0, gate[:, g : g + 1] * group[g], result)
    return result


def _groups(gb: F64, size: int, reading: str) -> F64:
    group = member(gb, size)
    at = np.arange(size)
    if reading == "last_feature_dropped":
        last = np.where(at < gb[6] - 1, group[5], 0.0)
        group = np.concatenate([group[:5], last[np.newaxis]])
    elif reading == "pad_gated":
        last = np.where(at >= gb[6], 1.0, group[5])
        group = np.concatenate([group[:5], last[np.newaxis]])
    elif reading == "features_averaged":
        group = group / np.maximum(np.sum(group, axis=1, keepdims=True), 1.0)
    return group
