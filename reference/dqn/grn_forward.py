"""Gated residual network, forward: two linears, ELU, GLU, residual, layer normalisation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import elu, sigmoid
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.grn_forward"
EPS = 1e-5
READINGS = ("glu",)
WRONG_FORMULAS = {
    "sigmoid_gate": "q = sigmoid(u[:, :D]) without a value half: the supervised variant",
    "halves_swapped": "the first half of u is the gate, the second the value",
    "gate_dropped": "q = v",
    "tanh_gate": "s = tanh(u[:, D:])",
    "relu_for_elu": "e = max(a, 0)",
    "elu_missing_one": "e = exp(a) for a < 0",
    "residual_omitted": "y = q",
    "b_a_dropped": "a = x W_a^T",
    "b_b_dropped": "u = e W_b^T",
    "unbiased": "var over D - 1",
    "eps_outside": "rstd = 1 / (sqrt(var) + eps)",
    "eps_dropped": "rstd = 1 / sqrt(var)",
    "mean_kept": "xhat = y rstd",
    "beta_dropped": "out = gamma xhat",
    "relu_on_out": "out = max(gamma xhat + beta, 0): consumers that expect no sign",
}
WRONG = tuple(WRONG_FORMULAS)
Saved = tuple[F64, F64, F64, F64, F64, F64]


def _residual_offset(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"x": 100.0 + np.asarray(values["x"])}


def _near_eps(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    tiny = {name: 3e-3 * np.asarray(values[name]) for name in ("x", "W_b", "b_b")}
    return values | tiny


def _shut_gate(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    b_b = np.array(values["b_b"])
    b_b[b_b.shape[0] // 2 :] = -90.0
    return values | {"b_b": b_b}


def _negative_a(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    b_a = np.asarray(values["b_a"])
    return values | {"b_a": -0.5 - np.abs(b_a), "W_a": 0.2 * np.asarray(values["W_a"])}


FAMILIES = (
    Family("residual_offset", "mean of y far above its spread", _residual_offset),
    Family("near_eps", "variance near eps: its place shows", _near_eps),
    Family("shut_gate", "the gate is shut: the layer norm of the residual", _shut_gate, True),
    Family("negative_a", "most of a below 0: the exponential branch of ELU", _negative_a),
)


def grn_forward_by_variance(
    x: F64,
    W_a: F64,
    b_a: F64,
    W_b: F64,
    b_b: F64,
    gamma: F64,
    beta: F64,
    W_res: F64 | None = None,
    eps: float = EPS,
) -> Saved:
    """Write the residual as two rows of one product, the mean as a sum times the rounded 1 / D."""
    e = elu(x @ W_a.T + b_a)
    u = e @ W_b.T + b_b
    half = gamma.shape[0]
    s = sigmoid(u[:, half:])
    y = _residual(x, W_res, half) + u[:, :half] * s
    per_column = 1.0 / np.asarray(float(half))
    centred = y - np.sum(y, axis=1, keepdims=True) * per_column
    rstd = 1.0 / np.sqrt(np.sum(centred * centred, axis=1) * per_column + eps)
    xhat = centred * rstd[:, np.newaxis]
    return gamma * xhat + beta, e, u, s, xhat, rstd


_IN = ("B", "D_in")
_OUT = ("B", "D")


@equation(
    ID,
    title="Gated residual network, forward",
    source="DQN programme, GRN block; temporal fusion transformer, arXiv:1912.09363",
    grade="structure fixed by the programme, eps proposed",
    formula="out = LN((e W_b^T + b_b)[value] sigmoid(gate) + residual),  e = ELU(x W_a^T + b_a)",
    axes=("B", "D_in", "H", "D"),
    inputs=(
        Symbol("x", _IN, Domain("real", -2.0, 2.0), "block input"),
        Symbol("W_a", ("H", "D_in"), Domain("real", -1.0, 1.0), "first linear"),
        Symbol("b_a", ("H",), Domain("real", -1.0, 1.0), "its bias"),
        Symbol("W_b", ("2 * D", "H"), Domain("real", -1.0, 1.0), "second linear: value, gate"),
        Symbol("b_b", ("2 * D",), Domain("real", -1.0, 1.0), "its bias"),
        Symbol("gamma", ("D",), Domain("real", -2.0, 2.0), "gain of the layer norm"),
        Symbol("beta", ("D",), Domain("real", -2.0, 2.0), "bias of the layer norm"),
        Symbol(
            "W_res",
            ("D", "D_in"),
            Domain("real", -1.0, 1.0),
            "projection of the residual; the identity if left out, which needs D = D_in",
            optional=True,
        ),
        Symbol("eps", (), Domain("positive", 1e-6, 1e-4), "added to the variance", optional=True),
    ),
    outputs=(
        Symbol("out", _OUT, Domain("real"), "block output, signed"),
        Symbol("e", ("B", "H"), Domain("real"), "saved: ELU output"),
        Symbol("u", ("B", "2 * D"), Domain("real"), "saved: value and gate before the sigmoid"),
        Symbol("s", _OUT, Domain("unit"), "saved: sigmoid of the gate"),
        Symbol("xhat", _OUT, Domain("real"), "saved: normalised rows"),
        Symbol("rstd", ("B",), Domain("positive"), "saved: 1 / sqrt(var + eps)"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"glu": (grn_forward_by_variance,)},
    families=FAMILIES,
    notes="The published block has one more linear between ELU and GLU, without an activation: "
    "it composes into W_b. Five tensors are saved; x is the previous layer's and must still be "
    "there in the backward pass. The variance is biased and needs two passes.",
)
def grn_forward(
    x: F64,
    W_a: F64,
    b_a: F64,
    W_b: F64,
    b_b: F64,
    gamma: F64,
    beta: F64,
    W_res: F64 | None = None,
    eps: float = EPS,
    *,
    reading: str = "glu",
) -> Saved:
    """Run a gated residual network and give what its backward pass needs.

    Equation: DQN programme, GRN block
        a = x W_a^T + b_a;  e = a where a > 0, expm1(a) elsewhere
        u = e W_b^T + b_b;  v = u[:, :D];  s = sigmoid(u[:, D:])
        y = v s + r;  r = x W_res^T, or x
        xhat = (y - mean y) rstd;  rstd = 1 / sqrt(var y + eps), the biased variance
        out = gamma xhat + beta
    Shapes: x (B, D_in); W_a (H, D_in); b_a (H,); W_b (2 D, H); b_b (2 D,); gamma, beta (D,);
    W_res (D, D_in). Returns (out, e, u, s, xhat, rstd).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    half = gamma.shape[0]
    a = x @ W_a.T + (0.0 if reading == "b_a_dropped" else b_a)
    e = _activated(a, reading)
    u = e @ W_b.T + (0.0 if reading == "b_b_dropped" else b_b)
    value, gate = u[:, :half], u[:, half:]
    if reading == "halves_swapped":
        value, gate = gate, value
    s = np.tanh(gate) if reading == "tanh_gate" else sigmoid(gate)
    q = value * s
    if reading == "sigmoid_gate":
        q = sigmoid(value)
    elif reading == "gate_dropped":
        q = value
    y = q if reading == "residual_omitted" else q + _residual(x, W_res, half)
    xhat, rstd = normalised(y, eps, reading)
    out = gamma * xhat if reading == "beta_dropped" else gamma * xhat + beta
    return np.maximum(out, 0.0) if reading == "relu_on_out" else out, e, u, s, xhat, rstd


