"""Dueling aggregation over the branches, for distributional logits, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Family, Symbol, Values

ID = "dqn.dueling_forward"
BACKWARD_ID = "dqn.dueling_backward"
BRANCHES = (4, 3, 3, 3)
"""Sizes of the branches direction, magnitude, order, urgency."""

WRONG = {
    "mean_missing": "V + A: values and advantages are not told apart",
    "mean_over_all": "the mean over all 13 actions, not over the branch's own",
    "mean_over_atoms": "the mean over the atoms of an action",
    "maximum": "A less its largest, the other published aggregation",
    "divided_by_4": "every branch's sum divided by the size of the first",
    "value_missing": "A - mean(A)",
}
WRONG_BACKWARD = {
    "mean_missing": "dA = d",
    "mean_over_all": "the mean over all 13 actions is subtracted",
    "divided_by_4": "every branch's sum divided by the size of the first",
    "first_branch_only": "dV from the first branch alone",
    "value_averaged": "dV divided by the number of branches",
    "value_per_action": "dV divided by 13",
}


def _one_branch(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    changed = {}
    for name in ("advantage", "d_logits"):
        if name in values:
            scale = np.array([50.0] * 4 + [0.02] * 9)[:, np.newaxis]
            changed[name] = np.asarray(values[name]) * scale
    return values | changed


def _offset(rng: np.random.Generator, sizes: Any, values: Values) -> Values:
    changed = {}
    for name in ("advantage", "d_logits"):
        if name in values:
            changed[name] = 30.0 + np.asarray(values[name])
    return values | changed


FAMILIES = (
    Family("one_branch", "one branch far above the others: crossed means show", _one_branch),
    Family("offset_branches", "advantages far from 0: the mean cancels", _offset),
)


def offsets(branches: tuple[int, ...] = BRANCHES) -> tuple[int, ...]:
    """Give where each branch begins in the list of all actions, and the number of actions."""
    out = [0]
    for size in branches:
        out.append(out[-1] + size)
    return tuple(out)


def dueling_by_rows(value: F64, advantage: F64, branches: tuple[int, ...] = BRANCHES) -> F64:
    """Write it as (V - mean) + A, the value less the branch's mean first."""
    at, parts = offsets(branches), []
    for k, size in enumerate(branches):
        own = advantage[:, at[k] : at[k + 1]]
        base = value[:, np.newaxis] - np.sum(own, axis=1, keepdims=True) / size
        parts.append(base + own)
    return np.concatenate(parts, axis=1)


def dueling_by_reciprocal(value: F64, advantage: F64, branches: tuple[int, ...] = BRANCHES) -> F64:
    """Multiply the sums by the rounded 1 / size, as a kernel does."""
    at, parts = offsets(branches), []
    for k, size in enumerate(branches):
        own = advantage[:, at[k] : at[k + 1]]
        base = value[:, np.newaxis] - np.sum(own, axis=1, keepdims=True) * (1.0 / size)
        parts.append(base + own)
    return np.concatenate(parts, axis=1)


