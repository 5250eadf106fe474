"""The error of every branch and the priority of a sample."""

from __future__ import annotations

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol

PRIORITY_ID = "dqn.td_priority"
WRONG_PRIORITY = {
    "mean": "the mean over the branches",
    "signed": "|sum td| in place of sum |td|",
    "largest": "the largest branch alone",
    "online_distribution": "td from the online network's own distribution: always 0",
}


def td_priority_by_difference(mass: F64, z: F64, p: F64, loss: F64) -> tuple[F64, F64]:
    """Write td as sum (m - p) z."""
    td = np.sum((mass - p) * z, axis=-1)
    return td, np.sum(np.abs(td), axis=1)


def td_priority_of_losses(mass: F64, z: F64, p: F64, loss: F64) -> tuple[F64, F64]:
    """Sum the losses one after the other."""
    total = loss[:, 0]
    for k in range(1, loss.shape[1]):
        total = total + loss[:, k]
    return np.sum(mass * z, axis=-1) - np.sum(p * z, axis=-1), total


@equation(
    PRIORITY_ID,
    title="Temporal-difference error and priority of a sample",
    source="branching, arXiv:1711.08946 (summed |td|); DQN programme, 6",
    grade="proposed by the programme",
    formula="td_k = sum_i m_i z_i - Q_k(s, a_k);  priority = sum_k |td_k|",
    axes=("B", "n_atoms"),
    inputs=(
        Symbol("mass", ("B", "4", "n_atoms"), Domain("simplex"), "projected target"),
        Symbol("z", ("B", "4", "n_atoms"), Domain("real", -2.0, 2.0), "online, shifted atoms"),
        Symbol("p", ("B", "4", "n_atoms"), Domain("simplex"), "online distribution of a_k"),
        Symbol("loss", ("B", "4"), Domain("nonnegative", 0.1, 3.0), "cross-entropy of each branch"),
    ),
    outputs=(
        Symbol("td", ("B", "4"), Domain("real"), "error of every branch"),
        Symbol("priority", ("B",), Domain("nonnegative"), "priority of the sample"),
    ),
    readings={"td": "the sum of |td|", "ce": "the sum of the cross-entropies"},
    wrong=WRONG_PRIORITY,
    forms={"td": (td_priority_by_difference,), "ce": (td_priority_of_losses,)},
    families=(Family("running", "as drawn", lambda rng, sizes, values: values),),
    notes="Which of the two a buffer stores must be declared.",
)
def td_priority(mass: F64, z: F64, p: F64, loss: F64, *, reading: str = "td") -> tuple[F64, F64]:
    """Give the error of every branch and the priority of the sample.

    Equation: td_k = sum_i m_i z_i - sum_i p_i z_i,  priority = sum_k |td_k|
    Shapes: mass, z, p (B, 4, n_atoms); loss (B, 4). Returns (td (B, 4), priority (B,)).
    Readings: ``td`` sums |td|; ``ce`` sums the cross-entropies, as some libraries store.
    """
    known = ("td", "ce", *WRONG_PRIORITY)
    if reading not in known:
        raise UnknownReading(PRIORITY_ID, reading, known)
    td = np.sum(mass * z, axis=-1) - np.sum(p * z, axis=-1)
    if reading == "online_distribution":
        td = np.sum(p * z, axis=-1) - np.sum(p * z, axis=-1)
    size = np.abs(td)
    if reading == "ce":
        return td, np.sum(loss, axis=1)
    if reading == "signed":
        return td, np.abs(np.sum(td, axis=1))
    if reading == "largest":
        return td, np.max(size, axis=1)
    return td, np.mean(size, axis=1) if reading == "mean" else np.sum(size, axis=1)
