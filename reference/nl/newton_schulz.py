"""Newton-Schulz orthogonalisation, the non-linearity of Eq. 24 (Muon)."""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.newton_schulz_families import FAMILIES
from trueup.reference.symbols import F64, Domain, Scalar, Symbol

ID = "nl.newton_schulz"
EPS = 1e-7
QUINTIC = (3.4445, -4.7750, 2.0315)
CUBIC = (1.5, -0.5, 0.0)
_CUBIC_N = re.compile(r"cubic[1-9][0-9]?(_add)?")

READINGS = (
    "quintic5",
    "quintic5_add",
    "cubic3",
    "cubic3_add",
    "cubic5",
    "cubic5_add",
    "cubic15",
    "cubic15_add",
)
WRONG_FORMULAS = {
    "steps_4": "four steps",
    "steps_6": "six steps",
    "a_3.5": "a = 3.5",
    "a_3.4450": "a slip in the last digits",
    "c_2.0316": "c = 2.0316",
    "b_4.7705": "two digits swapped",
    "scale_1.02": "the result 2 % too large",
    "unclamped": "no eps at all",
    "eps_squared": "max(|G|^2, eps) under the root",
    "tall_skipped": "matrices with more rows than columns come back as they are",
    "tanh": "element-wise, claimed to be orthogonalisation",
    "cubic14": "one step short of cubic15",
    "cubic4": "one step more than cubic3, one less than cubic5",
    "polar": "the polar factor itself, where few steps are asked for",
}
WRONG = tuple(WRONG_FORMULAS)


def newton_schulz_horner(G: F64, eps: float = EPS, *, reading: str = "quintic5") -> F64:
    """Multiply A twice in turn: a X + b A X + c A (A X), without forming b A + c A^2."""
    steps, (a, b, c) = _polynomial(reading)
    X = _normalised(G.T if G.shape[0] > G.shape[1] else G, eps, reading)
    for _ in range(steps):
        A = X @ X.T
        B = A @ X
        X = a * X + b * B + c * (A @ B) if c else a * X + b * B
    return X.T if G.shape[0] > G.shape[1] else X


def newton_schulz_scaled_late(G: F64, eps: float = EPS, *, reading: str = "quintic5") -> F64:
    """Never store G / |G|: the first step works on G itself, scaled where its sums are done."""
    steps, (a, b, c) = _polynomial(reading)
    X = G.T if G.shape[0] > G.shape[1] else G
    scale: Scalar = 1.0 / _divisor(G, eps, reading)
    for step in range(steps):
        A = (scale * scale) * (X @ X.T) if step == 0 else X @ X.T
        B = b * A + c * (A @ A) if c else b * A
        X = scale * (a * X + B @ X) if step == 0 else a * X + B @ X
    return X.T if G.shape[0] > G.shape[1] else X


def _forms() -> dict[str, tuple[partial[F64], ...]]:
    return {
        reading: tuple(
            partial(function, reading=reading)
            for function in (
                newton_schulz_horner,
                newton_schulz_scaled_late,
            )
        )
        for reading in READINGS
    }


@equation(
    ID,
    title="Newton-Schulz orthogonalisation",
    source="Nested Learning, NeurIPS 2025; Muon",
    numbers=("24",),
    grade="the library form; the paper names it only",
    formula="X0 = G / max(|G|, eps);  A = X X^T;  X <- a X + (b A + c A^2) X",
    axes=("r", "c"),
    inputs=(
        Symbol("G", ("r", "c"), Domain("real", -2.0, 2.0), "matrix to orthogonalise"),
        Symbol("eps", (), Domain("positive", 1e-8, 1e-6), "guard of the norm, 1e-7", True),
    ),
    outputs=(Symbol("O", ("r", "c"), Domain("real"), "same singular vectors, values near 1"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms=_forms(),
    families=FAMILIES,
    notes="The quintic does not converge to 1: its values end in [0.68, 1.13] where "
    "sigma / |G| >= 0.0052, and stay below where it is smaller. Transposing a tall matrix changes "
    "the cost and the rounding, not the value.",
)
def newton_schulz(G: F64, eps: float = EPS, *, reading: str = "quintic5") -> F64:
    """Push all singular values of a matrix towards 1 by an odd polynomial, vectors untouched.

    Equation: the NS of Nested Learning (NeurIPS 2025), Eq. 24
        X_0 = G / max(|G|_F, eps)
        A = X X^T,   X <- a X + (b A + c A^2) X
    Shapes: G (r, c); where r > c it works on G^T and transposes back.
    Readings: ``quintic5`` has 5 steps with (a, b, c) = (3.4445, -4.7750, 2.0315), ``cubicN`` has
    N steps with (3/2, -1/2, 0) and converges to the polar factor; the catalogue lists a few N,
    the function takes every N from 1 to 99. ``..._add`` divides by |G|_F + eps instead of
    max(|G|_F, eps).
    """
    if reading not in READINGS + WRONG and not _CUBIC_N.fullmatch(reading):
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "tanh":
        return np.tanh(G)
    tall = G.shape[0] > G.shape[1]
    if reading == "tall_skipped" and tall:
        return G
    steps, (a, b, c) = _polynomial(reading)
    X = _normalised(G.T if tall else G, eps, reading)
    for _ in range(steps):
        A = X @ X.T
        B = b * A + c * (A @ A) if c else b * A
        X = a * X + B @ X
    if reading == "scale_1.02":
        X = 1.02 * X
    return X.T if tall else X


def _normalised(G: F64, eps: float, reading: str) -> F64:
    return G / _divisor(G, eps, reading)


def _divisor(G: F64, eps: float, reading: str) -> Scalar:
    squares: float = np.sum(G * G)
    norm: float = np.sqrt(squares)
    divisor: Scalar
    if reading == "unclamped":
        divisor = np.where(norm > 0, norm, np.nan)
    elif reading == "eps_squared":
        divisor = np.sqrt(np.maximum(squares, eps))
    elif reading.endswith("_add"):
        divisor = norm + eps
    else:
        divisor = np.maximum(norm, eps)
    return divisor


def _polynomial(reading: str) -> tuple[int, tuple[float, float, float]]:
    """Give the number of steps and (a, b, c)."""
    a, b, c = QUINTIC
    name = reading.removesuffix("_add")
    if name == "polar":
        return 60, CUBIC
    if name.startswith("cubic"):
        return int(name.removeprefix("cubic")), CUBIC
    if name.startswith("steps_"):
        return int(name.removeprefix("steps_")), QUINTIC
    if name == "a_3.5":
        a = 3.5
    elif name == "a_3.4450":
        a = 3.4450
    elif name == "c_2.0316":
        c = 2.0316
    elif name == "b_4.7705":
        b = -4.7705
    return 5, (a, b, c)
