"""Eq. 24: a non-linear read of the momentum; with Newton-Schulz it is Muon."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.muon_families import FAMILIES
from trueup.reference.nl.newton_schulz import (
    EPS,
    newton_schulz,
    newton_schulz_horner,
    newton_schulz_scaled_late,
)
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.muon"
READINGS = (
    "outside_quintic5",
    "outside_quintic5_add",
    "outside_cubic5",
    "literal_quintic5",
    "literal_cubic5",
)
WRONG_FORMULAS = {
    "identity": "no non-linearity: Eq. 17 with the rate outside",
    "normalised_only": "m / |m|: every direction, but not orthogonal",
    "steps_4": "four steps",
    "steps_6": "six steps",
    "a_3.5": "a = 3.5",
    "polar": "the polar factor itself",
    "elementwise_tanh": "tanh of g over its own size, claimed to be Muon",
    "tall_skipped": "no orthogonalisation where d_out > d_in",
    "rate_twice": "eta inside and outside",
    "ema": "m' = alpha m - (1 - alpha) g: the same weights, another momentum",
    "nesterov": "NS(alpha m' - g)",
    "old_momentum": "NS(m)",
    "ascent": "W' = W - eta NS(m')",
    "momentum_orthogonalised": "the buffer itself is replaced by NS(m')",
}
WRONG = tuple(WRONG_FORMULAS)
Orthogonalise = Callable[..., F64]
OTHER_FORMS: tuple[Orthogonalise, ...] = (newton_schulz_horner, newton_schulz_scaled_late)


def muon_by(
    m: F64,
    W: F64,
    g: F64,
    alpha: float,
    eta: float,
    eps: float = EPS,
    *,
    reading: str,
    orthogonalise: Orthogonalise,
) -> tuple[F64, F64]:
    """Eq. 24 with another formula of Newton-Schulz."""
    place, _, polynomial = reading.partition("_")
    m_next = alpha * m - (eta * g if place == "literal" else g)
    step = orthogonalise(m_next, eps, reading=polynomial)
    return m_next, W + (step if place == "literal" else eta * step)


def _forms() -> dict[str, tuple[partial[tuple[F64, F64]], ...]]:
    return {
        reading: tuple(
            partial(muon_by, reading=reading, orthogonalise=form) for form in OTHER_FORMS
        )
        for reading in READINGS
    }


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Momentum with an orthogonalised read (Muon)",
    source="Nested Learning, NeurIPS 2025",
    numbers=("24",),
    grade="as printed, the place of the learning rate corrected; the polynomial is the library's",
    formula="m' = alpha m - g;  W' = W + eta NS(m')",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "momentum"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("g", _MATRIX, Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol("alpha", (), Domain("unit", 0.5, 0.99), "momentum factor"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
        Symbol("eps", (), Domain("positive", 1e-8, 1e-6), "guard of the norm, 1e-7", True),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "momentum after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms=_forms(),
    families=FAMILIES,
    notes="Newton-Schulz normalises its input, so with eta inside m (literal) a constant rate "
    "cancels and every step has spectral norm near 1. At eta = 1 the two coincide. It equals the "
    "Muon of the libraries without Nesterov, weight decay and shape factor: nl.muon_library.",
    errata=errata("E17"),
    coincide=(
        Coincidence(("outside_quintic5", "literal_quintic5"), "eta = 1"),
        Coincidence(("outside_cubic5", "literal_cubic5"), "eta = 1"),
        Coincidence(("outside_quintic5", "outside_quintic5_add"), "|m'| far above eps, nearly"),
    ),
)
def muon(
    m: F64,
    W: F64,
    g: F64,
    alpha: float,
    eta: float,
    eps: float = EPS,
    *,
    reading: str = "outside_quintic5",
) -> tuple[F64, F64]:
    """Move the weights by the orthogonalised momentum.

    Equation: Nested Learning (NeurIPS 2025), Eq. 24, m linear, sigma = NS
        outside   m_{i+1} = alpha m_i - g_i,       W_{i+1} = W_i + eta NS(m_{i+1})
        literal   m_{i+1} = alpha m_i - eta g_i,   W_{i+1} = W_i + NS(m_{i+1})
    Shapes: m, W, g (d_out, d_in); alpha, eta, eps scalars. m_0 = 0.
    Readings: the place of the rate (eq24.eta) and the polynomial of Newton-Schulz (ns.poly,
    ns.eps): ``outside_quintic5``, ``outside_cubic5``, ``literal_quintic5``, ``literal_cubic5``;
    ``..._add`` divides by |m|_F + eps instead of max(|m|_F, eps).
    """
    if reading in READINGS:
        return muon_by(m, W, g, alpha, eta, eps, reading=reading, orthogonalise=newton_schulz)
    if reading not in WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    m_next = _wrong_momentum(m, g, alpha, eta, reading)
    step = _wrong_step(m, m_next, g, alpha, eps, reading)
    W_next = W - eta * step if reading == "ascent" else W + eta * step
    return (step if reading == "momentum_orthogonalised" else m_next), W_next


def _wrong_momentum(m: F64, g: F64, alpha: float, eta: float, reading: str) -> F64:
    if reading == "rate_twice":
        return alpha * m - eta * g
    if reading == "ema":
        return alpha * m - (1 - alpha) * g
    if reading == "elementwise_tanh":
        return alpha * m - (1 - alpha) * sign_like(g)
    return alpha * m - g


def _wrong_step(m: F64, m_next: F64, g: F64, alpha: float, eps: float, reading: str) -> F64:
    if reading in ("identity", "elementwise_tanh"):
        return m_next
    if reading == "normalised_only":
        norm: float = np.sqrt(np.sum(m_next * m_next))
        unit: F64 = m_next / np.maximum(norm, eps)
        return unit
    if reading in ("steps_4", "steps_6", "a_3.5", "polar", "tall_skipped"):
        return newton_schulz(m_next, eps, reading=reading)
    if reading == "old_momentum":
        return newton_schulz(m, eps)
    if reading == "nesterov":
        return newton_schulz(alpha * m_next - g, eps)
    return newton_schulz(m_next, eps)


def sign_like(g: F64, decay: float = 0.999, eps: float = 1e-8) -> F64:
    """Give tanh(g / (sqrt(v) + eps)) with v = (1 - decay) g^2, as on a first step from rest."""
    v = (1 - decay) * g * g
    squashed: F64 = np.tanh(g / (np.sqrt(v) + eps))
    return squashed
