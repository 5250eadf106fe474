"""Eq. 21-22: momentum that forgets by the delta rule."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.delta_momentum_families import COINCIDE, FULL
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.delta_momentum"
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
    "p_transposed": "m (alpha I - eta g^T g) - eta P^T g",
    "g_right_p": "m (alpha I - eta g^T g) - eta g P, square only",
    "no_delta": "alpha m - eta P g: Eq. 20, without the quadratic term",
    "delta_only": "m (alpha I - eta g^T g), without the term of P",
    "delta_sign": "m (alpha I + eta g^T g) - eta P g",
    "delta_doubled": "m (alpha I - 2 eta g^T g) - eta P g",
    "p_term_without_eta": "m (alpha I - eta g^T g) - P g",
    "alpha_complement": "m ((1 - alpha) I - eta g^T g) - eta P g",
    "flat_outer_eta": "alpha m - eta <g, m> g - eta P g: a scalar-valued memory",
    "row_mean": "alpha m + (1 - alpha) (g + 0.1 row means of g), claimed to be the L2 objective",
    "ascent": "W' = W - m'",
    "weights_from_old_m": "W' = W + m",
}
WRONG = tuple(WRONG_FORMULAS)


def delta_momentum_formed(
    m: F64,
    g: F64,
    alpha: float,
    eta: float,
    P: F64 | None = None,
    W: F64 | None = None,
    *,
    reading: str = "derived",
) -> F64 | tuple[F64, F64]:
    """Eq. 22 read from the left, with the decay matrix formed: (alpha I - c g g^T) m - eta P g."""
    Pg = g if P is None else P @ g
    if reading == "left_gg":
        m_next = (alpha * np.eye(g.shape[0]) - eta * (g @ g.T)) @ m - eta * Pg
    elif reading == "literal_left":
        _square(g, reading)
        m_next = (alpha * np.eye(g.shape[1]) - g.T @ g) @ m - eta * Pg
    else:
        raise UnknownReading(ID, reading, READINGS)
    return m_next if W is None else (m_next, W + m_next)


def delta_momentum_factored(
    m: F64,
    g: F64,
    alpha: float,
    eta: float,
    P: F64 | None = None,
    W: F64 | None = None,
    *,
    reading: str = "derived",
) -> F64 | tuple[F64, F64]:
    """Eq. 22 as one step on the residual: alpha m - eta (m g^T + P) g, target - or + P."""
    target = np.eye(g.shape[0]) if P is None else P
    if reading == "derived":
        m_next = alpha * m - eta * ((m @ g.T + target) @ g)
    elif reading == "literal_right":
        m_next = alpha * m - (m @ g.T + eta * target) @ g
    elif reading == "printed_objective_half":
        m_next = alpha * m - eta * ((m @ g.T - target) @ g)
    elif reading == "printed_objective_full":
        m_next = alpha * m - (2 * eta) * ((m @ g.T - target) @ g)
    else:
        raise UnknownReading(ID, reading, READINGS)
    return m_next if W is None else (m_next, W + m_next)


def _forms(*readings: str) -> dict[str, tuple[partial[F64 | tuple[F64, F64]], ...]]:
    """Pair each reading with its other formula; none forms g^T g, which is d_in by d_in."""
    left = ("left_gg", "literal_left")
    return {
        reading: (
            partial(
                delta_momentum_formed if reading in left else delta_momentum_factored,
                reading=reading,
            ),
        )
        for reading in readings
    }


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Delta-rule momentum",
    source="Nested Learning, NeurIPS 2025",
    numbers=("21", "22"),
    grade="as printed, corrected",
    formula="m' = m (alpha I - eta g^T g) - eta P g;  W' = W + m'",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "momentum"),
        Symbol("g", _MATRIX, Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol("alpha", (), Domain("unit", 0.5, 0.99), "momentum factor"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
        Symbol(
            "P",
            ("d_out", "d_out"),
            Domain("real", -2.0, 2.0),
            "preconditioner, multiplies from the left; the identity if left out",
            optional=True,
        ),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights", optional=True),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "momentum after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step", optional=True),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms=_forms(
        "derived",
        "literal_right",
        "literal_left",
        "left_gg",
        "printed_objective_half",
        "printed_objective_full",
    ),
    families=FULL,
    notes="The print multiplies (d_in, d_in) from the left of (d_out, d_in), omits eta on the "
    "quadratic term and its objective has the other sign of P. Invisible on the first step from "
    "rest, at eta = 1, and where m is proportional to a g of rank 1.",
    errata=errata("E14"),
    coincide=COINCIDE,
)
def delta_momentum(
    m: F64,
    g: F64,
    alpha: float,
    eta: float,
    P: F64 | None = None,
    W: F64 | None = None,
    *,
    reading: str = "derived",
) -> F64 | tuple[F64, F64]:
    """Take one step of momentum that is itself fitted by the delta rule.

    Equation: Nested Learning (NeurIPS 2025), Eq. 21-22, corrected
        m_{i+1} = m_i (alpha_{i+1} I - eta_i g_i^T g_i) - eta_i P_i g_i
        W_{i+1} = W_i + m_{i+1}
    i.e. one step of size eta on 1/2 |m g^T + P|_F^2, plus the decay by alpha.
    Shapes: m, g, W (d_out, d_in); P (d_out, d_out), the identity if None; alpha, eta scalars.
    Returns m_{i+1}, or (m_{i+1}, W_{i+1}) where W is given.
    Readings (the print does not type-check, so its repair must be named):
        derived                 m (alpha I - eta g^T g) - eta P g
        literal_right           m (alpha I - g^T g) - eta P g
        literal_left            (alpha I - g^T g) m - eta P g        needs d_out = d_in
        left_gg                 (alpha I - eta g g^T) m - eta P g
        scalar                  (alpha - eta |g|_F^2) m - eta P g
        flat_outer              alpha m - <g, m> g - eta P g
        printed_objective_half  m (alpha I - eta g^T g) + eta P g
        printed_objective_full  m (alpha I - 2 eta g^T g) + 2 eta P g
    """
    if reading in READINGS:
        m_next = alpha * m - _delta(m, g, eta, reading) - _p_term(g, eta, P, reading)
    elif W is None and reading in ("ascent", "weights_from_old_m"):
        raise NotApplicable(ID, reading, "weights W, which it updates wrongly")
    elif reading in WRONG:
        m_next = _wrong(m, g, alpha, eta, P, reading)
    else:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    return m_next if W is None else (m_next, moved_weights(W, m_next, m, reading))


def moved_weights(W: F64, m_next: F64, m: F64, reading: str) -> F64:
    """Move the weights by the new momentum, or as the wrong variants have it."""
    if reading == "ascent":
        return W - m_next
    return W + (m if reading == "weights_from_old_m" else m_next)


def _delta(m: F64, g: F64, eta: float, reading: str) -> F64:
    """Give what the quadratic term takes away from alpha m; g^T g itself is never formed."""
    delta: F64
    if reading == "literal_left":
        _square(g, reading)
        delta = g.T @ (g @ m)
    elif reading == "left_gg":
        wide = g.shape[1] > g.shape[0]  # the square in the middle takes the shorter side
        delta = eta * ((g @ g.T) @ m if wide else g @ (g.T @ m))
    elif reading == "scalar":
        delta = eta * np.sum(g * g) * m
    elif reading == "flat_outer":
        delta = np.sum(g * m) * g
    else:
        c, _ = _right_coefficients(eta, reading)
        delta = c * ((m @ g.T) @ g)
    return delta


def _p_term(g: F64, eta: float, P: F64 | None, reading: str) -> F64:
    Pg = g if P is None else P @ g
    if reading == "printed_objective_half":
        return -eta * Pg
    if reading == "printed_objective_full":
        return (-2 * eta) * Pg
    return eta * Pg


def _right_coefficients(eta: float, reading: str) -> tuple[float, float]:
    """Give (c, b) of the readings of the shape m (alpha I - c g^T g) - b P g."""
    if reading == "derived":
        return eta, eta
    if reading == "literal_right":
        return 1, eta
    if reading == "printed_objective_half":
        return eta, -eta
    if reading == "printed_objective_full":
        return 2 * eta, -2 * eta
    raise UnknownReading(ID, reading, READINGS)


def _wrong(m: F64, g: F64, alpha: float, eta: float, P: F64 | None, reading: str) -> F64:
    if reading in ("p_transposed", "g_right_p"):
        return alpha * m - eta * ((m @ g.T) @ g) - eta * _misplaced_p(g, P, reading)
    if reading == "row_mean":
        lifted: F64 = g + 0.1 * np.mean(g, axis=1, keepdims=True)
        return alpha * m + (1 - alpha) * lifted
    if reading == "flat_outer_eta":
        return alpha * m - eta * _delta(m, g, eta, "flat_outer") - _p_term(g, eta, P, "derived")
    delta, p_term = _delta(m, g, eta, "derived"), _p_term(g, eta, P, "derived")
    if reading == "no_delta":
        return alpha * m - p_term
    if reading == "delta_only":
        return alpha * m - delta
    if reading == "delta_sign":
        return alpha * m + delta - p_term
    if reading == "delta_doubled":
        return alpha * m - 2 * delta - p_term
    if reading == "p_term_without_eta":
        return alpha * m - delta - _p_term(g, 1, P, "derived")
    if reading == "alpha_complement":
        return (1 - alpha) * m - delta - p_term
    return alpha * m - delta - p_term


def _misplaced_p(g: F64, P: F64 | None, reading: str) -> F64:
    if P is None:
        raise NotApplicable(ID, reading, "a preconditioner P")
    if reading == "p_transposed":
        return P.T @ g
    _square(g, reading)
    return g @ P


def _square(g: F64, reading: str) -> None:
    if g.shape[0] != g.shape[1]:
        raise NotApplicable(ID, reading, f"d_out = d_in, got {g.shape[0]} and {g.shape[1]}")
