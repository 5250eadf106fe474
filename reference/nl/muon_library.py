"""The Muon step of the libraries: moving average, Nesterov, decoupled decay, shape factor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.muon import OTHER_FORMS, Orthogonalise
from trueup.reference.nl.muon_families import FAMILIES
from trueup.reference.nl.newton_schulz import EPS, newton_schulz
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "nl.muon_library"
READINGS = ("nesterov", "plain", "nesterov_match_rms", "plain_match_rms")
WRONG_FORMULAS = {
    "sum_buffer": "b' = mu b + g, without Nesterov: the same step, another buffer",
    "sum_nesterov": "z = g + mu b' on an averaged buffer",
    "nesterov_from_old": "z = (1 - mu) g + mu b",
    "shape_missing": "rho = 1",
    "shape_inverted": "sqrt(max(1, B / A))",
    "shape_without_floor": "sqrt(A / B)",
    "decay_coupled": "wd W is added to the gradient",
    "decay_missing": "W' without decay",
    "decay_after": "the step is decayed too",
    "decay_without_rate": "(1 - wd) W",
    "ascent": "W + lr rho O",
    "steps_4": "four steps",
    "elementwise_tanh": "tanh of the elements of z",
}
WRONG = tuple(WRONG_FORMULAS)


def shape_factor(rows: int, columns: int, reading: str) -> float:
    """Give rho: the factor of the step that makes rates transfer between shapes."""
    if reading == "shape_missing":
        return 1.0
    if reading == "shape_inverted":
        return math.sqrt(max(1, columns / rows))
    if reading == "shape_without_floor":
        return math.sqrt(rows / columns)
    if reading.endswith("match_rms"):
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def muon_library_by(
    m: F64,
    W: F64,
    g: F64,
    mu: float,
    lr: float,
    weight_decay: float,
    eps: float = EPS,
    *,
    reading: str,
    orthogonalise: Orthogonalise,
) -> tuple[F64, F64]:
    """Take the step with another formula of Newton-Schulz, averages as lerps."""
    m_next = m + (1 - mu) * (g - m)
    z = m_next if reading.startswith("plain") else g + mu * (m_next - g)
    O = orthogonalise(z, eps, reading="quintic5")  # noqa: E741 - the paper's name
    rho = shape_factor(g.shape[0], g.shape[1], reading)
    return m_next, (1 - lr * weight_decay) * W - (lr * rho) * O


def _forms() -> dict[str, tuple[partial[tuple[F64, F64]], ...]]:
    ways = (newton_schulz, *OTHER_FORMS)
    return {
        reading: tuple(
            partial(muon_library_by, reading=reading, orthogonalise=form) for form in ways
        )
        for reading in READINGS
    }


def _strong_decay(rng: np.random.Generator, sizes: Mapping[str, int], values: Values) -> Values:
    return values | {"lr": 0.3, "weight_decay": 0.6}


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Muon as the libraries have it",
    source="Muon (K. Jordan, 2024) as in torch.optim.Muon",
    numbers=("24",),
    grade="the library's rule; the paper has nl.muon",
    formula="m' = mu m + (1 - mu) g;  z = mu m' + (1 - mu) g;  "
    "W' = (1 - lr wd) W - lr rho NS(z),  rho = sqrt(max(1, d_out / d_in))",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "moving average of gradients"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("g", _MATRIX, Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol("mu", (), Domain("unit", 0.5, 0.99), "momentum, 0.95"),
        Symbol("lr", (), Domain("positive", 0.01, 0.5), "learning rate"),
        Symbol("weight_decay", (), Domain("nonnegative", 0.05, 0.5), "decoupled decay, 0.1"),
        Symbol("eps", (), Domain("positive", 1e-8, 1e-6), "guard of the norm, 1e-7", True),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "moving average after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms=_forms(),
    families=(
        *FAMILIES,
        Family("strong_decay", "lr wd = 0.18: how the weights decay shows", _strong_decay),
    ),
    notes="With Nesterov off, no decay and d_out <= d_in the weights are those of nl.muon at "
    "alpha = mu, eta = lr: average and sum differ by the positive factor 1 - mu, which "
    "Newton-Schulz removes. The library itself computes Newton-Schulz in bf16.",
)
def muon_library(
    m: F64,
    W: F64,
    g: F64,
    mu: float,
    lr: float,
    weight_decay: float,
    eps: float = EPS,
    *,
    reading: str = "nesterov",
) -> tuple[F64, F64]:
    """Take one step of Muon on a matrix.

    Equation: the rule of torch.optim.Muon (2.9 and later)
        m' = mu m + (1 - mu) g,   z = mu m' + (1 - mu) g
        W' = (1 - lr weight_decay) W - lr rho NS(z),   NS quintic, 5 steps
    Shapes: m, W, g (d_out, d_in); mu, lr, weight_decay, eps scalars. m_0 = 0.
    Readings: ``nesterov`` as above; ``plain`` has z = m'; both with the shape factor
    rho = sqrt(max(1, d_out / d_in)). ``nesterov_match_rms`` and ``plain_match_rms`` have
    rho = 0.2 sqrt(max(d_out, d_in)).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "decay_coupled":
        g = g + weight_decay * W
    m_next = mu * m + (g if reading == "sum_buffer" else (1 - mu) * g)
    O = _step(m, m_next, g, mu, eps, reading)  # noqa: E741 - the paper's name
    rho = shape_factor(g.shape[0], g.shape[1], reading)
    if reading in ("decay_coupled", "decay_missing"):
        return m_next, W - (lr * rho) * O
    keep = 1 - (weight_decay if reading == "decay_without_rate" else lr * weight_decay)
    if reading == "decay_after":
        return m_next, keep * (W - (lr * rho) * O)
    step = (lr * rho) * O
    return m_next, keep * W + step if reading == "ascent" else keep * W - step


def _step(m: F64, m_next: F64, g: F64, mu: float, eps: float, reading: str) -> F64:
    if reading.startswith("plain") or reading == "sum_buffer":
        z = m_next
    elif reading == "sum_nesterov":
        z = g + mu * m_next
    elif reading == "nesterov_from_old":
        z = (1 - mu) * g + mu * m
    else:
        z = (1 - mu) * g + mu * m_next
    if reading == "elementwise_tanh":
        return np.tanh(z)
    return newton_schulz(z, eps, reading="steps_4" if reading == "steps_4" else "quintic5")
