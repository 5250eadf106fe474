"""The C51 loss of the branches: value and gradients come from one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.projection import project
from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

BRANCH_WEIGHT = 0.25  # the mean over the four branches
_Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class C51Loss(NamedTuple):
    """What `c51_loss` gives; `total` alone is differentiable."""

    total: Tensor
    """Scalar: sum over samples and branches of weight / B * branch_weight * loss."""
    losses: Tensor
    """(B, 4): cross-entropy of every branch, unweighted, as a priority may be."""
    invalid: Tensor
    """(B, 4), int32: 1 where a support is degenerate or a target is not a number."""


def c51_loss(
    logits: Tensor,
    p_next: Tensor,
    support: Tensor,
    next_support: Tensor,
    returns: Tensor,
    discount: Tensor,
    weight: Tensor,
    *,
    positions: Tensor | None = None,
    shift: Tensor | None = None,
    next_shift: Tensor | None = None,
    branch_weight: float = BRANCH_WEIGHT,
) -> C51Loss:
    """Give the cross-entropy of the projected target: C51, arXiv:1707.06887, on shifted atoms.

        t_j = returns + discount z'_j, projected onto the online atoms;  L = -sum_i m_i log p_i
    Shapes: logits, p_next (B, 4, n_atoms) of the taken and of the next actions; support,
    next_support (B, 4, 3) = (v_min, v_max, delta_z); returns, discount, shift, next_shift (B, 4);
    weight (B,); positions (n_atoms,) from 0 to 1, evenly spaced if None. Discount is 0 at a
    terminal state. Differentiable in logits and shift, once; the target is a constant. Raises
    ValueError for shapes that do not fit.
    """
    ranked("c51_loss", "logits", logits, "B 4 n_atoms")
    B, K, n = logits.shape
    expect(
        "c51_loss",
        p_next=(p_next, (B, K, n)),
        support=(support, (B, K, 3)),
        next_support=(next_support, (B, K, 3)),
        returns=(returns, (B, K)),
        discount=(discount, (B, K)),
        weight=(weight, (B,)),
        positions=(positions, (n,)),
        shift=(shift, (B, K)),
        next_shift=(next_shift, (B, K)),
    )
    given = alike(
        logits, p_next, support, next_support, returns, discount, weight, positions, shift,
        next_shift,
    )  # fmt: skip
    total, losses, _, _, invalid = _loss(*given, branch_weight)
    return C51Loss(total, losses, invalid)


def _plain(
    logits: Tensor,
    p_next: Tensor,
    support: Tensor,
    next_support: Tensor,
    returns: Tensor,
    discount: Tensor,
    weight: Tensor,
    positions: Tensor | None,
    shift: Tensor | None,
    next_shift: Tensor | None,
    branch_weight: float,
) -> _Outputs:
    on = project(p_next, support, next_support, returns, discount, positions, shift, next_shift)
    t, z, cell, mass = on.t, on.z, on.cell, on.mass
    log_p = torch.log_softmax(logits, -1)
    losses = -(mass * log_p).sum(-1)
    omega = weight.unsqueeze(-1) * (branch_weight / logits.shape[0])
    d_logits = omega.unsqueeze(-1) * (log_p.exp() - mass)
    interior = torch.where((t > z[..., :1]) & (t < z[..., -1:]), p_next, 0)
    slope = log_p.diff(dim=-1).gather(-1, cell) / on.width.gather(-1, cell)
    pull = torch.where(interior == 0, 0, interior * slope).sum(-1, keepdim=True)
    d_shift = torch.where(on.valid, torch.where(on.known, pull, torch.nan), 0).squeeze(-1)
    return (omega * losses).sum(), losses, d_logits, d_shift, on.invalid


def _fast(
    logits: Tensor,
    p_next: Tensor,
    support: Tensor,
    next_support: Tensor,
    returns: Tensor,
    discount: Tensor,
    weight: Tensor,
    positions: Tensor | None,
    shift: Tensor | None,
    next_shift: Tensor | None,
    branch_weight: float,
) -> _Outputs | Refused:
    if branch_weight != BRANCH_WEIGHT:
        return Refused(f"the kernel's branch weight is {BRANCH_WEIGHT}")
    rows = contiguous(
        logits, p_next, support, next_support, returns, discount, weight,
        *(() if positions is None else (positions,)),
        torch.zeros_like(returns) if shift is None else shift,
        torch.zeros_like(returns) if next_shift is None else next_shift,
    )  # fmt: skip
    losses, d_logits, d_shift, invalid = _empty(logits)
    contract = "dqn.c51_loss" if positions is None else "dqn.c51_loss_positions"
    refused = launch(contract, *rows, losses, d_logits, d_shift, invalid)
    if refused is not None:
        return refused
    omega = weight.unsqueeze(-1) * (branch_weight / logits.shape[0])
    return (omega * losses).sum(), losses, d_logits, d_shift, invalid


def _empty(logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows = logits.shape[:2]
    return (
        logits.new_empty(rows),
        logits.new_empty(logits.shape),
        logits.new_empty(rows),
        logits.new_empty(rows, dtype=torch.int32),
    )


def _fake(logits: Tensor, *_: Any) -> _Outputs:
    return (logits.new_empty(()), *_empty(logits))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: _Outputs) -> None:
    _, losses, d_logits, d_shift, invalid = output
    ctx.branch_weight = inputs[-1]
    ctx.shifted = inputs[8] is not None
    ctx.mark_non_differentiable(losses, d_logits, d_shift, invalid)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(d_logits, d_shift, inputs[6])


def _backward(ctx: Any, d_total: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if d_total is None:
        return (None,) * 11
    d_logits, d_shift, weight = ctx.saved_tensors
    moved = None
    if ctx.shifted:
        moved = d_total * weight.unsqueeze(-1) * (ctx.branch_weight / weight.shape[0]) * d_shift
    return d_total * d_logits, *(None,) * 7, moved, None, None


_loss = operator(
    "c51_loss(Tensor logits, Tensor p_next, Tensor support, Tensor next_support, Tensor returns, "
    "Tensor discount, Tensor weight, Tensor? positions, Tensor? shift, Tensor? next_shift, "
    "float branch_weight) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
torch.library.register_autograd("trueup::c51_loss", _backward, setup_context=_keep)
