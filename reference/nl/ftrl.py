"""Preprint, Eq. 3: gradient descent at a constant rate is follow the regularised leader."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errata import Coincidence
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Scalar, Symbol, Values

ID = "nl.ftrl"
READINGS = ("default",)
WRONG_FORMULAS = {
    "ascent": "W_1 + eta sum of G_s",
    "mean": "W_1 - eta mean of G_s",
    "last_only": "W_1 - eta G_T: the leader forgets",
    "first_missing": "W_1 - eta sum of all but the first G_s",
    "penalty_eta": "W_1 - sum of G_s / (2 eta): the penalty weighted by eta",
    "start_dropped": "-eta sum of G_s: the penalty is on |W|^2, not on |W - W_1|^2",
}
WRONG = tuple(WRONG_FORMULAS)


def _from_zero(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    return values | {"W_1": np.zeros_like(values["W_1"])}


def _one_gradient(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    G = np.zeros_like(values["G"])
    G[-1:] = np.asarray(values["G"])[-1:]
    return values | {"G": G}


FAMILIES = (
    Family(
        "from_zero",
        "W_1 = 0: the penalty's centre cannot be seen",
        _from_zero,
        right_kernel_only=True,
    ),
    Family(
        "one_gradient",
        "only the last gradient is not zero: sum and last are the same",
        _one_gradient,
        right_kernel_only=True,
    ),
)


def ftrl_as_descent(W_1: F64, G: F64, eta: float) -> F64:
    """Gradient descent at a constant rate, step by step: equal to the leader at every step."""
    W = W_1
    for s in range(G.shape[0]):
        W = W - eta * G[s]
    return W


def leader_objective(W: F64, W_1: F64, G: F64, eta: float) -> Scalar:
    """Give what the leader minimises in W: <sum of G_s, W> + |W - W_1|^2 / (2 eta)."""
    linear: Scalar = np.sum(np.sum(G, axis=0) * W)
    return linear + np.sum((W - W_1) ** 2) / (2 * eta)


@equation(
    ID,
    title="Follow the regularised leader",
    source="Nested Learning, preprint arXiv:2512.24695",
    numbers=("2", "3"),
    grade="preprint, seen in two transcriptions",
    formula="W_{T+1} = arg min_W <sum_s G_s, W> + |W - W_1|^2 / (2 eta) = W_1 - eta sum_s G_s",
    axes=("T", "d_out", "d_in"),
    inputs=(
        Symbol("W_1", ("d_out", "d_in"), Domain("real", -2.0, 2.0), "weights at the start"),
        Symbol("G", ("T", "d_out", "d_in"), Domain("real", -2.0, 2.0), "gradients, at W_1 .. W_T"),
        Symbol("eta", (), Domain("positive", 0.01, 0.5), "learning rate, constant"),
    ),
    outputs=(Symbol("W_next", ("d_out", "d_in"), Domain("real"), "weights after T gradients"),),
    readings=READINGS,
    wrong=WRONG_FORMULAS,
    forms={"default": (ftrl_as_descent,)},
    families=FAMILIES,
    notes="Equal to gradient descent if and only if the rate is constant: under a schedule the "
    "leader weighs all gradients by the last rate, descent each by its own. Eq. 2 of the preprint "
    "is one such step, Eq. 5 of the print (nl.proximal_descent).",
    coincide=(
        Coincidence(("default", "start_dropped"), "W_1 = 0", "from_zero"),
        Coincidence(("default", "last_only"), "only the last gradient is not 0", "one_gradient"),
    ),
)
def ftrl(W_1: F64, G: F64, eta: float, *, reading: str = "default") -> F64:
    """Give the weights that lead on all gradients so far, held to where they began.

    Equation: Nested Learning, preprint arXiv:2512.24695, Eq. 3 (as two transcriptions have it)
        W_{t+1} = arg min_W <sum_{s<=t} grad L(W_s), W> + |W - W_1|^2 / (2 eta)
                = W_1 - eta sum_{s<=t} grad L(W_s)
    Shapes: W_1 (d_out, d_in); G (T, d_out, d_in); eta a scalar. T = 0 gives W_1.
    """
    if reading not in READINGS + WRONG:
        raise UnknownReading(ID, reading, READINGS + WRONG)
    total: F64 = np.sum(G, axis=0)  # (d_out, d_in)
    if reading == "ascent":
        return W_1 + eta * total
    if reading == "mean":
        count: int = max(G.shape[0], 1)
        return W_1 - eta * total / count
    if reading == "last_only":
        total = np.sum(G[-1:], axis=0)
    if reading == "first_missing":
        total = np.sum(G[1:], axis=0)
    if reading == "penalty_eta":
        return W_1 - total / (2 * eta)
    if reading == "start_dropped":
        return -eta * total
    return W_1 - eta * total
