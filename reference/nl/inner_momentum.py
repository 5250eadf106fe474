"""Eq. 9-11: momentum as an inner optimisation, the outcome of a proximal step of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.inner_momentum"
READING_FORMULAS = {
    "derived": "m' = m + eta u x^T;  W' = W - m': penalty weight 1 / (2 eta)",
    "derived_neg": "m' = m - eta u x^T;  W' = W + m': the other sign of the inner product",
    "literal": "m' = m + u x^T / (2 eta);  W' = W - m': penalty weight eta, as printed",
}
WRONG_FORMULAS = {
    "ascent": "m' = m + eta u x^T;  W' = W + m'",
    "penalty_half_eta": "m' = m + u x^T / eta: penalty weight eta / 2",
    "penalty_undivided": "m' = m + eta u x^T / 2: penalty weight 1 / eta",
    "memory_dropped": "m' = eta u x^T",
    "weights_from_old_m": "W' = W - m",
}
READINGS, WRONG = tuple(READING_FORMULAS), tuple(WRONG_FORMULAS)


def _no_surprise(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"u": np.zeros_like(values["u"])}


def _from_rest(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"m": np.zeros_like(values["m"])}


def _meeting(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"eta": float(np.sqrt(0.5))}


FAMILIES = (
    Family("from_rest", "the first step, m = 0", _from_rest),
    Family(
        "no_surprise",
        "u = 0: the memory stays and the weights keep drifting by it",
        _no_surprise,
        right_kernel_only=True,
    ),
    Family(
        "eta_root_half",
        "eta = 1/sqrt(2): the printed and the corrected weight give the same step",
        _meeting,
        right_kernel_only=True,
    ),
)


def inner_momentum_solved(
    m: F64, W: F64, u: F64, x: F64, eta: float, *, reading: str = "derived"
) -> tuple[F64, F64]:
    """Eq. 10 by its stationarity: (m' - m) 2 w = G with the penalty weight w of the reading."""
    G = np.outer(u, x)
    if reading == "literal":
        m_next = (m * (2 * eta) + G) / (2 * eta)
        return m_next, W - m_next
    if reading == "derived":
        m_next = eta * (m / eta + G)
        return m_next, W - m_next
    if reading == "derived_neg":
        m_next = eta * (m / eta - G)
        return m_next, W + m_next
    raise UnknownReading(ID, reading, READINGS)


def _solved(reading: str) -> Any:
    def solved(m: F64, W: F64, u: F64, x: F64, eta: float) -> tuple[F64, F64]:
        return inner_momentum_solved(m, W, u, x, eta, reading=reading)

    return solved


def inner_objective(
    m: F64, m_t: F64, u: F64, x: F64, eta: float, *, reading: str = "derived"
) -> Scalar:
    """Give what Eq. 11 minimises in m, by the sign and the penalty weight of a reading.

    Shapes: m, m_t (d_out, d_in); u (d_out,); x (d_in,). Raises UnknownReading.
    """
    if reading not in READINGS:
        raise UnknownReading(ID, reading, READINGS)
    sign = 1.0 if reading == "derived_neg" else -1.0
    weight = eta if reading == "literal" else 1 / (2 * eta)
    return sign * np.sum((m @ x) * u) + weight * np.sum((m - m_t) ** 2)


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Momentum as inner optimisation",
    source="Nested Learning, NeurIPS 2025",
    numbers=("9", "10", "11"),
    grade="as printed, corrected",
    formula="m' = arg min_m -<m x, u> + |m - m_t|^2 / (2 eta) = m + eta u x^T;  W' = W - m'",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "momentum, 0 at the start"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("u", ("d_out",), Domain("real", -2.0, 2.0), "local surprise, the gradient at y"),
        Symbol("x", ("d_in",), Domain("real", -2.0, 2.0), "layer input"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "rate of the inner step"),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "momentum after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={reading: (_solved(reading),) for reading in READINGS},
    families=FAMILIES,
    notes="Two levels: the memory m of gradients inside, the weights W outside. `derived` and "
    "`derived_neg` move the weights alike for ever, so m must be compared.",
    errata=errata("E3", "E6", "E7"),
    coincide=(
        Coincidence(("derived", "literal"), "eta = 1/sqrt(2)", "eta_root_half"),
        Coincidence(("derived", "literal"), "u = 0", "no_surprise"),
    ),
)
def inner_momentum(
    m: F64, W: F64, u: F64, x: F64, eta: float, *, reading: str = "derived"
) -> tuple[F64, F64]:
    """Take one step whose momentum is the minimum of an inner objective.

    Equation: Nested Learning (NeurIPS 2025), Eq. 9-11, the penalty weight corrected
        m_{t+1} = arg min_m -<m x_{t+1}, u_{t+1}> + |m - m_t|_F^2 / (2 eta_{t+1})
        W_{t+1} = W_t - m_{t+1}
    Shapes: m, W (d_out, d_in); u (d_out,); x (d_in,); eta a scalar. Returns (m_{t+1}, W_{t+1}).
    Readings:
        derived      m' = m + eta u x^T, W' = W - m'
        derived_neg  m' = m - eta u x^T, W' = W + m'
        literal      m' = m + u x^T / (2 eta), W' = W - m': a larger step for a smaller rate
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    G = np.outer(u, x)  # (d_out, d_in)
    if reading == "derived_neg":
        m_next = m - eta * G
        return m_next, W + m_next
    if reading == "literal":
        m_next = m + G / (2 * eta)
    elif reading == "penalty_half_eta":
        m_next = m + G / eta
    elif reading == "penalty_undivided":
        m_next = m + (0.5 * eta) * G
    elif reading == "memory_dropped":
        m_next = eta * G
    else:
        m_next = m + eta * G
    if reading == "ascent":
        return m_next, W + m_next
    return m_next, W - (m if reading == "weights_from_old_m" else m_next)
