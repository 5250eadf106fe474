"""Eq. 2-4 and 25-26: gradient descent, one sample: the weights take in an outer product."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "nl.gradient_descent"
READINGS = ("default",)
WRONG_FORMULAS = {
    "ascent": "W + eta u x^T",
    "rate_missing": "W - u x^T",
    "decayed": "(1 - eta) W - eta u x^T",
    "input_normalized": "W - eta u x^T / |x|^2",
    "outer_swapped": "W - eta x u^T, square only",
    "stale_input": "W - eta u x_prev^T: Eq. 6 as printed, the input of another sample",
    "input_decay": "W (I - eta x x^T) - eta u x^T: Eq. 28, which is another rule",
}
WRONG = tuple(WRONG_FORMULAS)


def _no_surprise(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"u": np.zeros_like(values["u"])}


def _no_input(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"x": np.zeros_like(values["x"])}


FAMILIES = (
    Family("no_surprise", "u = 0: the weights stay as they are", _no_surprise),
    Family("no_input", "x = 0: the weights stay as they are", _no_input, right_kernel_only=True),
)


def gradient_descent_by_rows(W: F64, x: F64, u: F64, eta: float, x_prev: F64 | None = None) -> F64:
    """Eq. 4 with the rate taken into the surprise first, W - (eta u) x^T; W (d_out, d_in)."""
    return W - np.outer(eta * u, x)


@equation(
    ID,
    title="Gradient descent",
    source="Nested Learning, NeurIPS 2025",
    numbers=("2", "3", "4", "25", "26"),
    grade="as printed",
    formula="W' = W - eta u x^T,  u = grad_y L at y = W x",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("W", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "weights"),
        Symbol("x", ("d_in",), Domain("real", -2.0, 2.0), "layer input"),
        Symbol("u", ("d_out",), Domain("real", -2.0, 2.0), "local surprise, the gradient at y"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
        Symbol(
            "x_prev",
            ("d_in",),
            Domain("real", -2.0, 2.0),
            "input of the sample before; read by 'stale_input' only",
            optional=True,
        ),
    ),
    outputs=(Symbol("W_next", ("d_out", "d_in"), Domain("real"), "weights after the step"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"default": (gradient_descent_by_rows,)},
    families=FAMILIES,
    notes="Eq. 2 defines training, W* = arg min_W L(W; D), and has no algorithm; Eq. 3-4 and 25-26 "
    "are one step on it. Eq. 25-26 index the sample by t where Eq. 3-4 have t + 1, and are one "
    "gradient step on <W x, u> with u held constant.",
    errata=errata("E1", "E2", "E25"),
)
def gradient_descent(
    W: F64, x: F64, u: F64, eta: float, x_prev: F64 | None = None, *, reading: str = "default"
) -> F64:
    """Take one step of gradient descent on one sample.

    Equation: Nested Learning (NeurIPS 2025), Eq. 3-4, and Eq. 25-26 with the sample indexed t
        W_{t+1} = W_t - eta_{t+1} u_{t+1} x_{t+1}^T,   u = grad_y L at y = W_t x_{t+1}
    Shapes: W (d_out, d_in); x (d_in,); u (d_out,); eta a scalar.
    u is evaluated at the old weights and held constant; for a batch see nl.proximal_descent.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "stale_input":
        if x_prev is None:
            raise NotApplicable(ID, reading, "x_prev, the input of the sample before")
        return W - eta * np.outer(u, x_prev)
    if reading == "outer_swapped":
        if W.shape[0] != W.shape[1]:
            raise NotApplicable(ID, reading, f"d_out = d_in, got {W.shape[0]} and {W.shape[1]}")
        return W - eta * np.outer(x, u)
    gradient = np.outer(u, x)  # (d_out, d_in)
    if reading == "ascent":
        return W + eta * gradient
    if reading == "rate_missing":
        return W - gradient
    if reading == "decayed":
        return (1 - eta) * W - eta * gradient
    if reading == "input_normalized":
        return W - eta * gradient / np.sum(x * x)
    if reading == "input_decay":
        return W - eta * np.outer(W @ x + u, x)
    return W - eta * gradient
