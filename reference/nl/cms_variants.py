"""Preprint 3.6: how the levels of a continuum memory system may be put together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import BadInputs, UnknownReading
from trueup.reference.nl.cms_families import CHAIN
from trueup.reference.nl.cms_forward import READING_FORMULAS, READINGS, cms_level, level_by_exp
from trueup.reference.symbols import F64, Domain, Symbol

ID = "nl.cms_independent"
WRONG_FORMULAS = {
    "sequential": "Eq. 30's chain",
    "mean": "the weights are ignored: the mean over levels",
    "reversed_weights": "the slowest level's weight on the fastest",
    "weights_normalised": "divided by their sum",
    "last_level_missing": "the slowest level is left out of the sum",
}
WRONG = tuple(WRONG_FORMULAS)


def independent_by_exp(x: F64, W1: F64, W2: F64, weight: F64, *, reading: str = "residual") -> F64:
    """Sum from the slowest level to the fastest, with the activation as a quotient."""
    y: F64 = 0.0 * x
    for level in range(W1.shape[0])[::-1]:
        y = y + weight[level] * level_by_exp(x, W1[level], W2[level], reading=reading)
    return y


@equation(
    ID,
    title="Continuum memory system, independent levels",
    source="Nested Learning, arXiv:2512.24695 (preprint)",
    numbers=("preprint 74",),
    grade="preprint, the idea seen in two transcriptions, the symbols in one",
    formula="y = sum_l w_l MLP_l(x)",
    axes=("L", "T", "d", "h"),
    inputs=(
        Symbol("x", ("T", "d"), Domain("real", -2.0, 2.0), "inputs, a token per row"),
        Symbol("W1", ("L", "h", "d"), Domain("real", -1.0, 1.0), "first layers, fastest first"),
        Symbol("W2", ("L", "d", "h"), Domain("real", -1.0, 1.0), "second layers"),
        Symbol("weight", ("L",), Domain("real", -1.0, 1.0), "weight of each level"),
    ),
    outputs=(Symbol("y", ("T", "d"), Domain("real"), "outputs, a token per row"),),
    readings=READING_FORMULAS,
    wrong=WRONG_FORMULAS,
    forms={reading: (partial(independent_by_exp, reading=reading),) for reading in READINGS},
    families=CHAIN,
    notes="The aggregation is given as an example, a learned weighted sum. One level of weight 1 "
    "makes the independent, the sequential (Eq. 30) and the nested variant equal.",
)
def cms_independent(x: F64, W1: F64, W2: F64, weight: F64, *, reading: str = "residual") -> F64:
    """Apply every level to the input itself, and add the outputs.

    Equation: Nested Learning, preprint, Eq. 74 (secondary sources), Agg a weighted sum
        y_t = Agg(MLP^(f_k)(x_t), ..., MLP^(f_1)(x_t)) = sum_l w_l MLP^(f_l)(x_t)
    Shapes: x, y (T, d); W1 (L, h, d), W2 (L, d, h), a level each; weight (L,).
    Readings: ``residual``, ``plain``, ``pre_norm``, as in nl.cms_level.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    count = W1.shape[0]
    if reading == "sequential":
        for level in range(count):
            x = cms_level(x, W1[level], W2[level])
        return x
    if reading == "mean":
        weight = 0 * weight + 1 / count
    elif reading == "reversed_weights":
        weight = weight[::-1]
    elif reading == "weights_normalised":
        weight = weight / np.sum(weight)
    kind = reading if reading in READINGS else "residual"
    y: F64 = 0.0 * x
    for level in range(count - 1 if reading == "last_level_missing" else count):
        y = y + weight[level] * cms_level(x, W1[level], W2[level], reading=kind)
    return y


def reset_interval(outer: int, inner: int) -> int:
    """Give after how many steps a nested level is initialised anew: ceil(C_outer / C_inner).

    Preprint Eq. 72 (secondary sources): the level's context ends, and its next initial state is
    the one that the level above has learned. Raises BadInputs for chunks of less than one token.
    """
    if outer < 1 or inner < 1:
        raise BadInputs(
            "chunks are at least one token long",
            where="nested levels",
            got=f"C_outer = {outer}, C_inner = {inner}",
        )
    return math.ceil(outer / inner)


@dataclass
class NestedLevel:
    """The state of a nested level: its parameters, and when it is initialised anew.

    ``initial`` belongs to the level above, which learns it; ``theta`` starts from it and returns
    to it, as it is then, after every ``interval`` steps of this level.
    """

    initial: F64
    interval: int
    theta: F64 | None = None
    steps: int = 0

    def parameters(self) -> F64:
        """Give the parameters that the next chunk is processed with."""
        return self.initial if self.theta is None else self.theta

    def step(self, change: F64) -> None:
        """Add one update's change; at the end of the context, start again from ``initial``."""
        self.theta = self.parameters() + change
        self.steps += 1
        if self.steps % self.interval == 0:
            self.theta = None