def _activated(a: F64, reading: str) -> F64:
    if reading == "relu_for_elu":
        return np.maximum(a, 0.0)
    return np.where(a > 0.0, a, np.exp(a)) if reading == "elu_missing_one" else elu(a)


def _residual(x: F64, W_res: F64 | None, half: int) -> F64:
    if W_res is not None:
        return x @ W_res.T
    if x.shape[1] != half:
        raise NotApplicable(ID, "glu", "W_res where D_in differs from D")
    return x


def normalised(y: F64, eps: float, reading: str = "glu") -> tuple[F64, F64]:
    """Give (xhat, rstd) of the rows of y, or what the wrong variants make of them."""
    size = y.shape[1]
    centred = y - np.mean(y, axis=1, keepdims=True)
    if reading == "unbiased":
        if size < 2:
            raise NotApplicable(ID, reading, "D of at least 2")
        var = np.sum(centred * centred, axis=1) / (size - 1)
    else:
        var = np.mean(centred * centred, axis=1)
    if reading == "eps_outside":
        rstd = 1.0 / (np.sqrt(var) + eps)
    elif reading == "eps_dropped":
        with np.errstate(divide="ignore"):
            rstd = 1.0 / np.sqrt(var)
    else:
        rstd = 1.0 / np.sqrt(var + eps)
    with np.errstate(invalid="ignore"):
        xhat = (y if reading == "mean_kept" else centred) * rstd[:, np.newaxis]
    return xhat, rstd
