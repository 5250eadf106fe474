"""Projection of a target distribution onto the atoms of the online support."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.reference.catalogue import equation
from trueup.reference.dqn.atoms import POSITIONS, SUPPORT, atoms, is_valid
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


def target_atoms(
    returns: F64,
    discount: F64,
    next_support: F64,
    n: int,
    positions: F64 | None = None,
    next_shift: F64 | None = None,
) -> F64:
    """Give t_j = R + D z'_j; a degenerate support of s' counts as its atom 0 alone."""
    z = atoms(next_support, n, positions, next_shift)
    z = np.where(is_valid(next_support, n)[..., np.newaxis], z, z[..., :1])
    return returns[..., np.newaxis] + discount[..., np.newaxis] * z


def cells(t: F64, z: F64, step: F64 | None, quotient: bool = False) -> tuple[Any, F64]:
    """Give, for every target, its cell and its share for the cell's upper atom.

    Shapes: t (..., n) targets; z (..., n) atoms; step (..., 1), the distance of evenly spaced
    atoms, or None. The cell is (..., n, n): 1 where atom i is the lower one of target j. Targets at
    or beyond an end have the first or last cell and a share of exactly 0 or 1. `quotient` takes the
    share of evenly spaced atoms from (t - z_0) / step, which is the same and rounds differently.
    """
    n = z.shape[-1]
    number = np.arange(n)
    inside = np.minimum(np.maximum(t, z[..., :1]), z[..., -1:])
    if step is None:
        lower = np.sum(np.where(z[..., np.newaxis, 1:-1] <= inside[..., np.newaxis], 1, 0), axis=-1)
        cell = number == lower[..., np.newaxis]
        z_low = np.max(np.where(cell, z[..., np.newaxis, :], -np.inf), axis=-1)
        after = number == lower[..., np.newaxis] + 1
        width = np.max(np.where(after, z[..., np.newaxis, :], -np.inf), axis=-1) - z_low
        share = (inside - z_low) / width
    else:
        place = (inside - z[..., :1]) / step
        # A clamped target lies on an end, where rounding must not choose its cell.
        settled = np.where(t <= z[..., :1], 0.5, np.where(t >= z[..., -1:], n - 1.5, place))
        lower = np.clip(np.floor(settled), 0, n - 2)
        cell = number == lower[..., np.newaxis]
        share = place - lower if quotient else (inside - (z[..., :1] + lower * step)) / step
    share = np.where(t <= z[..., :1], 0.0, np.where(t >= z[..., -1:], 1.0, share))
    return cell, share


def gathered(p: F64, cell: Any, share: F64) -> F64:
    """Add up what every target leaves on every atom."""
    one = np.where(cell, 1.0, 0.0)
    low = np.matmul((p * (1.0 - share))[..., np.newaxis, :], one)[..., 0, :]
    high = np.matmul((p * share)[..., np.newaxis, :], one)[..., 0, :]
    first = np.zeros_like(high[..., :1])
    result: F64 = low + np.concatenate([first, high[..., :-1]], axis=-1)
    return result


def guarded_mass(mass: F64, t: F64, p: F64, z: F64, valid: Any, valid_next: Any) -> tuple[F64, Any]:
    """Put NaN where an atom, a target or its probability is none, e_0 where the support is none."""
    n = mass.shape[-1]
    known = _known(t, p, z)
    first = np.where(np.arange(n) == 0, 1.0, 0.0)
    mass = np.where(valid[..., np.newaxis], mass, first)
    flag = np.where(valid & valid_next & known, 0, 1)
    return np.where((known | ~valid)[..., np.newaxis], mass, np.nan), flag


def _known(t: F64, p: F64, z: F64) -> Any:
    return np.all(np.isfinite(p) & ~np.isnan(t) & np.isfinite(z[..., :1]), axis=-1)


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
    return guarded_mass(np.stack(mass, axis=-1), t, p_next, z, valid, is_valid(next_support, n))


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
    """Take cell and share from (t - z_0) / delta_z, as a kernel does."""
    mass, _, _, flag = projected(
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
    return mass, flag


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
    mass, _, _, flag = projected(
        p_next, support, next_support, returns, discount, positions, shift, next_shift, reading
    )
    return mass, flag


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
) -> tuple[F64, F64, Any, Any]:
    """Give mass, online atoms, cells weighted by the interior targets' masses, and the flag."""
    n = p_next.shape[-1]
    valid = is_valid(support, n)
    if reading == "unshifted_target":
        next_shift = None
    elif reading == "unshifted_online":
        shift = None
    t = target_atoms(returns, discount, next_support, n, positions, next_shift)
    if reading == "target_support":
        support, shift, valid = next_support, next_shift, is_valid(next_support, n)
    elif reading == "mean_step":
        low, zero = support[..., 0:1], np.zeros_like(support[..., 0:1])
        high = low + np.mean(support[..., 1:2] - low)
        support = np.concatenate([low, high, zero + np.mean(support[..., 2:3])], axis=-1)
    # Any usable support will do where there is none: what comes of it is replaced.
    support = np.where(valid[..., np.newaxis], support, np.array([0.0, n - 1.0, 1.0]))
    z = atoms(support, n, positions, shift)
    step = support[..., 2:3] if positions is None else None
    cell, share = cells(t, z, step, quotient)
    if reading == "weights_swapped":
        share = 1.0 - share
    elif reading == "clamp_after_floor":
        width = (z[..., -1:] - z[..., :1]) / (n - 1)
        share = np.where(t < z[..., :1], (t - z[..., :1]) / width, share)
    elif reading == "integer_b":
        whole = (share == 0.0) | (share == 1.0)
        p_next = np.where(whole, 0.0 * p_next, p_next)
    interior = np.where((t > z[..., :1]) & (t < z[..., -1:]), p_next, 0.0)
    if reading == "clamped_dropped":
        p_next = interior
    mass, flag = guarded_mass(
        gathered(p_next, cell, share), t, p_next, z, valid, is_valid(next_support, n)
    )
    between = np.matmul(interior[..., np.newaxis, :], np.where(cell, 1.0, 0.0))[..., 0, :]
    between = np.where(_known(t, p_next, z)[..., np.newaxis], between, np.nan)
    between = np.where(valid[..., np.newaxis], between, 0.0)
    return mass, z, between, flag
