"""Eq. 18-19: the objectives whose gradients momentum, and preconditioned momentum, follow."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import NotApplicable, UnknownReading
from trueup.reference.nl.errata import errata
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.momentum_objective"
READINGS = ("default",)
WRONG_FORMULAS = {
    "all_ones": "<m g^T, 1>, gradient 1 g: every row replaced by the column sums of g",
    "p_transposed": "gradient P^T g",
    "g_right_p": "gradient g P, square only",
    "p_dropped": "<m, g>, gradient g, though P is given",
    "negated": "-<m g^T, P>, gradient -P g",
}
WRONG = tuple(WRONG_FORMULAS)


def _symmetric(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    if "P" not in values:
        return dict(values)
    P = np.asarray(values["P"])
    return values | {"P": 0.5 * (P + P.T)}


def _no_gradient(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"g": np.zeros_like(values["g"])}


FAMILIES = (
    Family(
        "symmetric_p",
        "a symmetric P hides a transpose",
        _symmetric,
        right_kernel_only=True,
    ),
    Family("no_gradient", "g = 0: objective and gradient are 0", _no_gradient, True),
)


def momentum_objective_traced(m: F64, g: F64, P: F64 | None = None) -> tuple[Scalar, F64]:
    """Eq. 19 as printed, over the product m g^T: sum of (m g^T) P; m, g (d_out, d_in)."""
    target = np.eye(m.shape[0]) if P is None else P
    return np.sum((m @ g.T) * target), target @ g


@equation(
    ID,
    title="The objective behind momentum",
    source="Nested Learning, NeurIPS 2025",
    numbers=("18", "19"),
    grade="as printed",
    formula="<m g^T, P>, gradient P g; P = I in Eq. 18",
    axes=("d_out", "d_in"),
    inputs=(
        Symbol("m", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "momentum"),
        Symbol("g", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "gradient at W"),
        Symbol(
            "P",
            ("d_out", "d_out"),
            Domain("real", -2.0, 2.0),
            "preconditioner; the identity if left out",
            optional=True,
        ),
    ),
    outputs=(
        Symbol("objective", (), Domain("real"), "what the momentum descends"),
        Symbol("gradient", ("d_out", "d_in"), Domain("real"), "its gradient in m"),
    ),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"default": (momentum_objective_traced,)},
    families=FAMILIES,
    notes="Linear in m, so it has no minimum: one step of size eta from alpha m gives Eq. 17 and "
    "20. With (1 - alpha) / (2 eta) |m|^2 added, one step of size eta gives them for any alpha.",
    errata=errata("E1", "E15"),
    coincide=(
        Coincidence(("default", "p_transposed"), "P is symmetric", "symmetric_p"),
        Coincidence(("default", "p_dropped"), "P = I"),
    ),
)
def momentum_objective(
    m: F64, g: F64, P: F64 | None = None, *, reading: str = "default"
) -> tuple[Scalar, F64]:
    """Give the inner objective of momentum and its gradient in the momentum.

    Equation: Nested Learning (NeurIPS 2025), Eq. 18 (P = I) and Eq. 19
        min_m <m g_i^T, P_i> = tr(m^T P_i g_i),   gradient P_i g_i
    Shapes: m, g (d_out, d_in); P (d_out, d_out), the identity if None.
    Returns (objective, gradient), the gradient (d_out, d_in).
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    if reading == "all_ones":
        sums = np.sum(g, axis=0)  # (d_in,)
        return np.sum(m * sums), np.ones_like(g) * sums
    if reading in ("p_transposed", "g_right_p", "p_dropped") and P is None:
        raise NotApplicable(ID, reading, "a preconditioner P")
    gradient = g if P is None or reading == "p_dropped" else P @ g
    objective = np.sum(m * gradient)
    if reading == "p_transposed" and P is not None:
        return objective, P.T @ g
    if reading == "g_right_p" and P is not None:
        if g.shape[0] != g.shape[1]:
            raise NotApplicable(ID, reading, f"d_out = d_in, got {g.shape[0]} and {g.shape[1]}")
        return objective, g @ P
    if reading == "negated":
        return -objective, -gradient
    return objective, gradient
