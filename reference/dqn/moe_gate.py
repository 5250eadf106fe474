"""Mixture of experts: the gate, forward and backward, and the balance loss over its weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import softmax
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

READINGS = ("mlp",)
FORWARD_WRONG = {
    "input_truncated": "the gate reads the first third of the state only (42 of 128)",
    "top_one": "the largest weight is 1, all others 0",
    "over_batch": "softmax over the batch",
    "no_relu": "h = x W1^T + b1",
    "b1_dropped": "h = max(x W1^T, 0)",
    "b2_dropped": "logit = h W2^T",
}
BACKWARD_WRONG = {
    "softmax_diagonal": "dlogit = g dg, without - g sum(g dg)",
    "relu_slope_one": "dh = dlogit W2, also where h = 0",
    "input_truncated": "dW1 from the first third of the state only",
    "dW2_from_x_row": "dW2 from the next row's h",
    "db_averaged": "db1 and db2 divided by B",
}
BALANCE_WRONG = {
    "argmax_counts": "shares of the largest weight in place of means",
    "scale_dropped": "without the factor K",
    "batch_dropped": "the gradient without 1 / B",
    "factor_two_dropped": "the gradient without its 2",
    "per_sample": "the mean of squares, not the square of the mean",
}


def parameters(S: int, H: int, E: int) -> int:
    """Give the number of parameters of the gate: 8776 for 128 inputs, 64 units, 8 experts."""
    return S * H + H + H * E + E


def _peaked_gate(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    b2 = np.array(values["b2"])
    b2[rng.integers(b2.shape[0])] += 8.0
    return values | {"b2": b2}


def _dead(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"b1": np.asarray(values["b1"]) - 50.0}


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    h = np.asarray(values["h"])
    return values | {"g": softmax(4.0 * np.asarray(values["g"])), "h": np.maximum(h - 0.7, 0.0)}


def _even(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    g = np.asarray(values["g"])
    return values | {"g": np.full_like(g, 1.0 / g.shape[1])}


def _equal_gradients(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    dg = np.asarray(values["dg"])
    return values | {"dg": np.repeat(dg[:, :1], dg.shape[1], axis=1)}


def _loose_simplex(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"g": softmax(4.0 * np.asarray(values["g"]))}


_AXES = ("B", "S", "H", "E")
_X = Symbol("x", ("B", "S"), Domain("real", -2.0, 2.0), "state, at its full width")
_W1 = Symbol("W1", ("H", "S"), Domain("real", -1.0, 1.0), "first linear")
_W2 = Symbol("W2", ("E", "H"), Domain("real", -1.0, 1.0), "second linear")
_SOURCE = "DQN programme, mixture of experts; Switch, arXiv:2101.03961"


def moe_gate_forward_by_logsumexp(x: F64, W1: F64, b1: F64, W2: F64, b2: F64) -> tuple[F64, F64]:
    """Write the weights as exp(logit - logsumexp)."""
    h = np.maximum(x @ W1.T + b1, 0.0)
    logit = h @ W2.T + b2
    top = np.max(logit, axis=1, keepdims=True)
    total = np.sum(np.exp(logit - top), axis=1, keepdims=True)
    return np.exp((logit - top) - np.log(total)), h


def moe_gate_backward_spread(
    dg: F64, x: F64, W1: F64, W2: F64, h: F64, g: F64
) -> tuple[F64, F64, F64, F64, F64]:
    """Write dlogit as g dg - g sum(g dg)."""
    product = g * dg
    dlogit = product - g * np.sum(product, axis=1, keepdims=True)
    dh = np.where(h > 0.0, dlogit @ W2, 0.0)
    return dh @ W1, dh.T @ x, np.sum(dh, axis=0), dlogit.T @ h, np.sum(dlogit, axis=0)


def moe_balance_of_sums(g: F64) -> tuple[F64, F64]:
    """Square sums, and divide by B^2 at the end."""
    total, scale = np.sum(g, axis=0), g.shape[1] / np.asarray(float(g.shape[0])) ** 2
    loss = scale * np.sum(total * total)
    return np.reshape(loss, (1,)), np.ones_like(g) * (2.0 * scale * total)


@equation(
    "dqn.moe_gate_forward",
    title="Gate of the mixture of experts, forward",
    source=_SOURCE,
    grade="sizes derived from the programme's counts, ReLU proposed",
    formula="h = max(x W1^T + b1, 0);  g = softmax(h W2^T + b2)",
    axes=_AXES,
    inputs=(
        _X,
        _W1,
        Symbol("b1", ("H",), Domain("real", -1.0, 1.0), "its bias"),
        _W2,
        Symbol("b2", ("E",), Domain("real", -1.0, 1.0), "its bias"),
    ),
    outputs=(
        Symbol("g", ("B", "E"), Domain("simplex"), "weights of the experts"),
        Symbol("h", ("B", "H"), Domain("nonnegative"), "saved: hidden units"),
    ),
    readings=READINGS,
    wrong=FORWARD_WRONG,
    forms={"mlp": (moe_gate_forward_by_logsumexp,)},
    families=(
        Family("peaked_gate", "one expert takes nearly all", _peaked_gate),
        Family("dead", "every hidden unit is 0: the gate is softmax(b2)", _dead, True),
    ),
    notes="With 128 inputs, 64 hidden units and 8 experts the gate has 8776 parameters; with the "
    "42 market features it would have 3272, the count that belongs to a truncated input.",
)
def moe_gate_forward(
    x: F64, W1: F64, b1: F64, W2: F64, b2: F64, *, reading: str = "mlp"
) -> tuple[F64, F64]:
    """Weigh the experts by the state.

    Equation: DQN programme, mixture of experts
        h = max(x W1^T + b1, 0);  g = softmax(h W2^T + b2)
    Shapes: x (B, S); W1 (H, S); b1 (H,); W2 (E, H); b2 (E,). Returns (g, h).
    """
    if reading not in READINGS + tuple(FORWARD_WRONG):
        raise UnknownReading("dqn.moe_gate_forward", reading, READINGS + tuple(FORWARD_WRONG))
    seen = max(1, x.shape[1] // 3) if reading == "input_truncated" else x.shape[1]
    a = x[:, :seen] @ W1[:, :seen].T
    a = a if reading == "b1_dropped" else a + b1
    h = a if reading == "no_relu" else np.maximum(a, 0.0)
    logit = h @ W2.T
    logit = logit if reading == "b2_dropped" else logit + b2
    g = softmax(logit, axis=0 if reading == "over_batch" else 1)
    if reading == "top_one":
        g = np.where(g == np.max(g, axis=1, keepdims=True), 1.0, 0.0)
    return g, h


@equation(
    "dqn.moe_gate_backward",
    title="Gate of the mixture of experts, backward",
    source=_SOURCE,
    grade="derived",
    formula="dlogit = g (dg - sum g dg);  dh = (dlogit W2) [h > 0];  dx = dh W1",
    axes=_AXES,
    inputs=(
        Symbol("dg", ("B", "E"), Domain("real", -2.0, 2.0), "gradient at the weights"),
        _X,
        _W1,
        _W2,
        Symbol("h", ("B", "H"), Domain("nonnegative", 0.0, 2.0), "saved hidden units"),
        Symbol("g", ("B", "E"), Domain("simplex"), "saved weights"),
    ),
    outputs=(
        Symbol("dx", ("B", "S"), Domain("real"), "gradient of x"),
        Symbol("dW1", ("H", "S"), Domain("real"), "gradient of W1"),
        Symbol("db1", ("H",), Domain("real"), "gradient of b1"),
        Symbol("dW2", ("E", "H"), Domain("real"), "gradient of W2"),
        Symbol("db2", ("E",), Domain("real"), "gradient of b2"),
    ),
    readings=READINGS,
    wrong=BACKWARD_WRONG,
    forms={"mlp": (moe_gate_backward_spread,)},
    families=(
        Family("equal_gradients", "identical experts: dlogit is 0", _equal_gradients, True),
        Family("even", "all experts weigh alike", _even),
        Family("dead", "no hidden unit is on", lambda r, s, v: v | {"h": 0.0 * v["h"]}, True),
    ),
    notes="dg holds what the mixture and the balance loss send back, already added.",
    prepare=_prepare,
)
def moe_gate_backward(
    dg: F64, x: F64, W1: F64, W2: F64, h: F64, g: F64, *, reading: str = "mlp"
) -> tuple[F64, F64, F64, F64, F64]:
    """Take a gradient at the weights of the experts back through the gate.

    Equation: DQN programme, mixture of experts
        dlogit = g (dg - sum_k g dg);  dW2 = dlogit^T h;  db2 = sum_b dlogit
        dh = (dlogit W2) [h > 0];  dW1 = dh^T x;  db1 = sum_b dh;  dx = dh W1
    Shapes: dg, g (B, E); x (B, S); W1 (H, S); W2 (E, H); h (B, H).
    Returns (dx, dW1, db1, dW2, db2).
    """
    if reading not in READINGS + tuple(BACKWARD_WRONG):
        raise UnknownReading("dqn.moe_gate_backward", reading, READINGS + tuple(BACKWARD_WRONG))
    taken = 0.0 if reading == "softmax_diagonal" else np.sum(g * dg, axis=1, keepdims=True)
    dlogit = g * (dg - taken)
    dh = dlogit @ W2
    if reading != "relu_slope_one":
        dh = np.where(h > 0.0, dh, 0.0)
    seen = x
    if reading == "input_truncated":
        seen = np.where(np.arange(x.shape[1]) < max(1, x.shape[1] // 3), x, 0.0)
    units = np.concatenate([h[1:], h[:1]]) if reading == "dW2_from_x_row" else h
    db1, db2 = np.sum(dh, axis=0), np.sum(dlogit, axis=0)
    if reading == "db_averaged":
        db1, db2 = db1 / x.shape[0], db2 / x.shape[0]
    return dh @ W1, dh.T @ seen, db1, dlogit.T @ units, db2


@equation(
    "dqn.moe_balance",
    title="Balance loss of the gate",
    source=_SOURCE,
    grade="soft form proposed",
    formula="loss = K sum_k (mean_b g_k)^2;  dg_{b,k} = 2 K mean_b(g_k) / B",
    axes=("B", "E"),
    inputs=(Symbol("g", ("B", "E"), Domain("simplex"), "weights of the experts"),),
    outputs=(
        Symbol("loss", ("1",), Domain("real"), "1 where experts share evenly, K where one has all"),
        Symbol("dg", ("B", "E"), Domain("real"), "its gradient, the same for every sample"),
    ),
    readings=("soft",),
    wrong=BALANCE_WRONG,
    forms={"soft": (moe_balance_of_sums,)},
    families=(Family("even", "all experts weigh alike: the least loss, 1", _even, True),),
    notes="The published loss multiplies counts of the largest weight with means; here means are "
    "squared, so that every sample has a gradient.",
    prepare=_loose_simplex,
)
def moe_balance(g: F64, *, reading: str = "soft") -> tuple[F64, F64]:
    """Charge an uneven use of the experts.

    Equation: DQN programme, mixture of experts; soft form of arXiv:2101.03961
        loss = K sum_k (mean_b g_k)^2;  dloss / dg_{b,k} = 2 K mean_b(g_k) / B,  K = E
    Shapes: g (B, E). Returns (loss (1,), dg (B, E)).
    """
    if reading not in ("soft", *BALANCE_WRONG):
        raise UnknownReading("dqn.moe_balance", reading, ("soft", *BALANCE_WRONG))
    B, K = g.shape
    share = np.mean(g, axis=0)
    if reading == "argmax_counts":
        share = np.mean(np.where(g == np.max(g, axis=1, keepdims=True), 1.0, 0.0), axis=0)
    square = share * share
    if reading == "per_sample":
        square = np.mean(g * g, axis=0)
    scale = 1 if reading == "scale_dropped" else K
    loss = scale * np.sum(square)
    slope = (1 if reading == "factor_two_dropped" else 2) * scale
    each = slope * (share if reading == "batch_dropped" else share / B)
    return np.reshape(loss, (1,)), np.ones_like(g) * each
