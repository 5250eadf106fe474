"""Where the targets of a distribution lie among the online atoms, and what they leave there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trueup.reference.dqn.atoms import atoms, is_valid
from trueup.reference.symbols import F64


class Cells(NamedTuple):
    """Where targets lie among atoms; `n` targets a row."""

    lower: Any
    """(..., n): the number of a target's lower atom, from 0 to n - 2."""
    share: F64
    """(..., n): what the upper atom gets; exactly 0 or 1 at or beyond an end."""
    width: F64
    """(..., n) or (..., 1): how wide the cell is."""
    clamped: Any
    """(..., n): the target is at or beyond an end."""


class Target(NamedTuple):
    """A target distribution on the online atoms; `n` targets a row."""

    mass: F64
    """(..., n): what lies on every atom."""
    invalid: Any
    """(...): 1 where a support or a target is none."""
    cells: Cells
    """Where the targets lie."""
    between: F64
    """(..., n): the probability of every target within the support, 0 of a clamped one."""


def target_atoms(
    returns: F64,
    discount: F64,
    next_support: F64,
    n: int,
    positions: F64 | None = None,
    next_shift: F64 | None = None,
    valid: Any = None,
) -> F64:
    """Give t_j = R + D z'_j; a degenerate support of s' counts as its atom 0 alone.

    `valid` says which supports can be used, where that is known already.
    """
    valid = is_valid(next_support, n) if valid is None else valid
    z = atoms(next_support, n, positions, next_shift)
    z = np.where(valid[..., np.newaxis], z, z[..., :1])
    return returns[..., np.newaxis] + discount[..., np.newaxis] * z


def cells(t: F64, z: F64, step: F64, quotient: bool = False) -> Cells:
    """Find the cell of every target among evenly spaced atoms, and its share of the upper one.

    Shapes: t, z (..., n) targets and atoms; step (..., 1), the atoms' distance. `quotient` takes
    the share from (t - z_0) / step, which is the same and rounds differently.
    """
    n = z.shape[-1]
    below, beyond = t <= z[..., :1], t >= z[..., -1:]
    inside = np.minimum(np.maximum(t, z[..., :1]), z[..., -1:])
    place = (inside - z[..., :1]) / step
    # A clamped target lies on an end, where rounding must not choose its cell.
    settled = np.where(below, 0.5, np.where(beyond, n - 1.5, place))
    lower = np.searchsorted(np.arange(1.0, n - 1.0), settled, side="right")
    share = place - lower if quotient else (inside - (z[..., :1] + lower * step)) / step
    share = np.where(below, 0.0, np.where(beyond, 1.0, share))
    return Cells(lower, share, step, below | beyond)


def uneven_cells(t: F64, z: F64, positions: F64, span: F64, quotient: bool = False) -> Cells:
    """As `cells`, among atoms at `positions` (n,) times `span` (..., 1).

    The cell has z_l <= t < z_{l+1}: a target on an atom lies in the cell above it. `quotient`
    finds it by (t - z_0) / span among the positions.
    """
    below, beyond = t <= z[..., :1], t >= z[..., -1:]
    inside = np.minimum(np.maximum(t, z[..., :1]), z[..., -1:])
    place = (inside - z[..., :1]) / span if quotient else inside
    if quotient:
        lower = np.searchsorted(positions[1:-1], place, side="right")
    else:
        passed = z[..., np.newaxis, 1:-1] <= inside[..., np.newaxis]
        lower = np.count_nonzero(passed, axis=-1)
    at = np.take(positions, lower)
    gap = np.take(positions, lower + 1) - at
    width = gap * span
    low, wide = (at, gap) if quotient else (np.take_along_axis(z, lower, axis=-1), width)
    share = (place - low) / wide
    share = np.where(below, 0.0, np.where(beyond, 1.0, share))
    return Cells(lower, share, width, below | beyond)


def gathered(p: F64, cell: Any, share: F64) -> F64:
    """Add up what every target leaves on every atom."""
    n = p.shape[-1]
    one = np.where(np.arange(n) == cell[..., np.newaxis], 1.0, 0.0)
    left = [(p * (1.0 - share))[..., np.newaxis, :], (p * share)[..., np.newaxis, :]]
    both = np.matmul(np.concatenate(left, axis=-2), one)
    high = both[..., 1, :]
    result: F64 = both[..., 0, :] + np.concatenate(
        [np.zeros_like(high[..., :1]), high[..., :-1]], axis=-1
    )
    return result


def guarded_mass(mass: F64, known: Any, valid: Any, valid_next: Any) -> tuple[F64, Any]:
    """Put NaN where something is not known, e_0 where the online support is none; flag both."""
    first = np.where(np.arange(mass.shape[-1]) == 0, 1.0, 0.0)
    mass = np.where(valid[..., np.newaxis], mass, first)
    flag = np.where(valid & valid_next & known, 0, 1)
    return np.where((known | ~valid)[..., np.newaxis], mass, np.nan), flag


def all_known(t: F64, p: F64, z: F64) -> Any:
    """Tell the rows whose targets, probabilities and atoms are numbers."""
    return np.all(np.isfinite(p) & ~np.isnan(t) & np.isfinite(z[..., :1]), axis=-1)
