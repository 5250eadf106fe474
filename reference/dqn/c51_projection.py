"""Projection of a target distribution onto the atoms of the online support."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.atoms import POSITIONS, SUPPORT, atoms, is_valid
from trueup.reference.dqn.c51_cells import (
    Target,
    all_known,
    cells,
    gathered,
    guarded_mass,
    target_atoms,
    uneven_cells,
)
from trueup.reference.dqn.c51_families import C51_FAMILIES, prepare
from trueup.reference.errors import UnknownReading
from trueup.reference.symbols import F64, Domain, Symbol

ID = "dqn.c51_projection"
PROJECTION_WRONG = {
    "integer_b": "floor and ceiling: the mass of a target on an atom is lost",
    "clamp_after_floor": "the cell clamped, not the target",
    "weights_swapped": "the shares of the two atoms exchanged",
    "target_support": "projected onto the support of s'",
    "mean_step": "the mean delta_z of the batch",
    "unshifted_target": "target atoms without their shift",
    "unshifted_online": "online atoms without their shift",
    "clamped_dropped": "targets beyond the support are left out",
}


def c51_projection_by_distance(
    p_next: F64,
    support: F64,
    next_support: F64,
    returns: F64,
    discount: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    next_shift: F64 | None = None,
) -> tuple[F64, Any]:
    """Give each atom the share by which a clamped target is nearer than its neighbour atoms.

    On evenly spaced atoms this is clip(1 - |t_j - z_i| / delta_z, 0, 1).
    """
    n = p_next.shape[-1]
    valid = is_valid(support, n)
    support = np.where(valid[..., np.newaxis], support, np.array([0.0, n - 1.0, 1.0]))
    z = atoms(support, n, positions, shift)
    t = target_atoms(returns, discount, next_support, n, positions, next_shift)
    inside = np.minimum(np.maximum(t, z[..., :1]), z[..., -1:])
    gap = (
        z[..., 1:] - z[..., :-1]
        if positions is not None
        else (support[..., 2:3] + np.zeros_like(z[..., 1:]))
    )
    mass = []
    for i in range(n):
        away = inside - z[..., i : i + 1]
        left = gap[..., max(i - 1, 0)][..., np.newaxis]
        right = gap[..., min(i, n - 2)][..., np.newaxis]
        near = 1.0 - np.where(away < 0.0, -away / left, away / right)
        mass.append(np.sum(p_next * np.minimum(np.maximum(near, 0.0), 1.0), axis=-1))
    known = all_known(t, p_next, z)
    return guarded_mass(np.stack(mass, axis=-1), known, valid, is_valid(next_support, n))


def c51_projection_by_quotient(
    p_next: F64,
    support: F64,
    next_support: F64,
    returns: F64,
    discount: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    next_shift: F64 | None = None,
) -> tuple[F64, Any]:
    """Take cell and share from (t - z_0) / delta_z, or over the range, as a kernel does."""
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
    return target.mass, target.invalid


ROWS = ("B", "4")
TARGET_INPUTS = (
    Symbol("p_next", (*ROWS, "n_atoms"), Domain("simplex"), "target distribution of a* at s'"),
    Symbol("support", (*ROWS, "3"), SUPPORT, "v_min, v_max, delta_z of the taken action"),
    Symbol("next_support", (*ROWS, "3"), SUPPORT, "the same of a* at s'"),
    Symbol("returns", ROWS, Domain("real", -1.0, 1.0), "return of n steps of every branch"),
    Symbol("discount", ROWS, Domain("unit", 0.8, 0.99), "gamma_k^n, 0 after a terminal step"),
)
SHIFTS = (
    POSITIONS,
    Symbol("shift", ROWS, Domain("real", -0.5, 0.5), "moves the online atoms", optional=True),
    Symbol("next_shift", ROWS, Domain("real", -0.5, 0.5), "moves the target atoms", optional=True),
)


@equation(
    ID,
    title="C51 projection on a support for every sample",
    source="C51, arXiv:1707.06887; supports of every sample: DQN programme, 7.1 and 7.3",
    grade="as published; degenerate supports and positions proposed by the programme",
    formula="t_j = R + D z'_j clamped; p'_j goes to the atoms of its cell: 1 - w below, w above",
    axes=("B", "n_atoms"),
    inputs=(*TARGET_INPUTS, *SHIFTS),
    outputs=(
        Symbol("mass", (*ROWS, "n_atoms"), Domain("simplex"), "projected distribution"),
        Symbol("invalid", ROWS, Domain("mask"), "1 where a support or a target is none"),
    ),
    wrong=PROJECTION_WRONG,
    forms={"default": (c51_projection_by_quotient, c51_projection_by_distance)},
    families=C51_FAMILIES,
    prepare=prepare,
    notes="The rule by cells cannot lose mass; floor and ceiling lose p'_j wherever a target falls "
    "on an atom. The published cell rule holds on uneven atoms as well.",
)
def c51_projection(
    p_next: F64,
    support: F64,
    next_support: F64,
    returns: F64,
    discount: F64,
    positions: F64 | None = None,
    shift: F64 | None = None,
    next_shift: F64 | None = None,
    *,
    reading: str = "default",
) -> tuple[F64, Any]:
    """Project the target distribution onto the online atoms of the taken action.

    Equation: t_j = R + D z'_j; where t_j <= z_0 all of p'_j goes to atom 0, where t_j >= z_{n-1}
    to the last, else with z_l <= t_j < z_{l+1} and w = (t_j - z_l) / (z_{l+1} - z_l)
        m_l += p'_j (1 - w),  m_{l+1} += p'_j w
    A NaN target makes the sample's m NaN; a degenerate support puts all mass on atom 0; both are
    flagged. A degenerate support of s' counts as its atom 0.
    Shapes: p_next (B, 4, n_atoms); support, next_support (B, 4, 3); returns, discount, shift,
    next_shift (B, 4); positions (n_atoms,). Returns (mass (B, 4, n_atoms), invalid (B, 4)).
    """
    if reading not in ("default", *PROJECTION_WRONG):
        raise UnknownReading(ID, reading, ("default", *PROJECTION_WRONG))
    target = projected(
        p_next, support, next_support, returns, discount, positions, shift, next_shift, reading
    )
    return target.mass, target.invalid


def projected(
    p_next: F64,
    support: F64,
    next_support: F64,
    returns: F64,
    discount: F64,
    positions: F64 | None,
    shift: F64 | None,
    next_shift: F64 | None,
    reading: str,
    quotient: bool = False,
) -> Target:
    """Project, and keep what the gradient of the shift asks for."""
    n = p_next.shape[-1]
    both = is_valid(np.concatenate([support[np.newaxis], next_support[np.newaxis]]), n)
    valid, valid_next = both[0], both[1]
    if reading == "unshifted_target":
        next_shift = None
    elif reading == "unshifted_online":
        shift = None
    t = target_atoms(returns, discount, next_support, n, positions, next_shift, valid_next)
    if reading == "target_support":
        support, shift, valid = next_support, next_shift, valid_next
    elif reading == "mean_step":
        low, zero = support[..., 0:1], np.zeros_like(support[..., 0:1])
        high = low + np.mean(support[..., 1:2] - low)
        support = np.concatenate([low, high, zero + np.mean(support[..., 2:3])], axis=-1)
    # Any usable support will do where there is none: what comes of it is replaced.
    support = np.where(valid[..., np.newaxis], support, np.array([0.0, n - 1.0, 1.0]))
    z = atoms(support, n, positions, shift)
    if positions is None:
        at = cells(t, z, support[..., 2:3], quotient)
    else:
        at = uneven_cells(t, z, positions, support[..., 1:2] - support[..., 0:1], quotient)
    share = at.share
    if reading == "weights_swapped":
        share = 1.0 - share
    elif reading == "clamp_after_floor":
        mean = (z[..., -1:] - z[..., :1]) / (n - 1)
        share = np.where(t < z[..., :1], (t - z[..., :1]) / mean, share)
    elif reading == "integer_b":
        whole = (share == 0.0) | (share == 1.0)
        p_next = np.where(whole, 0.0 * p_next, p_next)
    between = np.where(at.clamped, 0.0, p_next)
    known = all_known(t, p_next, z)
    mass = gathered(between if reading == "clamped_dropped" else p_next, at.lower, share)
    mass, flag = guarded_mass(mass, known, valid, valid_next)
    between = np.where(known[..., np.newaxis], between, np.nan)
    return Target(mass, flag, at, np.where(valid[..., np.newaxis], between, 0.0))
