"""Eq. 21-22 for one sample, whose gradient has rank 1."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.delta_momentum import moved_weights
from trueup.reference.nl.delta_momentum_families import COINCIDE, RANK1
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.delta_momentum_rank1"
READINGS = (
    "derived",
    "literal_right",
    "literal_left",
    "left_gg",
    "scalar",
    "flat_outer",
    "printed_objective_half",
    "printed_objective_full",
)
WRONG_FORMULAS = {
    "no_delta": "alpha m - eta u x^T: Eq. 20, without the quadratic term",
    "delta_only": "alpha m - eta |u|^2 (m x) x^T, without eta u x^T",
    "delta_sign": "alpha m + eta |u|^2 (m x) x^T - eta u x^T",
    "delta_doubled": "alpha m - 2 eta |u|^2 (m x) x^T - eta u x^T",
    "norm_omitted": "alpha m - eta (m x) x^T - eta u x^T",
    "norm_unsquared": "|u| for |u|^2",
    "norm_of_x": "|x|^2 for |u|^2",
    "alpha_complement": "(1 - alpha) m for alpha m",
    "flat_outer_eta": "alpha m - eta (u^T m x + 1) u x^T: a scalar-valued memory",
    "ascent": "W' = W - m'",
    "weights_from_old_m": "W' = W + m",
}
WRONG = tuple(WRONG_FORMULAS)


def rank1_two_updates(
    m: F64,
    u: F64,
    x: F64,
    alpha: float,
    eta: float,
    W: F64 | None = None,
    *,
    reading: str = "derived",
) -> F64 | tuple[F64, F64]:
    """Write the two rank-1 terms apart: alpha m - c |u|^2 (m x) x^T - b u x^T."""
    c, b = _right_coefficients(eta, reading)
    m_next = alpha * m - np.outer((c * np.sum(u * u)) * (m @ x), x) - np.outer(b * u, x)
    return m_next if W is None else (m_next, W + m_next)


def _forms() -> dict[str, tuple[partial[F64 | tuple[F64, F64]], ...]]:
    right = ("derived", "literal_right", "printed_objective_half", "printed_objective_full")
    return {reading: (partial(rank1_two_updates, reading=reading),) for reading in right}


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Delta-rule momentum, one sample",
    source="Nested Learning, NeurIPS 2025",
    numbers=("21", "22"),
    grade="derived from the corrected print",
    formula="m' = alpha m - eta (|u|^2 m x + u) x^T;  W' = W + m'",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "momentum"),
        Symbol("u", ("d_out",), Domain("real", -2.0, 2.0), "local surprise, the gradient at y"),
        Symbol("x", ("d_in",), Domain("real", -2.0, 2.0), "layer input"),
        Symbol("alpha", (), Domain("unit", 0.5, 0.99), "momentum factor"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights", optional=True),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "momentum after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step", optional=True),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms=_forms(),
    families=RANK1,
    notes="Exactly nl.delta_momentum at g = u x^T and P = I, in O(d_out d_in).",
    errata=errata("E14"),
    coincide=COINCIDE,
)
def delta_momentum_rank1(
    m: F64,
    u: F64,
    x: F64,
    alpha: float,
    eta: float,
    W: F64 | None = None,
    *,
    reading: str = "derived",
) -> F64 | tuple[F64, F64]:
    """Take one step of delta-rule momentum on a single sample, g = u x^T, P = I.

    Equation: Nested Learning (NeurIPS 2025), Eq. 21-22, with m g^T g = |u|^2 (m x) x^T
        m_{i+1} = alpha m - eta (|u|^2 m x + u) x^T
        W_{i+1} = W_i + m_{i+1}
    Shapes: m, W (d_out, d_in); u (d_out,); x (d_in,); alpha, eta scalars. g is never formed.
    Returns m_{i+1}, or (m_{i+1}, W_{i+1}) where W is given.
    Readings, those of nl.delta_momentum at g = u x^T:
        derived                 alpha m - (eta |u|^2 m x + eta u) x^T
        literal_right           alpha m - (|u|^2 m x + eta u) x^T
        literal_left            alpha m - |u|^2 x (x^T m) - eta u x^T     needs d_out = d_in
        left_gg                 alpha m - eta |x|^2 u (u^T m) - eta u x^T
        scalar                  (alpha - eta |u|^2 |x|^2) m - eta u x^T
        flat_outer              alpha m - (u^T m x + eta) u x^T
        printed_objective_half  alpha m - (eta |u|^2 m x - eta u) x^T
        printed_objective_full  alpha m - (2 eta |u|^2 m x - 2 eta u) x^T
    """
    if reading in READINGS:
        m_next = _read(m, u, x, alpha, eta, reading)
    elif W is None and reading in ("ascent", "weights_from_old_m"):
        raise NotApplicable(ID, reading, "weights W, which it updates wrongly")
    elif reading in WRONG:
        m_next = _wrong(m, u, x, alpha, eta, reading)
    else:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    return m_next if W is None else (m_next, moved_weights(W, m_next, m, reading))


def _read(m: F64, u: F64, x: F64, alpha: float, eta: float, reading: str) -> F64:
    uu, xx = np.sum(u * u), np.sum(x * x)
    if reading == "literal_left":
        if m.shape[0] != m.shape[1]:
            raise NotApplicable(ID, reading, f"d_out = d_in, got {m.shape[0]} and {m.shape[1]}")
        return alpha * m - np.outer(uu * x, x @ m) - np.outer(eta * u, x)
    if reading == "left_gg":
        return alpha * m - np.outer((eta * xx) * u, u @ m) - np.outer(eta * u, x)
    if reading == "scalar":
        return (alpha - eta * uu * xx) * m - np.outer(eta * u, x)
    if reading == "flat_outer":
        return alpha * m - np.outer((u @ (m @ x) + eta) * u, x)
    c, b = _right_coefficients(eta, reading)
    return alpha * m - np.outer(c * uu * (m @ x) + b * u, x)


def _right_coefficients(eta: float, reading: str) -> tuple[float, float]:
    """Give (c, b) of the readings of the shape alpha m - (c |u|^2 m x + b u) x^T."""
    if reading == "derived":
        return eta, eta
    if reading == "literal_right":
        return 1, eta
    if reading == "printed_objective_half":
        return eta, -eta
    if reading == "printed_objective_full":
        return 2 * eta, -2 * eta
    raise UnknownReading(ID, reading, READINGS)


def _wrong(m: F64, u: F64, x: F64, alpha: float, eta: float, reading: str) -> F64:
    uu: float = np.sum(u * u)
    mx, factor = m @ x, eta
    if reading == "no_delta":
        factor = 0
    elif reading == "delta_sign":
        factor = -eta
    elif reading == "delta_doubled":
        factor = 2 * eta
    elif reading == "norm_omitted":
        uu = 1
    elif reading == "norm_unsquared":
        uu = np.sqrt(uu)
    elif reading == "norm_of_x":
        uu = np.sum(x * x)
    elif reading == "delta_only":
        return alpha * m - np.outer(eta * uu * mx, x)
    elif reading == "alpha_complement":
        alpha = 1 - alpha
    elif reading == "flat_outer_eta":
        return alpha * m - np.outer((eta * (u @ mx) + eta) * u, x)
    return alpha * m - np.outer(factor * uu * mx + eta * u, x)
