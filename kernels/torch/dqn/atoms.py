"""Atoms of a distributional head on a support for every row, and their expected value."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

# How far delta_z (n - 1) may be from v_max - v_min, relative to |v_max| + |v_min|.
_SLACK = 2.0**-18
_LEAST_STEP = 2.0**-126  # the reciprocal of a smaller delta_z is not finite in float32


def support_of(v_min: Tensor | float, v_max: Tensor | float, n_atoms: int) -> Tensor:
    """Give (..., 3) = (v_min, v_max, delta_z) in float32: evenly spaced atoms between two ends.

    Raises ValueError for fewer than two atoms.
    """
    if n_atoms < 2:
        raise ValueError(f"n_atoms: got {n_atoms}, expected 2 or more")
    low = torch.as_tensor(v_min, dtype=torch.float32)
    high = torch.as_tensor(v_max, dtype=torch.float32, device=low.device)
    low, high = torch.broadcast_tensors(low, high)
    return torch.stack([low, high, (high - low) / (n_atoms - 1)], -1)


def expected_q(
    logits: Tensor,
    support: Tensor,
    *,
    positions: Tensor | None = None,
    shift: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Give Q = sum_i p_i z_i of every action, p = softmax(logits), and where a support is none.

    Shapes: logits (B, n_actions, n_atoms); support (B, n_actions, 3) = (v_min, v_max, delta_z);
    positions (n_atoms,) from 0 to 1; shift (B, n_actions), which moves all atoms of an action.
    Returns q (B, n_actions) and invalid, int32, 1 where the support is degenerate: there Q is its
    first atom and has no gradient at the logits. Differentiable in logits and shift, twice as
    well. Raises ValueError for shapes that do not fit.
    """
    ranked("expected_q", "logits", logits, "B n_actions n_atoms")
    rows, n = logits.shape[:2], logits.shape[2]
    expect(
        "expected_q",
        support=(support, (*rows, 3)),
        positions=(positions, (n,)),
        shift=(shift, rows),
    )
    q, invalid = _expected(*alike(logits, support, positions, shift))
    return q, invalid


def atoms(
    support: Tensor, n: int, positions: Tensor | None = None, shift: Tensor | None = None
) -> Tensor:
    """Give z (..., n): v_min + i delta_z, or v_min + positions (v_max - v_min), then the shift."""
    z = support[..., :1] + rise_of(support, n, positions)
    if shift is None:
        return z
    return torch.where(shift.unsqueeze(-1) == 0, z, z + shift.unsqueeze(-1))


def rise_of(support: Tensor, n: int, positions: Tensor | None) -> Tensor:
    """Give z - z_0 (..., n); exactly 0 at the first atom, whatever delta_z is."""
    places = torch.arange(n, device=support.device)
    if positions is None:
        rise = places * support[..., 2:]
    else:
        rise = positions * (support[..., 1:2] - support[..., :1])
    return torch.where(places == 0, 0, rise)


def step_of(support: Tensor, n: int, positions: Tensor | None) -> Tensor:
    """Give the widths of the n - 1 cells, (..., n - 1)."""
    if positions is None:
        return support[..., 2:].expand(*support.shape[:-1], n - 1)
    return positions.diff() * (support[..., 1:2] - support[..., :1])


def usable(support: Tensor, n: int) -> Tensor:
    """Tell which supports (..., 3) have v_min < v_max and a normal delta_z, that of n atoms."""
    low, high, step = support.unbind(-1)
    span = high - low
    fits = (step * (n - 1) - span).abs() <= _SLACK * (high.abs() + low.abs())
    return (high > low) & (step >= _LEAST_STEP) & span.isfinite() & fits


def _plain(
    logits: Tensor, support: Tensor, positions: Tensor | None, shift: Tensor | None
) -> tuple[Tensor, Tensor]:
    n = logits.shape[-1]
    valid = usable(support, n)
    rise = (torch.softmax(logits, -1) * rise_of(support, n, positions)).sum(-1)
    first = support[..., 0] if shift is None else support[..., 0] + shift
    return first + torch.where(valid, rise, 0), (~valid).int()


