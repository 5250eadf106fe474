"""Variable selection over six feature groups, backward."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import softmax
from trueup.reference.dqn.vsn_forward import _prepare as _bounds
from trueup.reference.dqn.vsn_forward import member, spread
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.vsn_backward"
READINGS = ("both_paths",)
WRONG_FORMULAS = {
    "gate_path_missing": "dx = dlogit W",
    "logit_path_missing": "dx = d gate",
    "sigma_missing_in_dw": "dw = sum d x",
    "softmax_diagonal": "dlogit = w dw, without - w sum(w dw)",
    "dw_from_out": "dw from the gated features",
    "last_feature_dropped": "the last group's dw ends one feature early",
    "pad_gradient_lost": "dx is 0 outside the groups on the gate path",
    "dlogit_of_next_row": "dW from another row's dlogit",
    "db_averaged": "db divided by B",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Ascending bounds, and weights of the simplex from the drawn ones."""
    values = _bounds(rng, sizes, values)
    return values | {"w": softmax(4.0 * np.asarray(values["w"]))}


def _no_weights(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"W": np.zeros_like(values["W"])}


def _one_group(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    w = np.array(values["w"])
    w[:, 2] += 3.0
    return values | {"w": w}


FAMILIES = (
    Family("no_weights", "W = 0: the logit path vanishes", _no_weights, True),
    Family("one_group", "one group has nearly all the weight", _one_group),
)


def vsn_backward_differences(
    d_out: F64, x: F64, W: F64, w: F64, gb: F64, sigma: float = 1.0
) -> tuple[F64, F64, F64]:
    """Write dlogit as w times the difference of dw from its mean under w, sums group by group."""
    group = member(gb, x.shape[1])
    dw = ((d_out * x) @ group.T) * sigma
    dlogit = w * dw - w * np.sum(w * dw, axis=1, keepdims=True)
    dx = dlogit @ W + d_out * spread(w * sigma, group)
    return dx, dlogit.T @ x, np.sum(dlogit, axis=0)


_X = ("B", "D")


@equation(
    ID,
    title="Variable selection over feature groups, backward",
    source="DQN programme, VSN block; temporal fusion transformer, arXiv:1912.09363",
    grade="fixed by the programme",
    formula="dw_g = sigma sum_{i in g} d_i x_i; dlogit = w (dw - sum w dw); dx = d gate + dlogit W",
    axes=("B", "D"),
    inputs=(
        Symbol("d_out", _X, Domain("real", -2.0, 2.0), "gradient at the output"),
        Symbol("x", _X, Domain("real", -2.0, 2.0), "features"),
        Symbol("W", ("6", "D"), Domain("real", -1.0, 1.0), "linear gate"),
        Symbol("w", ("B", "6"), Domain("simplex"), "saved weights of the groups"),
        Symbol("gb", ("7",), Domain("index", axis="D"), "ascending bounds of the six groups"),
        Symbol("sigma", (), Domain("positive", 0.5, 6.0), "scale of the gates: 1, or 6"),
    ),
    outputs=(
        Symbol("dx", _X, Domain("real"), "gradient of x"),
        Symbol("dW", ("6", "D"), Domain("real"), "gradient of W"),
        Symbol("db", ("6",), Domain("real"), "gradient of b"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"both_paths": (vsn_backward_differences,)},
    families=FAMILIES,
    notes="Two paths lead to x: through the gate, and through the logits. W = 0 hides the second.",
    prepare=_prepare,
)
def vsn_backward(
    d_out: F64, x: F64, W: F64, w: F64, gb: F64, sigma: float = 1.0, *, reading: str = "both_paths"
) -> tuple[F64, F64, F64]:
    """Take a gradient back through the selection.

    Equation: DQN programme, VSN block
        dw_g = sigma sum_{i in g} d_i x_i;  dlogit = w (dw - sum_g w_g dw_g)
        dx = d gate + dlogit W, gate = w sigma inside the groups and 1 outside
        dW = dlogit^T x;  db = sum_b dlogit
    Shapes: d_out, x (B, D); W (6, D); w (B, 6); gb (7,) integers. Returns (dx, dW, db).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    group = member(gb, x.shape[1])
    gate = spread(w * sigma, group)
    dw = _weights_gradient(d_out, x, group, gate, gb, reading)
    if reading != "sigma_missing_in_dw":
        dw = sigma * dw
    if reading == "softmax_diagonal":
        dlogit = w * dw
    else:
        dlogit = w * (dw - np.sum(w * dw, axis=1, keepdims=True))
    if reading == "pad_gradient_lost":
        gate = spread(w * sigma, group) * np.sum(group, axis=0)
    direct, through = d_out * gate, dlogit @ W
    dx = direct + through
    if reading == "gate_path_missing":
        dx = through
    elif reading == "logit_path_missing":
        dx = direct
    if reading == "dlogit_of_next_row":
        dlogit = np.concatenate([dlogit[1:], dlogit[:1]])
    db = np.sum(dlogit, axis=0)
    return dx, dlogit.T @ x, db / x.shape[0] if reading == "db_averaged" else db


def _weights_gradient(d_out: F64, x: F64, group: F64, gate: F64, gb: F64, reading: str) -> F64:
    """Give dw / sigma: products summed over each group."""
    product = d_out * (x * gate if reading == "dw_from_out" else x)
    if reading == "last_feature_dropped":
        product = np.where(np.arange(x.shape[1]) == gb[6] - 1, 0.0, product)
    # Each group by itself: a product outside it must not reach the sum, not even as 0 times NaN.
    sums = [np.sum(np.where(row > 0.0, product, 0.0), axis=1) for row in group]
    return np.stack(sums, axis=1)
