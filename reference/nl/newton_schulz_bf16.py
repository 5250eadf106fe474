"""Newton-Schulz as it is run in bf16: the same equation, told apart as far as eight bits reach."""

from __future__ import annotations

from functools import partial

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.nl.newton_schulz import (
    EPS,
    WRONG_FORMULAS,
    newton_schulz,
    newton_schulz_horner,
    newton_schulz_scaled_late,
)
from trueup.reference.nl.newton_schulz_families import FAMILIES
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.newton_schulz_bf16"
READINGS = ("quintic5", "quintic5_add", "cubic5")
BELOW_BF16 = ("a_3.4450", "c_2.0316", "b_4.7705")
"""Slips of a coefficient that move the result by less than its rounding to bf16."""
WRONG = {name: text for name, text in WRONG_FORMULAS.items() if name not in BELOW_BF16}


@equation(
    ID,
    title="Newton-Schulz orthogonalisation, for kernels in bf16",
    source="Nested Learning, NeurIPS 2025; Muon",
    numbers=("24",),
    grade="the library form; the paper names it only",
    formula="X0 = G / max(|G|, eps);  A = X X^T;  B = b A + c A^2;  X <- a X + B X",
    axes=("r", "c"),
    inputs=(
        Symbol("G", ("r", "c"), Domain("real", -2.0, 2.0), "matrix to orthogonalise"),
        Symbol("eps", (), Domain("positive", 1e-8, 1e-6), "guard of the norm, 1e-7", True),
    ),
    outputs=(Symbol("O", ("r", "c"), Domain("real"), "same singular vectors, values near 1"),),
    readings=READINGS,
    wrong=WRONG,
    forms={
        reading: tuple(
            partial(form, reading=reading)
            for form in (newton_schulz_horner, newton_schulz_scaled_late)
        )
        for reading in READINGS
    },
    families=FAMILIES,
    notes="The values are those of nl.newton_schulz. Coefficients that are wrong in the fourth "
    "digit are variants of it and not of this equation: with X, A and B stored in bf16 no input "
    "tells them apart. A contract names what it stores: stored = { X, A, B }.",
)
def newton_schulz_bf16(G: F64, eps: float = EPS, *, reading: str = "quintic5") -> F64:
    """Push all singular values of a matrix towards 1, as ``nl.newton_schulz`` does.

    Equation: the NS of Nested Learning (NeurIPS 2025), Eq. 24
        X_0 = G / max(|G|_F, eps)
        A = X X^T,   B = b A + c A^2,   X <- a X + B X
    Shapes: G (r, c); where r > c it works on G^T and transposes back.
    Readings: ``quintic5`` and ``cubic5`` name the polynomial, ``..._add`` divides by |G|_F + eps.
    """
    if reading not in READINGS and reading not in WRONG:
        raise UnknownReading(ID, reading, (*READINGS, *WRONG))
    return newton_schulz(G, eps, reading=reading)
