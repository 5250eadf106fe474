"""How far an auxiliary signal moves the atoms of the taken action, and the gradient of that."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, numbered, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_BRANCH_WEIGHT = 0.25  # in the kernel: the mean over the four branches
_Two = tuple[Tensor, Tensor]


def atom_shift(W: Tensor, signal: Tensor, actions: Tensor) -> Tensor:
    """Give how far the atoms of the taken action move: W[actions_b] signal_b.

    Shapes: W (n_actions,); signal (B,) from -1 to 1; actions (B,) from 0 to n_actions - 1. Returns
    (B,). Differentiable in W and signal, once; the sum over the batch has a fixed order in the
    kernel, and rows of W that were not taken have a gradient of 0. Raises ValueError for shapes
    that do not fit.
    """
    ranked("atom_shift", "W", W, "n_actions")
    ranked("atom_shift", "signal", signal, "B")
    expect("atom_shift", actions=(actions, signal.shape))
    moved: Tensor = _shift(*alike(W, signal), numbered(actions))
    return moved


def atom_shift_gradient(
    d_shift: Tensor, actions: Tensor, signal: Tensor, weight: Tensor, W: Tensor, d_state: Tensor
) -> _Two:
    """Take dL/dshift of the taken actions back to W, and add it to the state's gradient.

        omega = weight / (4 B);  dW[a] = sum_{b: a_b = a} omega g s;  d_state + omega g W[a]
    Shapes: d_shift, actions, signal, weight, d_state (B,); W (n_actions,). Returns dW and the new
    d_state; for gradients that were not formed by autograd, which needs no call. Raises ValueError
    for shapes that do not fit.
    """
    ranked("atom_shift_gradient", "W", W, "n_actions")
    ranked("atom_shift_gradient", "d_shift", d_shift, "B")
    rows = d_shift.shape
    expect(
        "atom_shift_gradient",
        actions=(actions, rows),
        signal=(signal, rows),
        weight=(weight, rows),
        d_state=(d_state, rows),
    )
    given = [item.detach() for item in alike(d_shift, signal, weight, W, d_state)]
    d_W, d_next = _gradient(given[0], numbered(actions), *given[1:])
    return d_W, d_next


def _plain(W: Tensor, signal: Tensor, actions: Tensor) -> Tensor:
    return W[actions.long()] * signal


def _fake(W: Tensor, signal: Tensor, actions: Tensor) -> Tensor:
    return signal.new_empty(signal.shape)


def _plain_gradient(
    d_shift: Tensor, actions: Tensor, signal: Tensor, weight: Tensor, W: Tensor, d_state: Tensor
) -> _Two:
    g = weight / weight.shape[0] * _BRANCH_WEIGHT * d_shift
    own = actions.unsqueeze(1) == torch.arange(W.shape[0], device=W.device)
    d_W = torch.where(own, (g * signal).unsqueeze(1), 0).sum(0)
    return d_W, d_state + g * W[actions.long()]


def _fast_gradient(
    d_shift: Tensor, actions: Tensor, signal: Tensor, weight: Tensor, W: Tensor, d_state: Tensor
) -> _Two | Refused:
    d_W, d_next = _fake_gradient(d_shift, actions, signal, weight, W, d_state)
    given = contiguous(d_shift, actions, signal, weight, W, d_state)
    refused = launch("dqn.atom_shift_gradient", *given, d_W, d_next)
    return (d_W, d_next) if refused is None else refused


def _fake_gradient(
    d_shift: Tensor, actions: Tensor, signal: Tensor, weight: Tensor, W: Tensor, d_state: Tensor
) -> _Two:
    return W.new_empty(W.shape), d_state.new_empty(d_state.shape)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, d_shift: Tensor) -> tuple[Tensor, Tensor, None]:
    """Weights of 4 B make omega exactly 1: autograd has put the sample's weight into d_shift."""
    W, signal, actions = ctx.saved_tensors
    weight = torch.full_like(signal, signal.shape[0] / _BRANCH_WEIGHT)
    d_W, d_signal = _gradient(d_shift, actions, signal, weight, W, torch.zeros_like(signal))
    return d_W, d_signal, None


_shift = operator(
    "atom_shift(Tensor W, Tensor signal, Tensor actions) -> Tensor", _plain, fake=_fake
)
_gradient = operator(
    "atom_shift_gradient(Tensor d_shift, Tensor actions, Tensor signal, Tensor weight, Tensor W, "
    "Tensor d_state) -> (Tensor, Tensor)",
    _plain_gradient,
    fast=_fast_gradient,
    fake=_fake_gradient,
)
torch.library.register_autograd("trueup::atom_shift", _backward, setup_context=_keep)
