"""Plumbing of gradients: norms by component and branch, branch corrections, flags of NaN."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, expect, numbered, ranked
from trueup.kernels.torch.ops.registry import (
    Refused,
    in_place,
    launch,
    nothing,
    one_of,
    operator,
    wide,
)

SLOTS = 48
"""Flags of tensors that were seen to hold NaN or infinity."""
ORDERS = ("fixed", "blocked")


def grad_norms(
    g: Tensor, slices: Tensor | Sequence[tuple[int, int]], *, order: str = "fixed"
) -> Tensor:
    """Give the L2 norms of four gradients over the magnitude's and the direction's slice.

        norms[2 c] = |g[c][magnitude]|,  norms[2 c + 1] = |g[c][direction]|
    Shapes: g (4, n), one row a loss component; slices two pairs (start, end) of places, or an int32
    tensor (2, 2), whose numbers are not read by the host. Returns (8,). `order` is that of a
    kernel's sums: `fixed` as the programme has it, or `blocked`, which is faster. Not
    differentiable. Raises ValueError for shapes that do not fit, a slice that does not lie within
    n, and another order: a norm of what is not there is no 0.
    """
    one_of("order", order, ORDERS)
    ranked("grad_norms", "g", g, "4 n")
    expect("grad_norms", g=(g, (4, g.shape[1])))
    with torch.no_grad():
        places = _places("grad_norms", slices, 2, g.shape[1], g.device)
        norms: Tensor = _norms(*alike(g), places, order == "blocked")
    return norms


def saxpy_correction_(
    acc: Tensor, g: Tensor, beta: Tensor, trunk: Tensor, slices: Tensor | Sequence[tuple[int, int]]
) -> None:
    """Add a component's gradient in place: the trunk's share, and each branch's own in its slice.

        acc += trunk g;  in slice k, where beta_k differs from trunk: acc += (beta_k - trunk) g
    Shapes: acc, g (n,); beta (4,); trunk (1,); slices four disjoint pairs (start, end), or an int32
    tensor (4, 2), whose numbers are not read by the host. Equal budgets correct nothing, bit by
    bit. Raises ValueError for shapes that do not fit and a slice that does not lie within n.
    """
    in_place("saxpy_correction_", acc)
    ranked("saxpy_correction_", "acc", acc, "n")
    expect("saxpy_correction_", g=(g, acc.shape), beta=(beta, (4,)), trunk=(trunk, (1,)))
    places = _places("saxpy_correction_", slices, 4, acc.shape[0], acc.device)
    _saxpy(acc, g.detach(), beta.detach(), trunk.detach(), places)


def nan_flags_(
    x: Tensor, flags: Tensor, first_seen: Tensor, slot: int | Tensor, step: int | Tensor
) -> None:
    """Set a tensor's flag where any element is NaN or infinite, and keep the first step, in place.

    Shapes: x any; flags, first_seen (48,), int32, first_seen -1 where nothing was seen; slot from 0
    to 47 and step, numbers or int32 tensors (1,), which a captured graph reads anew. Flags stay
    set. Raises ValueError for shapes that do not fit and a slot out of range.
    """
    if not isinstance(slot, Tensor) and not 0 <= slot < SLOTS:
        raise ValueError(f"nan_flags_: got slot {slot}, expected 0 to {SLOTS - 1}")
    expect("nan_flags_", flags=(flags, (SLOTS,)), first_seen=(first_seen, (SLOTS,)))
    at, now = (
        one if isinstance(one, Tensor) else torch.full_like(flags[:1], one) for one in (slot, step)
    )
    expect("nan_flags_", slot=(at, (1,)), step=(now, (1,)))
    _flags(x.detach(), flags, first_seen, at, now)


def _places(
    name: str, slices: Tensor | Sequence[tuple[int, int]], count: int, n: int, device: torch.device
) -> Tensor:
    """Give slices as a tensor (count, 2); those that are numbers are checked."""
    if isinstance(slices, Tensor):
        expect(name, slices=(slices, (count, 2)))
        return numbered(slices)
    pairs = [(int(start), int(end)) for start, end in slices]
    if len(pairs) != count or any(not 0 <= start <= end <= n for start, end in pairs):
        raise ValueError(f"{name}: got slices {pairs}, expected {count} within 0 and {n}")
    return torch.tensor(pairs, dtype=torch.int32, device=device)


def _inside(place: Tensor, n: int) -> Tensor:
    at = torch.arange(n, device=place.device)
    return (at >= place[0]) & (at < place[1])


def _plain_norms(g: Tensor, slices: Tensor, blocked: bool) -> Tensor:
    norms = [
        torch.where(_inside(place, g.shape[1]), g, 0).square().sum(1).sqrt() for place in slices
    ]
    return torch.stack(norms, 1).flatten()


def _fast_norms(g: Tensor, slices: Tensor, blocked: bool) -> Tensor | Refused:
    norms = g.new_empty(8)
    contract = "dqn.grad_norms_blocked" if blocked else "dqn.grad_norms"
    refused = launch(contract, g.contiguous(), slices.contiguous(), norms)
    return norms if refused is None else refused


def _fake_norms(g: Tensor, slices: Tensor, blocked: bool) -> Tensor:
    return g.new_empty(8)


def _plain_saxpy(acc: Tensor, g: Tensor, beta: Tensor, trunk: Tensor, slices: Tensor) -> None:
    kind = wide(acc).dtype
    long_g, share = g.to(kind), trunk.to(kind)
    out = acc.to(kind) + share * long_g
    for place, own in zip(slices, beta.to(kind), strict=True):
        corrected = out + (own - share) * long_g
        out = torch.where(_inside(place, acc.shape[0]) & (own != share), corrected, out)
    acc.copy_(out)


def _fast_saxpy(
    acc: Tensor, g: Tensor, beta: Tensor, trunk: Tensor, slices: Tensor
) -> Refused | None:
    return launch("dqn.saxpy_correction", acc, g, beta, trunk, slices.contiguous())


def _plain_flags(x: Tensor, flags: Tensor, first_seen: Tensor, slot: Tensor, step: Tensor) -> None:
    bad = ~x.isfinite().all()
    here = (torch.arange(SLOTS, device=flags.device) == slot) & bad
    flags.copy_(torch.where(here, 1, flags))
    first_seen.copy_(torch.where(here & (first_seen < 0), step, first_seen))


def _fast_flags(
    x: Tensor, flags: Tensor, first_seen: Tensor, slot: Tensor, step: Tensor
) -> Refused | None:
    return launch("dqn.nan_flags", x.contiguous().view(-1), flags, first_seen, slot, step)


_norms = operator(
    "grad_norms(Tensor g, Tensor slices, bool blocked) -> Tensor",
    _plain_norms,
    fast=_fast_norms,
    fake=_fake_norms,
)
_saxpy = operator(
    "saxpy_correction_(Tensor(a!) acc, Tensor g, Tensor beta, Tensor trunk, Tensor slices) -> ()",
    _plain_saxpy,
    fast=_fast_saxpy,
    fake=nothing,
)
_flags = operator(
    "nan_flags_(Tensor x, Tensor(a!) flags, Tensor(b!) first_seen, Tensor slot, Tensor step) -> ()",
    _plain_flags,
    fast=_fast_flags,
    fake=nothing,
)
