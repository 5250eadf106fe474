"""Preprint, Eq. 43: Newton-Schulz as descent on the distance from orthogonality."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.newton_schulz_objective"
READINGS = ("default",)
WRONG_FORMULAS = {
    "gradient_halved": "gradient 2 O (O^T O - I)",
    "identity_missing": "gradient 4 O O^T O",
    "ascent": "O + zeta gradient",
    "rate_quarter": "O - 2 zeta gradient",
    "unsquared": "objective |O^T O - I|_F",
}
WRONG = tuple(WRONG_FORMULAS)


def _small(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"O": 0.1 * np.asarray(values["O"])}


def _orthogonal(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    """Give O columns of length 1 that are orthogonal to one another, as many as fit."""
    left, _, right = np.linalg.svd(np.asarray(values["O"]), full_matrices=False)
    return values | {"O": left @ right}


FAMILIES = (
    Family("small_values", "far from orthogonal: the linear part of the step leads", _small),
    Family(
        "orthogonal",
        "O^T O = I where there are enough rows: the step rests",
        _orthogonal,
        right_kernel_only=True,
    ),
)


def newton_schulz_objective_cubic(
    O: F64,  # noqa: E741 - the paper's name
    zeta: float = 0.125,
) -> tuple[Scalar, F64, F64]:
    """Eq. 43 through (O O^T) O, the same product: O' = (1 + 4 zeta) O - 4 zeta O O^T O."""
    cubed = (O @ O.T) @ O
    gram = O.T @ O
    objective = np.sum(gram * gram) - 2 * np.sum(O * O) + O.shape[1]
    return objective, 4 * cubed - 4 * O, (1 + 4 * zeta) * O - (4 * zeta) * cubed


@equation(
    ID,
    title="Newton-Schulz as an inner problem",
    source="Nested Learning, preprint arXiv:2512.24695",
    numbers=("43",),
    grade="preprint, seen in two transcriptions; the step derived",
    formula="|O^T O - I|_F^2, gradient 4 O (O^T O - I), O' = O - zeta gradient",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("O", ("d_out", "d_in"), Domain("real", -1.0, 1.0), "the matrix to orthogonalise"),
        Symbol("zeta", (), Domain("positive", 0.03, 0.2), "step size; 1/8 gives the cubic rule"),
    ),
    outputs=(
        Symbol("objective", (), Domain("nonnegative"), "distance from orthogonal columns, squared"),
        Symbol("gradient", ("d_out", "d_in"), Domain("real"), "its gradient in O"),
        Symbol("O_next", ("d_out", "d_in"), Domain("real"), "O after one step"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"default": (newton_schulz_objective_cubic,)},
    families=FAMILIES,
    notes="At zeta = 1/8 one step is exactly O (3 I - O^T O) / 2, the cubic iteration of "
    "nl.newton_schulz. Eq. 44 was seen once only, with a further term (O - g), and is not given.",
)
def newton_schulz_objective(
    O: F64,  # noqa: E741 - the paper's name
    zeta: float = 0.125,
    *,
    reading: str = "default",
) -> tuple[Scalar, F64, F64]:
    """Give the distance from orthogonality, its gradient, and one step of descent on it.

    Equation: Nested Learning, preprint arXiv:2512.24695, Eq. 43 (as two transcriptions have it)
        min_O |O^T O - I|_F^2,   gradient 4 O (O^T O - I),   O' = O - zeta gradient
    Shapes: O (d_out, d_in); zeta a scalar, 1/8 unless given.
    Returns (objective, gradient, O').
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    defect = O.T @ O - np.eye(O.shape[1])  # (d_in, d_in)
    objective = np.sum(defect * defect)
    gradient = 4 * (O @ defect)
    if reading == "unsquared":
        objective = np.sqrt(objective)
    elif reading == "gradient_halved":
        gradient = 2 * (O @ defect)
    elif reading == "identity_missing":
        gradient = 4 * (O @ (O.T @ O))
    if reading == "ascent":
        return objective, gradient, O + zeta * gradient
    if reading == "rate_quarter":
        return objective, gradient, O - (2 * zeta) * gradient
    return objective, gradient, O - zeta * gradient
