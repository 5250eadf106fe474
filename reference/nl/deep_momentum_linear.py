"""Eq. 23 with a linear memory, which must be read at the identity key (E15)."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.nl.momentum import FAMILIES
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.deep_momentum_linear"
READINGS = ("identity",)
WRONG_FORMULAS = {
    "value_ones": "the print's example has the all-ones matrix where the formula has I",
    "read_at_gradient": "W' = W + m' g^T, square only",
    "rows_of_the_gradient": "a row-wise linear map, read at g from rest: third order in g",
    "read_before_step": "W' = W + m",
    "ascent": "W' = W - m'",
}
WRONG = tuple(WRONG_FORMULAS)


def linear_read_apart(
    m: F64, W: F64, g: F64, alpha: float, eta: float, *, reading: str = "identity"
) -> tuple[F64, F64]:
    """Add the two parts of the momentum to the weights one after the other."""
    return alpha * m - eta * g, (W - eta * g) + alpha * m


_MATRIX = ("d_out", "d_in")


@equation(
    ID,
    title="Deep momentum with a linear memory",
    source="Nested Learning, NeurIPS 2025",
    numbers=("23",),
    grade="derived: the print's reduction to Eq. 17 holds for a read at the identity key only",
    formula="m' = alpha m - eta grad_m <m g^T, I>;  W' = W + m'",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", _MATRIX, Domain("real", -2.0, 2.0), "memory"),
        Symbol("W", _MATRIX, Domain("real", -2.0, 2.0), "weights"),
        Symbol("g", _MATRIX, Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol("alpha", (), Domain("unit", 0.5, 0.99), "momentum factor"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate"),
    ),
    outputs=(
        Symbol("m_next", _MATRIX, Domain("real"), "memory after the step"),
        Symbol("W_next", _MATRIX, Domain("real"), "weights after the step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"identity": (partial(linear_read_apart, reading="identity"),)},
    families=FAMILIES,
    notes="Written at the key g^T with the value I, the gradient is g; read at the same key the "
    "result is (d_out, d_out) and cannot be added to W. eq23.read_key is therefore identity, and "
    "the rule is Eq. 17: a kernel of nl.momentum computes it.",
    errata=errata("E2", "E15"),
)
def deep_momentum_linear(
    m: F64, W: F64, g: F64, alpha: float, eta: float, *, reading: str = "identity"
) -> tuple[F64, F64]:
    """Take one step of Eq. 23 with the memory m(.) := m.

    Equation: Nested Learning (NeurIPS 2025), Eq. 23, m linear, inner loss <m g^T, I>
        m_{i+1} = alpha m_i - eta I g_i,   W_{i+1} = W_i + m_{i+1}
    Shapes: m, W, g (d_out, d_in); alpha, eta scalars.
    Reading: ``identity``, the key the memory is read at (eq23.read_key).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    grad = inner_gradient(g, np.ones((g.shape[0],) * 2) if reading == "value_ones" else None)
    m_next = alpha * m - eta * grad
    if reading == "read_at_gradient":
        if g.shape[0] != g.shape[1]:
            need = f"d_out = d_in, got {g.shape[0]} and {g.shape[1]}"
            raise NotApplicable(ID, reading, need)
        return m_next, W + m_next @ g.T
    if reading == "rows_of_the_gradient":
        return m_next, W + g @ row_memory(g, eta).T
    if reading == "read_before_step":
        return m_next, W + m
    return m_next, W - m_next if reading == "ascent" else W + m_next


def inner_gradient(g: F64, value: F64 | None = None) -> F64:
    """Differentiate <m g^T, V> in m: V g, with the identity for V if it is left out."""
    return g if value is None else value @ g


def row_memory(g: F64, eta: float) -> F64:
    """Teach the row-wise memory F = g B^T by <F, g> from B = 0: B = -eta g^T g (d_in, d_in)."""
    return -eta * (g.T @ g)
