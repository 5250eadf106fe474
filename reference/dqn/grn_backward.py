"""Gated residual network, backward: from the gradient at the output to all its parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.activations import sigmoid
from trueup.reference.dqn.layer_norm_backward import layer_norm_backward, layer_norm_backward_affine
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.grn_backward"
EPS = 1e-5
READINGS = ("full",)
OF_LAYER_NORM = {
    "elementwise": "dy = d_out gamma rstd: the known defect of the programme",
    "mean_missing": "dy without sum(g)",
    "projection_missing": "dy without xhat sum(g xhat)",
    "unbiased": "the projection divided by D - 1",
    "gamma_missing_in_sums": "the sums run over d_out",
    "xhat_of_next_row": "another row's saved xhat",
    "dgamma_from_y": "dgamma from the centred y, not from xhat",
}
WRONG_FORMULAS = OF_LAYER_NORM | {
    "halves_swapped": "du = [dgate, dv]",
    "gate_missing": "dv = dq",
    "sigmoid_slope_missing": "dgate = dq v s",
    "residual_omitted": "dx = da W_a",
    "elu_slope_one": "da = de, also where a < 0",
    "elu_slope_saved": "da = de e where a < 0: expm1 without its + 1",
    "e_of_next_row": "dW_b from another site's saved e",
    "dW_b_transposed_rows": "dW_b with value and gate rows exchanged",
    "db_averaged": "db_a and db_b divided by B",
}
WRONG = tuple(WRONG_FORMULAS)


def _prepare(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    """Make the saved tensors such as a forward pass saves them."""
    y, u = np.asarray(values["xhat"]), np.asarray(values["u"])
    centred = y - y.mean(axis=1, keepdims=True)
    rstd = 1.0 / np.sqrt((centred * centred).mean(axis=1) + EPS)
    e = np.asarray(values["e"])
    return values | {
        "xhat": centred * rstd[:, np.newaxis],
        "rstd": rstd,
        "s": sigmoid(u[:, u.shape[1] // 2 :]),
        "e": np.where(e > 0.0, e, np.expm1(np.minimum(e, 0.0))),
    }


def _offset_gradient(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"d_out": 30.0 + np.asarray(values["d_out"])}


def _aligned_gradient(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    noise = 0.1 * np.asarray(values["d_out"])
    return values | {"d_out": np.asarray(values["xhat"]) + noise}


def _dead_units(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"e": -0.2 - np.abs(np.asarray(values["e"]))}


def _no_gain(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"gamma": np.zeros_like(values["gamma"])}


FAMILIES = (
    Family("offset_gradient", "mean of d_out far above its spread", _offset_gradient),
    Family("aligned_gradient", "d_out along xhat: sum(g xhat) matters", _aligned_gradient),
    Family("dead_units", "every a below 0: the slope of ELU matters", _dead_units),
    Family("no_gain", "gamma = 0: dx is 0, and mistakes in dy are hidden", _no_gain, True),
)


def grn_backward_affine(
    d_out: F64,
    x: F64,
    W_a: F64,
    W_b: F64,
    gamma: F64,
    e: F64,
    u: F64,
    s: F64,
    xhat: F64,
    rstd: F64,
    W_res: F64 | None = None,
) -> tuple[F64, ...]:
    """Write dy as rstd g + (a xhat + c), and the two halves of W_b as two products."""
    dy, dgamma, dbeta = layer_norm_backward_affine(d_out, xhat, rstd, gamma)
    half = gamma.shape[0]
    dv = dy * s
    dgate = (dv * u[:, :half]) * (1.0 - s)
    de = dv @ W_b[:half] + dgate @ W_b[half:]
    da = np.where(e > 0.0, de, de * e + de)
    du = np.concatenate([dv, dgate], axis=1)
    through = dy if W_res is None else dy @ W_res
    dx = through + da @ W_a
    bias = np.sum(da, axis=0), np.sum(du, axis=0)
    result = (dx, da.T @ x, bias[0], du.T @ e, bias[1], dgamma, dbeta)
    return result if W_res is None else (*result, dy.T @ x)


_OUT = ("B", "D")


@equation(
    ID,
    title="Gated residual network, backward",
    source="DQN programme, GRN block; temporal fusion transformer, arXiv:1912.09363",
    grade="fixed by the programme",
    formula="dy by the full layer norm Jacobian; du = [dy s, dy v s (1 - s)]; "
    "da = (du W_b) (e > 0 ? 1 : e + 1); dx = da W_a + dy W_res",
    axes=("B", "D_in", "H", "D"),
    inputs=(
        Symbol("d_out", _OUT, Domain("real", -2.0, 2.0), "gradient at the output"),
        Symbol("x", ("B", "D_in"), Domain("real", -2.0, 2.0), "block input"),
        Symbol("W_a", ("H", "D_in"), Domain("real", -1.0, 1.0), "first linear"),
        Symbol("W_b", ("2 * D", "H"), Domain("real", -1.0, 1.0), "second linear"),
        Symbol("gamma", ("D",), Domain("real", -2.0, 2.0), "gain of the layer norm"),
        Symbol("e", ("B", "H"), Domain("real", -2.0, 2.0), "saved ELU output"),
        Symbol("u", ("B", "2 * D"), Domain("real", -2.0, 2.0), "saved value and gate"),
        Symbol("s", _OUT, Domain("unit", 0.0, 1.0), "saved sigmoid of the gate"),
        Symbol("xhat", _OUT, Domain("real", -2.0, 2.0), "saved normalised rows"),
        Symbol("rstd", ("B",), Domain("positive", 0.2, 5.0), "saved 1 / sqrt(var + eps)"),
        Symbol(
            "W_res",
            ("D", "D_in"),
            Domain("real", -1.0, 1.0),
            "projection of the residual; the identity if left out",
            optional=True,
        ),
    ),
    outputs=(
        Symbol("dx", ("B", "D_in"), Domain("real"), "gradient of x"),
        Symbol("dW_a", ("H", "D_in"), Domain("real"), "gradient of W_a"),
        Symbol("db_a", ("H",), Domain("real"), "gradient of b_a"),
        Symbol("dW_b", ("2 * D", "H"), Domain("real"), "gradient of W_b"),
        Symbol("db_b", ("2 * D",), Domain("real"), "gradient of b_b"),
        Symbol("dgamma", ("D",), Domain("real"), "gradient of gamma"),
        Symbol("dbeta", ("D",), Domain("real"), "gradient of beta"),
        Symbol("dW_res", ("D", "D_in"), Domain("real"), "gradient of W_res", optional=True),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"full": (grn_backward_affine,)},
    families=FAMILIES,
    notes="The slope of ELU comes from the saved e (a > 0 where e > 0). gamma = 0 hides every "
    "mistake in dy.",
    prepare=_prepare,
)
def grn_backward(
    d_out: F64,
    x: F64,
    W_a: F64,
    W_b: F64,
    gamma: F64,
    e: F64,
    u: F64,
    s: F64,
    xhat: F64,
    rstd: F64,
    W_res: F64 | None = None,
    *,
    reading: str = "full",
) -> tuple[F64, ...]:
    """Take a gradient back through a gated residual network.

    Equation: DQN programme, GRN block; dy, dgamma, dbeta as in dqn.layer_norm_backward, then
        dv = dy s;  dgate = dy v s (1 - s);  du = [dv, dgate]
        dW_b = du^T e;  db_b = sum_b du;  de = du W_b;  da = de (e > 0 ? 1 : e + 1)
        dW_a = da^T x;  db_a = sum_b da;  dx = da W_a + (dy W_res, or dy);  dW_res = dy^T x
    Shapes: d_out, s, xhat (B, D); x (B, D_in); W_a (H, D_in); W_b (2 D, H); gamma (D,);
    e (B, H); u (B, 2 D); rstd (B,); W_res (D, D_in).
    Returns (dx, dW_a, db_a, dW_b, db_b, dgamma, dbeta), and dW_res where W_res is given.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if W_res is None and x.shape[1] != gamma.shape[0]:
        raise NotApplicable(ID, reading, "W_res where D_in differs from D")
    of_norm = reading if reading in OF_LAYER_NORM else "full"
    dy, dgamma, dbeta = layer_norm_backward(d_out, xhat, rstd, gamma, reading=of_norm)
    du = _through_gate(dy, u, s, reading)
    units = np.concatenate([e[1:], e[:1]]) if reading == "e_of_next_row" else e
    dW_b = du.T @ units
    half = gamma.shape[0]
    if reading == "dW_b_transposed_rows":
        dW_b = np.concatenate([dW_b[half:], dW_b[:half]])
    da = _through_elu(du @ W_b, e, reading)
    dx = da @ W_a
    if reading != "residual_omitted":
        dx = dx + (dy if W_res is None else dy @ W_res)
    db_a, db_b = np.sum(da, axis=0), np.sum(du, axis=0)
    if reading == "db_averaged":
        db_a, db_b = db_a / x.shape[0], db_b / x.shape[0]
    result = (dx, da.T @ x, db_a, dW_b, db_b, dgamma, dbeta)
    return result if W_res is None else (*result, dy.T @ x)


def _through_gate(dy: F64, u: F64, s: F64, reading: str) -> F64:
    """Give du, the gradient at value and gate."""
    value = u[:, : s.shape[1]]
    dv = dy if reading == "gate_missing" else dy * s
    dgate = dy * value * s if reading == "sigmoid_slope_missing" else dy * value * s * (1.0 - s)
    halves = [dgate, dv] if reading == "halves_swapped" else [dv, dgate]
    return np.concatenate(halves, axis=1)


def _through_elu(de: F64, e: F64, reading: str) -> F64:
    """Give da from the saved output of ELU."""
    if reading == "elu_slope_one":
        return de
    below = e if reading == "elu_slope_saved" else e + 1.0
    return de * np.where(e > 0.0, 1.0, below)
