"""Value and advantages of the branches joined to logits: BDQ, arXiv:1711.08946, by atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import BRANCHES, alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator


def dueling(value: Tensor, advantage: Tensor, branches: Sequence[int] = BRANCHES) -> Tensor:
    """Give logits = value + advantage - its mean over the actions of the branch.

    Shapes: value (B, n_atoms); advantage and the result (B, n_actions, n_atoms), the actions of
    all branches one after another. Differentiable, once. Raises ValueError for shapes that do not
    fit.
    """
    ranked("dueling", "value", value, "B n_atoms")
    B, n = value.shape
    expect("dueling", advantage=(advantage, (B, sum(branches), n)))
    logits: Tensor = _forward(*alike(value, advantage), list(branches))
    return logits


def _less_mean(rows: Tensor, branches: Sequence[int]) -> Tensor:
    parts = rows.split(list(branches), 1)
    return torch.cat([part - part.mean(1, keepdim=True) for part in parts], 1)


def _plain(value: Tensor, advantage: Tensor, branches: Sequence[int]) -> Tensor:
    return value.unsqueeze(1) + _less_mean(advantage, branches)


def _plain_backward(d_logits: Tensor, branches: Sequence[int]) -> tuple[Tensor, Tensor]:
    return d_logits.sum(1), _less_mean(d_logits, branches)


def _fast(value: Tensor, advantage: Tensor, branches: Sequence[int]) -> Tensor | Refused:
    if tuple(branches) != BRANCHES:
        return Refused(f"the kernel is for branches of {BRANCHES} actions")
    logits = _fake(value, advantage, branches)
    refused = launch("dqn.dueling_forward", *contiguous(value, advantage), logits)
    return logits if refused is None else refused


def _fast_backward(d_logits: Tensor, branches: Sequence[int]) -> tuple[Tensor, Tensor] | Refused:
    if tuple(branches) != BRANCHES:
        return Refused(f"the kernel is for branches of {BRANCHES} actions")
    d_value, d_advantage = _fake_backward(d_logits, branches)
    refused = launch("dqn.dueling_backward", d_logits.contiguous(), d_value, d_advantage)
    return (d_value, d_advantage) if refused is None else refused


def _fake(value: Tensor, advantage: Tensor, branches: Sequence[int]) -> Tensor:
    return advantage.new_empty(advantage.shape)


def _fake_backward(d_logits: Tensor, branches: Sequence[int]) -> tuple[Tensor, Tensor]:
    B, _, n = d_logits.shape
    return d_logits.new_empty((B, n)), d_logits.new_empty(d_logits.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.branches = inputs[2]


def _backward(ctx: Any, d_logits: Tensor) -> tuple[Tensor | None, ...]:
    return *_backwards(d_logits, ctx.branches), None


_forward = operator(
    "dueling(Tensor value, Tensor advantage, int[] branches) -> Tensor",
    _plain,
    fast=_fast,
    fake=_fake,
)
_backwards = operator(
    "dueling_backward(Tensor d_logits, int[] branches) -> (Tensor, Tensor)",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake_backward,
)
torch.library.register_autograd("trueup::dueling", _backward, setup_context=_keep)
