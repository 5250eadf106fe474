"""Eq. 30: the continuum memory system, forward: a chain of MLP blocks, the fastest first."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.cms_families import CHAIN, LEVEL
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Symbol

READING_FORMULAS = {
    "residual": "x + W2 silu(W1 x)",
    "plain": "W2 silu(W1 x)",
    "pre_norm": "x + W2 silu(W1 x / sqrt(mean(x^2) + 1e-6))",
}
READINGS = tuple(READING_FORMULAS)
LEVEL_WRONG_FORMULAS = {
    "linear": "x + W2 W1 x: no activation",
    "relu": "another activation",
    "gate_missing": "sigma(z) instead of z sigma(z)",
    "residual_doubled": "2 x + W2 silu(W1 x)",
    "residual_subtracted": "x - W2 silu(W1 x)",
    "delta_clipped": "change / max(its norm, 1): not the map of evaluation",
    "last_unit_missing": "the loop over hidden units stops one early",
}
LEVEL_WRONG = tuple(LEVEL_WRONG_FORMULAS)
CHAIN_WRONG_FORMULAS = {
    "slowest_first": "the levels in the opposite order",
    "last_level_missing": "the slowest level is never applied",
    "independent": "x + the sum of all levels' changes at x",
    **{name: f"every level {LEVEL_WRONG_FORMULAS[name]}" for name in LEVEL_WRONG[:5]},
}
CHAIN_WRONG = tuple(CHAIN_WRONG_FORMULAS)
EPS = 1e-6
IDENTITY = Coincidence(("residual", "pre_norm"), "W2 = 0: y = x", "identity")


def silu(z: F64) -> F64:
    """Activate: z sigma(z), sigma(z) = (1 + tanh(z / 2)) / 2, which overflows nowhere."""
    return z * (0.5 + 0.5 * np.tanh(0.5 * z))


def silu_slope(z: F64) -> F64:
    """Give the derivative of silu: sigma (1 + z (1 - sigma))."""
    s: F64 = 0.5 + 0.5 * np.tanh(0.5 * z)
    slope: F64 = s * (1 + z * (1 - s))
    return slope


def silu_by_exp(z: F64) -> F64:
    """Activate by the quotient z / (1 + exp(-z))."""
    with np.errstate(over="ignore"):  # exp(-z) beyond the largest number: the quotient is 0
        out: F64 = z / (1 + np.exp(-z))
    return out


def _normed(x: F64) -> F64:
    normed: F64 = x / np.sqrt(np.mean(x * x, axis=-1)[:, None] + EPS)
    return normed


def level_by_exp(x: F64, W1: F64, W2: F64, *, reading: str = "residual") -> F64:
    """Eq. 30, one level, with the activation as a quotient."""
    hidden = silu_by_exp((_normed(x) if reading == "pre_norm" else x) @ W1.T)
    change: F64 = hidden @ W2.T
    return change if reading == "plain" else x + change


def chain_by_exp(x: F64, W1: F64, W2: F64, *, reading: str = "residual") -> F64:
    """Eq. 30 with the activation as a quotient."""
    for level in range(W1.shape[0]):
        x = level_by_exp(x, W1[level], W2[level], reading=reading)
    return x


_TOKENS = Symbol("x", ("T", "d"), Domain("real", -2.0, 2.0), "inputs, a token per row")
_OUT = Symbol("y", ("T", "d"), Domain("real"), "outputs, a token per row")
_WEIGHTS = Domain("real", -1.0, 1.0)


@equation(
    "nl.cms_level",
    title="Continuum memory system, one level forward",
    source="Nested Learning, NeurIPS 2025",
    numbers=("30",),
    grade="as printed, the MLP's form declared",
    formula="y = x + W2 silu(W1 x)",
    axes=("T", "d", "h"),
    inputs=(
        _TOKENS,
        Symbol("W1", ("h", "d"), _WEIGHTS, "first layer"),
        Symbol("W2", ("d", "h"), _WEIGHTS, "second layer"),
    ),
    outputs=(_OUT,),
    readings=READING_FORMULAS,
    wrong=LEVEL_WRONG_FORMULAS,
    coincide=(IDENTITY,),
    forms={reading: (partial(level_by_exp, reading=reading),) for reading in READINGS},
    families=LEVEL,
    notes="The print writes MLP and says nothing of norm, residual branch or activation; silu and "
    "the residual branch are the declared choice here. Between two updates of any level tokens "
    "are independent of one another.",
)
def cms_level(x: F64, W1: F64, W2: F64, *, reading: str = "residual") -> F64:
    """Apply one level of the continuum memory system to every token.

    Equation: Nested Learning (NeurIPS 2025), Eq. 30, one factor MLP^(f_l)
        y = x + W2 silu(W1 x),   silu(z) = z sigma(z)
    Shapes: x, y (T, d), a token per row; W1 (h, d); W2 (d, h).
    Readings: ``residual`` as above; ``plain`` y = W2 silu(W1 x); ``pre_norm`` with
    x / sqrt(mean(x^2) + 1e-6) inside the MLP and x itself on the residual branch.
    """
    if reading in LEVEL_WRONG:
        return _wrong_level(x, W1, W2, reading)
    if reading not in READINGS:
        raise UnknownReading("nl.cms_level", reading, READINGS + LEVEL_WRONG)
    hidden = silu((_normed(x) if reading == "pre_norm" else x) @ W1.T)  # (T, h)
    change: F64 = hidden @ W2.T
    return change if reading == "plain" else x + change


@equation(
    "nl.cms_forward",
    title="Continuum memory system, forward",
    source="Nested Learning, NeurIPS 2025",
    numbers=("30",),
    grade="as printed, the MLP's form declared",
    formula="y = MLP_k(... MLP_1(x)),  MLP_l(x) = x + W2_l silu(W1_l x)",
    axes=("L", "T", "d", "h"),
    inputs=(
        _TOKENS,
        Symbol("W1", ("L", "h", "d"), _WEIGHTS, "first layers, the fastest level first"),
        Symbol("W2", ("L", "d", "h"), _WEIGHTS, "second layers"),
    ),
    outputs=(_OUT,),
    readings=READING_FORMULAS,
    wrong=CHAIN_WRONG_FORMULAS,
    errata=errata("E22"),
    coincide=(IDENTITY,),
    forms={reading: (partial(chain_by_exp, reading=reading),) for reading in READINGS},
    families=CHAIN,
    notes="f_1, applied first, is the fastest level: C_1 <= C_2 <= ... The printed definition of "
    "the chunk length refers to itself; usable is C_l = C_max / f_l, f_l counting the updates per "
    "C_max tokens. With one level it is an ordinary feed-forward block.",
)
def cms_forward(x: F64, W1: F64, W2: F64, *, reading: str = "residual") -> F64:
    """Apply all levels of the continuum memory system, the fastest first.

    Equation: Nested Learning (NeurIPS 2025), Eq. 30 (preprint Eq. 70, the sequential variant)
        y_t = MLP^(f_k)( ... MLP^(f_1)(x_t))
    Shapes: x, y (T, d), a token per row; W1 (L, h, d) and W2 (L, d, h), a level each.
    Readings: ``residual``, ``plain``, ``pre_norm``, as in nl.cms_level.
    """
    if reading in CHAIN_WRONG[:3]:
        return _wrong_chain(x, W1, W2, reading)
    if reading not in READINGS + CHAIN_WRONG:
        raise UnknownReading("nl.cms_forward", reading, READINGS + CHAIN_WRONG)
    for level in range(W1.shape[0]):
        x = cms_level(x, W1[level], W2[level], reading=reading)
    return x


def _wrong_level(x: F64, W1: F64, W2: F64, reading: str) -> F64:
    z: F64 = x @ W1.T
    if reading == "linear":
        hidden = z
    elif reading == "relu":
        hidden = np.maximum(z, 0)
    elif reading == "gate_missing":
        hidden = 0.5 + 0.5 * np.tanh(0.5 * z)
    else:
        hidden = silu(z)
    if reading == "last_unit_missing":
        hidden, W2 = hidden[:, :-1], W2[:, :-1]
    change: F64 = hidden @ W2.T
    if reading == "residual_doubled":
        return 2 * x + change
    if reading == "residual_subtracted":
        return x - change
    if reading == "delta_clipped":
        norm: F64 = np.sqrt(np.sum(change * change, axis=-1))[:, None]
        change = change / np.maximum(norm, 1)
    return x + change


def _wrong_chain(x: F64, W1: F64, W2: F64, reading: str) -> F64:
    count = W1.shape[0]
    if reading == "independent":
        y = x
        for level in range(count):
            y = y + (cms_level(x, W1[level], W2[level]) - x)
        return y
    order = range(count)[::-1] if reading == "slowest_first" else range(count - 1)
    for level in order:
        x = cms_level(x, W1[level], W2[level])
    return x
