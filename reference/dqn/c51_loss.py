"""Cross-entropy of the projected target, with its gradients: the C51 loss of the branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.atoms import softmax
from trueup.reference.dqn.c51_cells import Target
from trueup.reference.dqn.c51_families import C51_FAMILIES, prepare
from trueup.reference.dqn.c51_projection import (
    PROJECTION_WRONG,
    ROWS,
    SHIFTS,
    TARGET_INPUTS,
    projected,
)
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Symbol

ID = "dqn.c51_loss"
BRANCH_WEIGHT = 0.25
WRONG = PROJECTION_WRONG | {
    "log_of_p_plus_eps": "log(p + 1e-8) in place of the log-softmax",
    "target_probabilities": "gradient p' - m, with the target network's probabilities",
    "over_atoms": "the gradient divided by n_atoms as well",
    "softmax_over_branches": "probabilities normalised over the branches",
    "batch_missing": "the gradient not divided by the batch",
    "weight_missing": "the importance weight left out",
    "sign_flipped": "gradient m - p",
    "shift_sign": "dL/dshift with the other sign",
    "shift_without_step": "dL/dshift not divided by the cell's width",
    "shift_of_clamped": "dL/dshift counts clamped targets",
}


def c51_loss_by_parts(
    logits: F64,
    p_next: F64,
    support: F64,
    next_support: F64,
    returns: F64,
    discount: F64,
    weight: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    next_shift: F64 | None = None,
    branch_weight: float = BRANCH_WEIGHT,
) -> tuple[F64, F64, F64, Any]:
    """Write L as log(sum exp) sum m - sum m (l - max), and the share as (t - z_0) / delta_z."""
    target = projected(
        p_next,
        support,
        next_support,
        returns,
        discount,
        positions,
        shift,
        next_shift,
        "default",
        quotient=True,
    )
    below = logits - np.max(logits, axis=-1, keepdims=True)
    grown = np.exp(below)
    total = np.sum(grown, axis=-1, keepdims=True)
    mass = target.mass
    loss = np.log(total[..., 0]) * np.sum(mass, axis=-1) - np.sum(mass * below, axis=-1)
    omega = (weight / weight.shape[0] * branch_weight)[:, np.newaxis, np.newaxis]
    return loss, omega * (grown / total - mass), _pull(target, logits), target.invalid


def _pull(target: Target, heights: F64) -> F64:
    """Give dL/dshift: the slope of `heights` in the cell of every target within the support."""
    lower, _, width, _ = target.cells
    upper = np.take_along_axis(heights, lower + 1, axis=-1)
    slope = (upper - np.take_along_axis(heights, lower, axis=-1)) / width
    pulls = np.where(target.between == 0.0, 0.0, target.between * slope)
    pull: F64 = np.sum(pulls, axis=-1)
    return pull


@equation(
    ID,
    title="C51 cross-entropy of the branches, with its gradients",
    source="C51, arXiv:1707.06887; DQN programme, 7.3 and 7.4",
    grade="as published; weights, shift and degenerate supports by the programme",
    formula="L = -sum m_i log p_i;  dl = (w/B)(1/4)(p - m);  dL/dshift = sum p'_j dlogp_l / dz_l",
    axes=("B", "n_atoms"),
    inputs=(
        Symbol(
            "logits", (*ROWS, "n_atoms"), Domain("real", -2.0, 2.0), "logits of the taken actions"
        ),
        *TARGET_INPUTS,
        Symbol("weight", ("B",), Domain("positive", 0.3, 1.0), "importance weight of the sample"),
        *SHIFTS,
        Symbol("branch_weight", (), Domain("positive", 0.1, 0.5), "1/4", optional=True),
    ),
    outputs=(
        Symbol("loss", ROWS, Domain("nonnegative"), "cross-entropy of every branch, unweighted"),
        Symbol("d_logits", (*ROWS, "n_atoms"), Domain("real"), "gradient at the logits, weighted"),
        Symbol("d_shift", ROWS, Domain("real"), "dL/dshift of the online atoms, unweighted"),
        Symbol("invalid", ROWS, Domain("mask"), "1 where a support or a target is none"),
    ),
    wrong=WRONG,
    forms={"default": (c51_loss_by_parts,)},
    families=C51_FAMILIES,
    prepare=prepare,
    notes="The target is a constant. dL/dshift jumps where a target crosses an atom; one that "
    "lies on an atom belongs to the cell above it, as z_l <= t_j < z_{l+1} says. A number added to "
    "all logits of an action changes nothing and has no gradient: only the shift of the atoms can "
    "be trained.",
)
def c51_loss(
    logits: F64,
    p_next: F64,
    support: F64,
    next_support: F64,
    returns: F64,
    discount: F64,
    weight: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    next_shift: F64 | None = None,
    branch_weight: float = BRANCH_WEIGHT,
    *,
    reading: str = "default",
) -> tuple[F64, F64, F64, Any]:
    """Give the C51 loss of every branch and its gradients.

    Equation: with m the projected target and p = softmax(logits)
        L = -sum_i m_i log p_i,   dlogit_i = (w_b / B) branch_weight (p_i - m_i)
        dL/dshift = sum over targets within the support of p'_j (log p_{l+1} - log p_l)
        / (z_{l+1} - z_l)
    A degenerate support has dL/dshift = 0.
    Shapes: logits, p_next (B, 4, n_atoms); support, next_support (B, 4, 3); returns, discount,
    shift, next_shift (B, 4); weight (B,); positions (n_atoms,).
    Returns (loss (B, 4), d_logits (B, 4, n_atoms), d_shift (B, 4), invalid (B, 4)).
    """
    if reading not in ("default", *WRONG):
        raise UnknownReading(ID, reading, ("default", *WRONG))
    project = reading if reading in PROJECTION_WRONG else "default"
    target = projected(
        p_next, support, next_support, returns, discount, positions, shift, next_shift, project
    )
    below = logits - np.max(logits, axis=-1, keepdims=True)
    grown = np.exp(below)
    total = np.sum(grown, axis=-1, keepdims=True)
    p, log_p = grown / total, below - np.log(total)
    if reading == "log_of_p_plus_eps":
        log_p = np.log(p + 1e-8)
    elif reading == "softmax_over_branches":
        p = np.moveaxis(softmax(np.moveaxis(logits, 1, 2)), 2, 1)
        log_p = np.log(p)
    count = 1 if reading == "batch_missing" else logits.shape[0]
    omega = (weight / count * branch_weight)[:, np.newaxis, np.newaxis]
    if reading == "weight_missing":
        omega = 0.0 * omega + branch_weight / count
    d_logits = omega * ((p_next if reading == "target_probabilities" else p) - target.mass)
    if reading == "over_atoms":
        d_logits = d_logits / logits.shape[-1]
    elif reading == "sign_flipped":
        d_logits = -d_logits
    if reading == "shift_of_clamped":
        target = target._replace(between=p_next)
    elif reading == "shift_without_step":
        cells = target.cells
        target = target._replace(cells=cells._replace(width=np.ones_like(cells.width)))
    d_shift = _pull(target, log_p)
    loss = -np.sum(target.mass * log_p, axis=-1)
    return loss, d_logits, -d_shift if reading == "shift_sign" else d_shift, target.invalid
