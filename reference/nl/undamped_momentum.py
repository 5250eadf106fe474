"""Eq. 7-8: momentum without decay, a memory that sums every gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "nl.undamped_momentum"
READING_FORMULAS = {
    "derived": "m' = m + eta G;  W' = W - m'",
    "literal": "m' = m - eta G;  W' = W - m': gradient ascent",
}
WRONG_FORMULAS = {
    "derived_neg": "m' = m - eta G;  W' = W + m': the same weights, the other sign of m",
    "memory_dropped": "m' = eta G",
    "rate_on_read": "m' = m + G;  W' = W - eta m': equal only while eta is constant",
    "rate_twice": "m' = m + eta G;  W' = W - eta m'",
    "weights_from_old_m": "W' = W - m",
    "weights_frozen": "W' = W - eta G: the memory is kept but not read",
}
READINGS, WRONG = tuple(READING_FORMULAS), tuple(WRONG_FORMULAS)


def _no_gradient(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"G": np.zeros_like(values["G"])}


def _from_rest(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"m": np.zeros_like(values["m"])}


FAMILIES = (
    Family(
        "no_gradient",
        "G = 0: the memory stays and the weights keep drifting by it",
        _no_gradient,
        right_kernel_only=True,
    ),
    Family("from_rest", "the first step, m = 0", _from_rest, right_kernel_only=True),
)


def undamped_momentum_regrouped(
    m: F64, W: F64, G: F64, eta: float, *, reading: str = "derived"
) -> tuple[F64, F64]:
    """Eq. 7 as gradient descent that keeps moving: W' = (W - s eta G) - m, s the sign of m'."""
    if reading == "derived":
        return m + eta * G, (W - eta * G) - m
    if reading == "literal":
        return m - eta * G, (W + eta * G) - m
    raise UnknownReading(ID, reading, READINGS)


def _regrouped(reading: str) -> Any:
    def regrouped(m: F64, W: F64, G: F64, eta: float) -> tuple[F64, F64]:
        return undamped_momentum_regrouped(m, W, G, eta, reading=reading)

    return regrouped


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Momentum without decay",
    source="Nested Learning, NeurIPS 2025",
    numbers=("7", "8"),
    grade="as printed, sign corrected",
    formula="m' = m + eta G;  W' = W - m'",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "momentum, 0 at the start"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("G", _MATRIX, Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate of this step"),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "momentum after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={reading: (_regrouped(reading),) for reading in READINGS},
    families=FAMILIES,
    notes="A heavy ball with the momentum coefficient 1: it never comes to rest, and a test that "
    "expects it to converge is wrong. `derived_neg` moves the weights alike for ever: m must be "
    "compared.",
    errata=errata("E5"),
    coincide=(Coincidence(("derived", "literal"), "G = 0", "no_gradient"),),
)
def undamped_momentum(
    m: F64, W: F64, G: F64, eta: float, *, reading: str = "derived"
) -> tuple[F64, F64]:
    """Take one step with a memory that sums all gradients.

    Equation: Nested Learning (NeurIPS 2025), Eq. 7-8, the sign of one of them corrected
        W_{t+1} = W_t - m_{t+1},   m_{t+1} = m_t + eta_{t+1} G_{t+1}
    Shapes: m, W, G (d_out, d_in); eta a scalar. m_0 = 0. Returns (m_{t+1}, W_{t+1}).
    Readings:
        derived  m' = m + eta G, W' = W - m'
        literal  m' = m - eta G, W' = W - m', both signs as printed: it climbs
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "literal":
        m_next = m - eta * G
        return m_next, W - m_next
    if reading == "derived_neg":
        m_next = m - eta * G
        return m_next, W + m_next
    if reading == "memory_dropped":
        return eta * G, W - eta * G
    if reading == "rate_on_read":
        m_next = m + G
        return m_next, W - eta * m_next
    m_next = m + eta * G
    if reading == "rate_twice":
        return m_next, W - eta * m_next
    if reading == "weights_from_old_m":
        return m_next, W - m
    if reading == "weights_frozen":
        return m_next, W - eta * G
    return m_next, W - m_next
