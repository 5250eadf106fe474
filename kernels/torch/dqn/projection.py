"""The C51 target projected onto the atoms of the taken action, and the error that it tells."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.atoms import atoms, step_of, usable
from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_Two = tuple[Tensor, Tensor]


class Projection(NamedTuple):
    """What `project` gives: for each target its place, and for each atom its mass."""

    mass: Tensor
    t: Tensor
    z: Tensor
    cell: Tensor
    width: Tensor
    valid: Tensor
    known: Tensor
    invalid: Tensor


def c51_projection(
    p_next: Tensor,
    support: Tensor,
    next_support: Tensor,
    returns: Tensor,
    discount: Tensor,
    *,
    positions: Tensor | None = None,
    shift: Tensor | None = None,
    next_shift: Tensor | None = None,
) -> _Two:
    """Project the target t_j = returns + discount z'_j onto the atoms of the taken action.

    Shapes as in `c51_loss`. Returns mass (B, 4, n_atoms), whose rows sum to those of p_next, and
    invalid (B, 4), int32, 1 where a support is degenerate (all mass on its first atom) or a target
    is not a number (the mass is NaN). Not differentiable. Raises ValueError for shapes that do not
    fit.
    """
    ranked("c51_projection", "p_next", p_next, "B 4 n_atoms")
    B, K, n = p_next.shape
    expect(
        "c51_projection",
        support=(support, (B, K, 3)),
        next_support=(next_support, (B, K, 3)),
        returns=(returns, (B, K)),
        discount=(discount, (B, K)),
        positions=(positions, (n,)),
        shift=(shift, (B, K)),
        next_shift=(next_shift, (B, K)),
    )
    given = p_next, support, next_support, returns, discount, positions, shift, next_shift
    with torch.no_grad():
        mass, invalid = _projection(*alike(*given))
    return mass, invalid


def td_priority(mass: Tensor, z: Tensor, p: Tensor) -> _Two:
    """Tell every branch's error from its distributions, and the sample's.

        td_k = sum_i mass_i z_i - sum_i p_i z_i;  sum_k |td_k|
    Shapes: mass (of `c51_projection`), z (the atoms of the taken action), p (B, 4, n_atoms).
    Returns td (B, 4), what `priorities` takes, and the sum (B,). Not differentiable. Raises
    ValueError for shapes that do not fit.
    """
    ranked("td_priority", "mass", mass, "B 4 n_atoms")
    shape = (mass.shape[0], 4, mass.shape[2])
    expect("td_priority", mass=(mass, shape), z=(z, shape), p=(p, shape))
    with torch.no_grad():
        td, priority = _td(*alike(mass, z, p))
    return td, priority


def _targets(
    returns: Tensor,
    discount: Tensor,
    next_support: Tensor,
    n: int,
    positions: Tensor | None,
    next_shift: Tensor | None,
) -> Tensor:
    z = atoms(next_support, n, positions, next_shift)
    z = torch.where(usable(next_support, n).unsqueeze(-1), z, z[..., :1])
    return returns.unsqueeze(-1) + discount.unsqueeze(-1) * z


def _cells(t: Tensor, z: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Give each target's cell and its share of the cell's upper atom; ends have exactly 0 or 1."""
    low, high = z[..., :1], z[..., -1:]
    inside = torch.minimum(torch.maximum(t, low), high)
    inside = torch.where(inside.isnan(), low, inside)
    cell = torch.searchsorted(z[..., 1:-1].contiguous(), inside.contiguous(), right=True)
    share = (inside - z.gather(-1, cell)) / width.gather(-1, cell)
    share = torch.where(t <= low, 0, torch.where(t >= high, 1, share.clamp(0, 1)))
    return cell, share


def project(
    p_next: Tensor,
    support: Tensor,
    next_support: Tensor,
    returns: Tensor,
    discount: Tensor,
    positions: Tensor | None,
    shift: Tensor | None,
    next_shift: Tensor | None,
) -> Projection:
    """Place every target in its cell and add up what the atoms get, in plain torch."""
    n = p_next.shape[-1]
    valid = usable(support, n).unsqueeze(-1)
    t = _targets(returns, discount, next_support, n, positions, next_shift)
    # Any usable support will do where there is none: what comes of it is replaced.
    sure = torch.where(valid, support, _stand_in(support, n))
    z, width = atoms(sure, n, positions, shift), step_of(sure, n, positions)
    known = (p_next.isfinite() & ~t.isnan() & z[..., :1].isfinite()).all(-1, keepdim=True)
    cell, share = _cells(t, z, width)
    mass = torch.zeros_like(p_next).scatter_add(-1, cell, p_next * (1 - share))
    mass = mass.scatter_add(-1, cell + 1, p_next * share)
    first = (torch.arange(n, device=mass.device) == 0).to(mass.dtype)
    mass = torch.where(valid, torch.where(known, mass, torch.nan), first)
    fine = valid & usable(next_support, n).unsqueeze(-1) & known
    return Projection(mass, t, z, cell, width, valid, known, (~fine.squeeze(-1)).int())


def _stand_in(support: Tensor, n: int) -> Tensor:
    """Give (0, n - 1, 1), made without a copy from the host."""
    number = torch.arange(3, device=support.device).to(support.dtype)
    return torch.where(number == 1, n - 1, number / 2)


def _plain(*given: Tensor | None) -> _Two:
    on = project(*given)
    return on.mass, on.invalid


def _fast(
    p_next: Tensor,
    support: Tensor,
    next_support: Tensor,
    returns: Tensor,
    discount: Tensor,
    positions: Tensor | None,
    shift: Tensor | None,
    next_shift: Tensor | None,
) -> _Two | Refused:
    if positions is not None:
        return Refused("the kernel is for evenly spaced atoms")
    moved = [torch.zeros_like(returns) if one is None else one for one in (shift, next_shift)]
    mass, invalid = _fake(p_next)
    given = contiguous(p_next, support, next_support, returns, discount, *moved)
    refused = launch("dqn.c51_projection", *given, mass, invalid)
    return (mass, invalid) if refused is None else refused


def _fake(p_next: Tensor, *_: Any) -> _Two:
    return p_next.new_empty(p_next.shape), p_next.new_empty(p_next.shape[:2], dtype=torch.int32)


def _plain_td(mass: Tensor, z: Tensor, p: Tensor) -> _Two:
    td = (mass * z).sum(-1) - (p * z).sum(-1)
    return td, td.abs().sum(1)


def _fast_td(mass: Tensor, z: Tensor, p: Tensor) -> _Two | Refused:
    td, priority = _fake_td(mass)
    given = contiguous(mass, z, p)
    refused = launch("dqn.td_priority", *given, torch.zeros_like(td), td, priority)
    return (td, priority) if refused is None else refused


def _fake_td(mass: Tensor, *_: Tensor) -> _Two:
    return mass.new_empty(mass.shape[:2]), mass.new_empty(mass.shape[:1])


_projection = operator(
    "c51_projection(Tensor p_next, Tensor support, Tensor next_support, Tensor returns, "
    "Tensor discount, Tensor? positions, Tensor? shift, Tensor? next_shift) -> (Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
_td = operator(
    "td_priority(Tensor mass, Tensor z, Tensor p) -> (Tensor, Tensor)",
    _plain_td,
    fast=_fast_td,
    fake=_fake_td,
)
