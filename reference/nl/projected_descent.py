"""Eq. 27-29: gradient descent with an L2 inner objective, one sample."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.projected_descent_families import SINGLE
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.projected_descent"
READINGS = {
    "derived": "W - eta (W x + u) x^T",
    "literal": "W - (W x + eta u) x^T, as printed",
    "normalized": "W - (W x / |x|^2 + eta u) x^T, a true projection",
    "prox": "W - eta / (1 + eta |x|^2) (W x + u) x^T, the exact minimiser",
    "prox_unit": "W - eta / (1 + eta) (W x + u) x^T, the minimiser for |x| = 1",
    "printed_objective_half": "W - eta (W x - u) x^T",
    "printed_objective_full": "W - 2 eta (W x - u) x^T",
}
WRONG = {
    "plain_gd": "W - eta u x^T: no decay",
    "decay_only": "W (I - eta x x^T): the gradient is missing",
    "project_gradient": "W - eta u x^T Pi: the update vanishes",
    "grad_then_project": "(W - eta u x^T) Pi: the gradient is erased",
    "grad_then_decay": "(W - eta u x^T) (I - eta x x^T)",
    "scalar_decay": "(1 - eta) W - eta u x^T",
    "left_decay": "(I - eta x x^T) W - eta u x^T (square only)",
    "factor_two": "W - 2 eta u x^T: shapes the gradient and hides a factor",
    "ascent": "W + eta (W x + u) x^T",
    "gradient_normalized": "the gradient along x / |x|^2 as well",
    "lead_term": "a gradient-difference term from rest, g + 1/2 (g - 0): x is never seen",
}


def projected_descent_two_updates(
    W: F64, x: F64, u: F64, eta: float, *, reading: str = "derived"
) -> F64:
    """Write the two rank-1 updates apart: W - (c W x) x^T - (b u) x^T."""
    c, b = _coefficients(eta, np.sum(x * x), reading)
    return W - np.outer(c * (W @ x), x) - np.outer(b * u, x)


def projected_descent_common_factor(
    W: F64, x: F64, u: F64, eta: float, *, reading: str = "derived"
) -> F64:
    """Take the factor out where both terms share it: W - c (W x + u) x^T."""
    c, _ = _coefficients(eta, np.sum(x * x), reading)
    return W - np.outer(c * (W @ x + u), x)


def projected_descent_unit_vector(W: F64, x: F64, u: F64, eta: float) -> F64:
    """Write ``normalized`` with the unit vector: W - (W v) v^T - eta u x^T, v = x / |x|."""
    norm = np.sqrt(np.sum(x * x))
    v = x / np.where(norm > 0, norm, 1)
    return W - np.outer(W @ v, v) - np.outer(eta * u, x)


def _forms() -> dict[str, tuple[partial[F64], ...]]:
    shared = ("derived", "prox", "prox_unit")
    forms = {}
    for reading in READINGS:
        functions = [projected_descent_two_updates]
        if reading in shared:
            functions.append(projected_descent_common_factor)
        forms[reading] = tuple(partial(function, reading=reading) for function in functions)
    forms["normalized"] += (partial(projected_descent_unit_vector),)
    return forms


@equation(
    ID,
    title="Gradient descent with an L2 inner objective",
    source="Nested Learning, NeurIPS 2025",
    numbers=("27", "28", "29"),
    grade="as printed, corrected",
    formula="W' = W (I - eta x x^T) - eta u x^T = W - eta (W x + u) x^T",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("W", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "weights"),
        Symbol("x", ("d_in",), Domain("real", -2.0, 2.0), "layer input"),
        Symbol("u", ("d_out",), Domain("real", -2.0, 2.0), "local surprise, the gradient at W x"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
    ),
    outputs=(Symbol("W_next", ("d_out", "d_in"), Domain("real"), "weights after the step"),),
    readings=READINGS,
    wrong=WRONG,
    forms=_forms(),
    families=SINGLE,
    notes="The print omits eta on the decay and its objective has the other sign of u. Not plain "
    "descent: with a squared loss it converges to W x = v / 2, and u = 0 still moves W.",
    errata=errata("E18", "E19", "E20", "E21"),
    coincide=(
        Coincidence(("literal", "normalized"), "|x| = 1", "unit_input"),
        Coincidence(("prox", "prox_unit"), "|x| = 1", "unit_input"),
        Coincidence(("derived", "literal"), "eta = 1", "unit_eta"),
        Coincidence(("derived", "normalized"), "eta |x|^2 = 1"),
        Coincidence(("derived", "prox", "prox_unit"), "u = -W x", "fixed_point"),
        Coincidence(("derived", "literal", "normalized", "plain_gd"), "W x = 0"),
    ),
)
def projected_descent(W: F64, x: F64, u: F64, eta: float, *, reading: str = "derived") -> F64:
    """Take one step of descent on 1/2 |W x + u|^2 with u, the gradient at y = W x, held fixed.

    Equation: Nested Learning (NeurIPS 2025), Eq. 27-29, corrected
        W_{t+1} = W_t (I - eta x_t x_t^T) - eta u_t x_t^T
    Shapes: W (d_out, d_in); x (d_in,); u (d_out,); eta a scalar.
    Readings, all of the shape W - (c W x + b u) x^T, with n = |x|^2:
        derived                 c = b = eta
        literal                 c = 1,                b = eta      as printed
        normalized              c = 1 / n (0 at x=0), b = eta      a true projection
        prox                    c = b = eta / (1 + eta n)          the exact minimiser
        prox_unit               c = b = eta / (1 + eta)            the same, only for |x| = 1
        printed_objective_half  c = eta,              b = -eta
        printed_objective_full  c = 2 eta,            b = -2 eta
    """
    if reading in WRONG:
        return _wrong(W, x, u, eta, reading)
    c, b = _coefficients(eta, np.sum(x * x), reading)
    return W - np.outer(c * (W @ x) + b * u, x)


def _coefficients(eta: float, n: Scalar, reading: str) -> tuple[Scalar, Scalar]:
    """Give (c, b) of the decay and of the gradient; n = |x|^2."""
    if reading == "derived":
        return eta, eta
    if reading == "literal":
        return 1, eta
    if reading == "normalized":
        return _inverse(n), eta
    if reading in ("prox", "prox_unit"):
        factor = eta / (1 + eta * n) if reading == "prox" else eta / (1 + eta)
        return factor, factor
    if reading == "printed_objective_half":
        return eta, -eta
    if reading == "printed_objective_full":
        return 2 * eta, -2 * eta
    raise UnknownReading(ID, reading, (*READINGS, *WRONG))


def _inverse(n: Scalar) -> F64:
    """Give 1 / n, and 0 at n = 0: a zero input has no direction to project out."""
    return np.where(n > 0, 1 / np.where(n > 0, n, 1), 0)


def _wrong(W: F64, x: F64, u: F64, eta: float, reading: str) -> F64:
    gradient: F64 = np.outer(u, x)
    descended = W - eta * gradient
    if reading == "plain_gd":
        result = descended
    elif reading == "decay_only":
        result = W - np.outer(eta * (W @ x), x)
    elif reading == "project_gradient":
        result = W - eta * (gradient - _along(gradient, x, _inverse(np.sum(x * x))))
    elif reading == "grad_then_project":
        result = descended - _along(descended, x, _inverse(np.sum(x * x)))
    elif reading == "grad_then_decay":
        result = descended - _along(descended, x, eta)
    elif reading == "scalar_decay":
        result = (1 - eta) * W - eta * gradient
    elif reading == "left_decay":
        if W.shape[0] != W.shape[1]:
            raise NotApplicable(ID, reading, f"d_out = d_in, got {W.shape[0]} and {W.shape[1]}")
        result = W - np.outer(eta * x, x @ W) - eta * gradient
    elif reading == "factor_two":
        result = W - 2 * eta * gradient
    elif reading == "lead_term":
        result = W - 1.5 * eta * gradient
    elif reading == "ascent":
        result = W + np.outer(eta * (W @ x + u), x)
    else:
        result = W - np.outer(eta * (W @ x), x) - _inverse(np.sum(x * x)) * eta * gradient
    return result


def _along(matrix: F64, x: F64, c: Scalar) -> F64:
    """Give the part c (matrix x) x^T of a matrix."""
    return np.outer(c * (matrix @ x), x)
