"""Eq. 17: gradient descent with momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

READINGS = ("i", "i+1")
WRONG_FORMULAS = {
    "ema": "m' = alpha m + (1 - alpha) g, W' = W - eta m': at constant rates Eq. 17 with the rate "
    "eta (1 - alpha) and -eta m for m; another rule as soon as one of them changes",
    "library_sgd": "m' = alpha m + g, W' = W - eta m': the rate enters when the buffer is read",
    "ascent": "W' = W - m'",
    "gradient_ascent": "m' = alpha m + eta g",
    "momentum_dropped": "m' = -eta g",
    "alpha_complement": "m' = (1 - alpha) m - eta g",
    "alpha_on_gradient": "m' = alpha (m - eta g)",
    "weights_from_old_m": "W' = W + m",
    "nesterov": "W' = W + alpha m' - eta g",
}
WRONG = tuple(WRONG_FORMULAS)


def _m_along_g(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"m": -0.5 * np.asarray(values["g"])}


def _no_gradient(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"g": np.zeros_like(values["g"])}


def _from_rest(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"m": np.zeros_like(values["m"])}


FAMILIES = (
    Family(
        "no_gradient",
        "the momentum decays and still moves the weights: W' = W + alpha m",
        _no_gradient,
    ),
    Family(
        "m_along_g",
        "m proportional to g, as after repeating one gradient: forms of momentum look alike here",
        _m_along_g,
        right_kernel_only=True,
    ),
    Family(
        "from_rest",
        "first step, m = 0: every way to decay m is the same",
        _from_rest,
        right_kernel_only=True,
    ),
)


def momentum_weights_regrouped(
    m: F64, W: F64, g: F64, alpha: float, eta: float, eta_next: float | None = None
) -> tuple[F64, F64]:
    """Eq. 17 with the weights written out: W' = (W - eta g) + alpha m, the heavy-ball form."""
    return alpha * m - eta * g, (W - eta * g) + alpha * m


def momentum_weights_regrouped_next(
    m: F64, W: F64, g: F64, alpha: float, eta: float, eta_next: float | None = None
) -> tuple[F64, F64]:
    """Write the reading ``i+1`` in the heavy-ball form."""
    if eta_next is None:
        raise NotApplicable("nl.momentum", "i+1", "eta_next, the rate of the following step")
    return momentum_weights_regrouped(m, W, g, alpha, eta_next)


_MATRIX = ("d_out", "d_in")


@equation(
    "nl.momentum",
    title="Gradient descent with momentum",
    source="Nested Learning, NeurIPS 2025",
    numbers=("17",),
    grade="as printed",
    formula="m' = alpha m - eta g;  W' = W + m'",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "momentum"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("g", _MATRIX, Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol("alpha", (), Domain("unit", 0.5, 0.99), "momentum factor of this step"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate of this step"),
        Symbol(
            "eta_next",
            (),
            Domain("positive", 0.01, 0.5),
            "learning rate of the following step; read by 'i+1' only",
            optional=True,
        ),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "momentum after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={
        "i": (momentum_weights_regrouped,),
        "i+1": (momentum_weights_regrouped_next,),
    },
    families=FAMILIES,
    notes="The print carries a foreign index on eta. At a constant rate both readings coincide, "
    "and Eq. 17 equals the SGD of the common libraries; under a schedule it does not.",
    errata=errata("E12"),
    coincide=(Coincidence(READINGS, "eta is constant"),),
)
def momentum(
    m: F64,
    W: F64,
    g: F64,
    alpha: float,
    eta: float,
    eta_next: float | None = None,
    *,
    reading: str = "i",
) -> tuple[F64, F64]:
    """Take one step with momentum.

    Equation: Nested Learning (NeurIPS 2025), Eq. 17
        m_{i+1} = alpha_{i+1} m_i - eta_i g_i
        W_{i+1} = W_i + m_{i+1},   g_i = grad L(W_i; x_i)
    Shapes: m, W, g (d_out, d_in); alpha, eta scalars. m_0 = 0.
    Readings: ``i`` takes the rate scheduled for the step that consumes g_i; ``i+1`` the rate of
    the following step, which is handed over as eta_next.
    The rate enters when the gradient is *stored*; libraries multiply when the buffer is *read*.
    """
    if reading == "i+1":
        if eta_next is None:
            raise NotApplicable("nl.momentum", reading, "eta_next, the rate of the following step")
        eta = eta_next
    elif reading != "i":
        return _wrong(m, W, g, alpha, eta, reading)
    m_next = alpha * m - eta * g
    return m_next, W + m_next


def _wrong(m: F64, W: F64, g: F64, alpha: float, eta: float, reading: str) -> tuple[F64, F64]:
    if reading == "ema":
        m_next = alpha * m + (1 - alpha) * g
        return m_next, W - eta * m_next
    if reading == "library_sgd":
        m_next = alpha * m + g
        return m_next, W - eta * m_next
    if reading == "gradient_ascent":
        m_next = alpha * m + eta * g
    elif reading == "momentum_dropped":
        m_next = -eta * g
    elif reading == "alpha_complement":
        m_next = (1 - alpha) * m - eta * g
    elif reading == "alpha_on_gradient":
        m_next = alpha * (m - eta * g)
    else:
        m_next = alpha * m - eta * g
    if reading == "ascent":
        return m_next, W - m_next
    if reading == "weights_from_old_m":
        return m_next, W + m
    if reading == "nesterov":
        return m_next, W + alpha * m_next - eta * g
    if reading in WRONG:
        return m_next, W + m_next
    raise UnknownReading("nl.momentum", reading, READINGS + WRONG)
