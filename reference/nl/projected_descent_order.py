"""Eq. 28 where the surprise is a function of the weights: project first, last, or at once."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.projected_descent_families import ORDER
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.projected_descent_order"
READINGS = {
    "simultaneous": "W D - eta u(W) x^T, D = I - x x^T / |x|^2",
    "project_then_grad": "W D - eta u(W D) x^T",
    "grad_then_project": "(W - eta u(W) x^T) D",
    "simultaneous_derived": "W D - eta u(W) x^T, D = I - eta x x^T",
    "project_then_grad_derived": "W D - eta u(W D) x^T, D = I - eta x x^T",
    "grad_then_project_derived": "(W - eta u(W) x^T) D, D = I - eta x x^T",
}
WRONG = {
    "plain_gd": "W - eta (W x - v) x^T",
    "decay_only": "W (I - c x x^T)",
    "project_gradient": "the projection is applied to the gradient: no update is left",
    "target_added": "u = W x + v",
    "surprise_is_target": "u = -v although W x is not 0",
    "factor_two": "u = 2 (W x - v): the squared loss without its half",
}


def projected_descent_order_factored(
    W: F64, x: F64, v: F64, eta: float, *, reading: str = "simultaneous"
) -> F64:
    """Take W' = W - (a W x - b v) x^T, with a and b worked out for each order."""
    order, c = _parts(reading, x, eta)
    n = np.sum(x * x)
    y = W @ x
    if order == "simultaneous":
        step = (c + eta) * y - eta * v
    elif order == "project_then_grad":
        step = c * y + eta * ((1 - c * n) * y - v)
    else:
        descended = y - eta * n * (y - v)  # (W - eta u x^T) x
        step = eta * (y - v) + c * descended
    return W - np.outer(step, x)


@equation(
    ID,
    title="Gradient descent with an L2 inner objective, order of projection and gradient",
    source="Nested Learning, NeurIPS 2025",
    numbers=("28",),
    grade="derived from the corrected print",
    formula="W' = W (I - c x x^T) - eta u x^T, u = W x - v",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("W", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "weights"),
        Symbol("x", ("d_in",), Domain("real", -2.0, 2.0), "layer input"),
        Symbol("v", ("d_out",), Domain("real", -2.0, 2.0), "target of the squared loss"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
    ),
    outputs=(Symbol("W_next", ("d_out", "d_in"), Domain("real"), "weights after the step"),),
    readings=READINGS,
    wrong=WRONG,
    forms={
        reading: (partial(projected_descent_order_factored, reading=reading),)
        for reading in READINGS
    },
    families=ORDER,
    notes="Projecting last erases the gradient: the result does not depend on the target. With u "
    "handed over as a fixed vector, `project_then_grad` and `simultaneous` are the same, so only "
    "a loss, or a callback from W x to u, tells them apart.",
    errata=errata("E19", "E20", "E21"),
    coincide=(
        Coincidence(
            ("simultaneous", "project_then_grad", "grad_then_project"), "x = 0", "no_input"
        ),
    ),
)
def projected_descent_order(
    W: F64, x: F64, v: F64, eta: float, *, reading: str = "simultaneous"
) -> F64:
    """Take one step of Eq. 28 on the task loss 1/2 |W x - v|^2, whose surprise is u = W x - v.

    Equation: Nested Learning (NeurIPS 2025), Eq. 28; where the projection is applied
        simultaneous       W' = W D - eta u(W) x^T                  as printed
        project_then_grad  W' = W D - eta u(W D) x^T                u recomputed at W D
        grad_then_project  W' = (W - eta u(W) x^T) D
    Shapes: W (d_out, d_in); x (d_in,); v (d_out,); eta a scalar.
    Readings: the three with D = I - x x^T / |x|^2 (I at x = 0), a true projection; and
    simultaneous_derived, project_then_grad_derived, grad_then_project_derived with
    D = I - eta x x^T.
    """
    if reading in WRONG:
        return _wrong(W, x, v, eta, reading)
    order, c = _parts(reading, x, eta)
    if order == "grad_then_project":
        return _decayed(W - np.outer(eta * (W @ x - v), x), x, c)
    projected = _decayed(W, x, c)
    at = projected if order == "project_then_grad" else W
    return projected - np.outer(eta * (at @ x - v), x)


def _parts(reading: str, x: F64, eta: float) -> tuple[str, Scalar]:
    """Split a reading into the order and the factor c of D = I - c x x^T."""
    if reading not in READINGS:
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    if reading.endswith("_derived"):
        return reading.removesuffix("_derived"), eta
    n = np.sum(x * x)
    return reading, np.where(n > 0, 1 / np.where(n > 0, n, 1), 0)


def _decayed(W: F64, x: F64, c: Scalar) -> F64:
    return W - np.outer(c * (W @ x), x)


def _wrong(W: F64, x: F64, v: F64, eta: float, reading: str) -> F64:
    u = W @ x - v
    _, c = _parts("simultaneous", x, eta)
    if reading == "plain_gd":
        return W - np.outer(eta * u, x)
    if reading == "decay_only":
        return _decayed(W, x, c)
    if reading == "project_gradient":
        return W - _decayed(np.outer(eta * u, x), x, c)
    if reading == "target_added":
        u = W @ x + v
    elif reading == "surprise_is_target":
        u = -v
    else:
        u = 2 * u
    return _decayed(W, x, c) - np.outer(eta * u, x)