@equation(
    ID,
    title="Dueling aggregation of the branches",
    source="dueling networks, arXiv:1511.06581; branching, arXiv:1711.08946",
    grade="as published; the form for distributions is proposed by the programme",
    formula="logit_k[a,i] = V[i] + A_k[a,i] - (1/b_k) sum_a' A_k[a',i]",
    axes=("B", "n_atoms"),
    inputs=(
        Symbol("value", ("B", "n_atoms"), Domain("real", -2.0, 2.0), "value logits"),
        Symbol(
            "advantage",
            ("B", "13", "n_atoms"),
            Domain("real", -2.0, 2.0),
            "advantage logits of the branches, one after the other",
        ),
    ),
    outputs=(Symbol("logits", ("B", "13", "n_atoms"), Domain("real"), "logits of every action"),),
    wrong=WRONG,
    forms={"default": (dueling_by_rows, dueling_by_reciprocal)},
    families=FAMILIES,
    notes="A constant over the actions of a branch changes nothing.",
)
def dueling_forward(
    value: F64,
    advantage: F64,
    branches: tuple[int, ...] = BRANCHES,
    *,
    reading: str = "default",
) -> F64:
    """Combine value and advantage logits.

    Equation: dueling networks with branches; for each branch k of size b_k and atom i
        logit_k[b,a,i] = V[b,i] + A_k[b,a,i] - (1/b_k) sum_a' A_k[b,a',i]
    Shapes: value (B, n_atoms); advantage and the result (B, 13, n_atoms), 13 = 4 + 3 + 3 + 3, or
    the sum of `branches`.
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    at, parts = offsets(branches), []
    for k in range(len(branches)):
        own = advantage[:, at[k] : at[k + 1]]
        among = advantage if reading == "mean_over_all" else own
        mean = np.sum(among, axis=1, keepdims=True) / (
            branches[0] if reading == "divided_by_4" else among.shape[1]
        )
        if reading == "maximum":
            mean = np.max(own, axis=1, keepdims=True)
        elif reading == "mean_over_atoms":
            mean = np.mean(own, axis=2, keepdims=True)
        elif reading == "mean_missing":
            mean = np.zeros_like(mean)
        centred = own - mean
        parts.append(centred if reading == "value_missing" else value[:, np.newaxis] + centred)
    return np.concatenate(parts, axis=1)


def dueling_backward_by_reciprocal(
    d_logits: F64, branches: tuple[int, ...] = BRANCHES
) -> tuple[F64, F64]:
    """Sum each branch first; the means are those sums times the rounded 1 / size."""
    at, parts, total = offsets(branches), [], None
    for k, size in enumerate(branches):
        own = d_logits[:, at[k] : at[k + 1]]
        added = np.sum(own, axis=1)
        total = added if total is None else total + added
        parts.append(own - added[:, np.newaxis] * (1.0 / size))
    return total, np.concatenate(parts, axis=1)  # type: ignore[return-value]


@equation(
    BACKWARD_ID,
    title="Dueling aggregation, backward",
    source="dueling networks, arXiv:1511.06581; branching, arXiv:1711.08946",
    grade="derived",
    formula="dV = sum_k sum_a d;  dA[a] = d[a] - (1/b_k) sum_a' d[a']",
    axes=("B", "n_atoms"),
    inputs=(
        Symbol(
            "d_logits",
            ("B", "13", "n_atoms"),
            Domain("real", -2.0, 2.0),
            "gradient at the logits of every action",
        ),
    ),
    outputs=(
        Symbol("d_value", ("B", "n_atoms"), Domain("real"), "gradient of the value logits"),
        Symbol("d_advantage", ("B", "13", "n_atoms"), Domain("real"), "of the advantage logits"),
    ),
    wrong=WRONG_BACKWARD,
    forms={"default": (dueling_backward_by_reciprocal,)},
    families=FAMILIES,
    notes="The gradients of a branch's advantages sum to 0.",
)
def dueling_backward(
    d_logits: F64, branches: tuple[int, ...] = BRANCHES, *, reading: str = "default"
) -> tuple[F64, F64]:
    """Take a gradient back through the aggregation.

    Equation: with upstream d,
        dV[b,i] = sum_k sum_a d_k[b,a,i],   dA_k[b,a,i] = d_k[b,a,i] - (1/b_k) sum_a' d_k[b,a',i]
    Shapes: d_logits (B, 13, n_atoms), 13 or the sum of `branches`.
    Returns (d_value, d_advantage).
    """
    if reading not in ("default", *WRONG_BACKWARD):
        raise UnknownReading(BACKWARD_ID, reading, ("default", *WRONG_BACKWARD))
    at, parts = offsets(branches), []
    for k in range(len(branches)):
        own = d_logits[:, at[k] : at[k + 1]]
        among = d_logits if reading == "mean_over_all" else own
        count = branches[0] if reading == "divided_by_4" else among.shape[1]
        mean = np.sum(among, axis=1, keepdims=True) / count
        parts.append(own if reading == "mean_missing" else own - mean)
    counted = d_logits[:, : branches[0]] if reading == "first_branch_only" else d_logits
    d_value = np.sum(counted, axis=1)
    if reading == "value_averaged":
        d_value = d_value / len(branches)
    elif reading == "value_per_action":
        d_value = d_value / at[-1]
    return d_value, np.concatenate(parts, axis=1)