def _fast(
    logits: Tensor, support: Tensor, positions: Tensor | None, shift: Tensor | None
) -> tuple[Tensor, Tensor] | Refused:
    q, invalid = _fake(logits)
    if positions is None:
        refused = launch("dqn.expected_q", *contiguous(logits, support), q, invalid)
        # Atoms that move together move their mean.
        moved = q if shift is None or refused is not None else q.add_(shift)
    else:
        moved = q
        shifts = torch.zeros_like(q) if shift is None else shift
        given = contiguous(logits, support, positions, shifts)
        refused = launch("dqn.expected_q_positions", *given, q, invalid)
    return (moved, invalid) if refused is None else refused


def _fake(logits: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    rows = logits.shape[:2]
    return logits.new_empty(rows), logits.new_empty(rows, dtype=torch.int32)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    logits, support, positions, shift = inputs
    ctx.shifted, ctx.positioned = shift is not None, positions is not None
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(logits, support, *(() if positions is None else (positions,)))


def _backward(ctx: Any, dq: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if dq is None:
        return None, None, None, None
    logits, support, *rest = ctx.saved_tensors
    d_logits = _expected_backward(dq, logits, support, rest[0] if ctx.positioned else None)
    return d_logits, None, None, dq if ctx.shifted else None


def _distances(
    logits: Tensor, support: Tensor, positions: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Give p, z - z_0 (0 on a degenerate support) and z - Q, each (..., n)."""
    n, p = logits.shape[-1], torch.softmax(logits, -1)
    rise = rise_of(support, n, positions)
    rise = torch.where(usable(support, n).unsqueeze(-1), rise, 0)
    return p, rise, rise - (p * rise).sum(-1, keepdim=True)


def _plain_backward(
    dq: Tensor, logits: Tensor, support: Tensor, positions: Tensor | None
) -> Tensor:
    p, _, away = _distances(logits, support, positions)
    return dq.unsqueeze(-1) * p * away


def _fast_backward(
    dq: Tensor, logits: Tensor, support: Tensor, positions: Tensor | None
) -> Tensor | Refused:
    if positions is not None:
        return Refused("the kernel is for evenly spaced atoms")
    d_logits, d_shift = logits.new_empty(logits.shape), dq.new_empty(dq.shape)
    given = contiguous(dq, logits, support)
    refused = launch("dqn.expected_q_backward", *given, d_logits, d_shift)
    return d_logits if refused is None else refused


def _fake_backward(dq: Tensor, logits: Tensor, *_: Any) -> Tensor:
    return logits.new_empty(logits.shape)


def _keep_backward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    dq, logits, support, positions = inputs
    ctx.save_for_backward(dq, logits, support, *(() if positions is None else (positions,)))


def _backward_twice(ctx: Any, d: Tensor) -> tuple[Tensor | None, ...]:
    dq, logits, support, *rest = ctx.saved_tensors
    p, rise, away = _distances(logits, support, rest[0] if rest else None)
    pulled = dq.unsqueeze(-1) * (d * away - rise * (d * p).sum(-1, keepdim=True))
    d_logits = p * (pulled - (p * pulled).sum(-1, keepdim=True))
    return (d * p * away).sum(-1), d_logits, None, None


_expected = operator(
    "expected_q(Tensor logits, Tensor support, Tensor? positions, Tensor? shift) "
    "-> (Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
_expected_backward = operator(
    "expected_q_backward(Tensor dq, Tensor logits, Tensor support, Tensor? positions) -> Tensor",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake_backward,
)
torch.library.register_autograd("trueup::expected_q", _backward, setup_context=_keep)
torch.library.register_autograd(
    "trueup::expected_q_backward", _backward_twice, setup_context=_keep_backward
)
