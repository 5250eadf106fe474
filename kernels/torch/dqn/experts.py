"""Mixture of experts: the gate over the state and the mixture, forward and backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def moe_gate(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> Tensor:
    """Weigh the experts by the state: g = softmax(max(x W1^T + b1, 0) W2^T + b2).

    Shapes: x (B, S); W1 (H, S); b1 (H,); W2 (E, H); b2 (E,). Returns (B, E), rows of sum 1.
    Differentiable, once. Raises ValueError for shapes that do not fit.
    """
    ranked("moe_gate", "x", x, "B S")
    ranked("moe_gate", "W2", W2, "E H")
    ranked("moe_gate", "W1", W1, "H S")
    (E, H), S = W2.shape, W1.shape[1]
    rows = x.shape[0]
    expect("moe_gate", x=(x, (rows, S)), W1=(W1, (H, S)), b1=(b1, (H,)), b2=(b2, (E,)))
    g: Tensor = _gate(*alike(x, W1, b1, W2, b2))[0]
    return g


def moe_mixture(g: Tensor, experts: Tensor) -> Tensor:
    """Join what the experts give: out_b = sum_k g_bk experts_bk.

    Shapes: g (B, E); experts (B, E, D). Returns (B, D). Differentiable, once. Raises ValueError
    for shapes that do not fit.
    """
    ranked("moe_mixture", "experts", experts, "B E D")
    expect("moe_mixture", g=(g, experts.shape[:2]))
    out: Tensor = _mixture(*alike(g, experts))
    return out


def moe_balance(g: Tensor) -> Tensor:
    """Charge an uneven use of the experts: E sum_k (mean_b g_bk)^2, from 1 (even) to E.

    Soft form of the loss of Switch, arXiv:2101.03961. g (B, E); returns a scalar, differentiable.
    """
    return g.shape[1] * g.mean(0).square().sum()


def _plain(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor]:
    h = torch.addmm(b1, x, W1.mT)
    h = torch.where(h < 0, 0, h)
    return torch.softmax(torch.addmm(b2, h, W2.mT), 1), h


def _plain_backward(dg: Tensor, x: Tensor, W1: Tensor, W2: Tensor, h: Tensor, g: Tensor) -> _Five:
    dlogit = g * (dg - (g * dg).sum(1, keepdim=True))
    dh = torch.where(h > 0, dlogit @ W2, 0)
    return dh @ W1, dh.mT @ x, dh.sum(0), dlogit.mT @ h, dlogit.sum(0)


def _fast(
    x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor
) -> tuple[Tensor, Tensor] | Refused:
    g, h = _fake(x, W1, b1, W2, b2)
    refused = launch("dqn.moe_gate_forward", *contiguous(x, W1, b1, W2, b2), g, h)
    return (g, h) if refused is None else refused


def _fast_backward(
    dg: Tensor, x: Tensor, W1: Tensor, W2: Tensor, h: Tensor, g: Tensor
) -> _Five | Refused:
    grads = _fake_backward(dg, x, W1, W2, h, g)
    refused = launch("dqn.moe_gate_backward", *contiguous(dg, x, W1, W2, h, g), *grads)
    return grads if refused is None else refused


def _fake(x: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty((x.shape[0], W2.shape[0])), x.new_empty((x.shape[0], W1.shape[0]))


def _fake_backward(dg: Tensor, x: Tensor, W1: Tensor, W2: Tensor, h: Tensor, g: Tensor) -> _Five:
    E, H = W2.shape
    return (
        x.new_empty(x.shape),
        x.new_empty(W1.shape),
        x.new_empty((H,)),
        x.new_empty((E, H)),
        x.new_empty((E,)),
    )


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    x, W1, _, W2, _ = inputs
    g, h = output
    ctx.mark_non_differentiable(h)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, W1, W2, h, g)


def _backward(ctx: Any, dg: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if dg is None:
        return (None,) * 5
    grads: _Five = _gate_backward(dg, *ctx.saved_tensors)
    return grads


def _plain_mixture(g: Tensor, experts: Tensor) -> Tensor:
    return (g.unsqueeze(1) @ experts).squeeze(1)


def _plain_mixture_backward(d_out: Tensor, g: Tensor, experts: Tensor) -> tuple[Tensor, Tensor]:
    return g.unsqueeze(2) * d_out.unsqueeze(1), (experts @ d_out.unsqueeze(2)).squeeze(2)


def _fast_mixture(g: Tensor, experts: Tensor) -> Tensor | Refused:
    out = _fake_mixture(g, experts)
    refused = launch("dqn.moe_mixture_forward", *contiguous(g, experts), out)
    return out if refused is None else refused


def _fast_mixture_backward(
    d_out: Tensor, g: Tensor, experts: Tensor
) -> tuple[Tensor, Tensor] | Refused:
    grads = _fake_mixture_backward(d_out, g, experts)
    refused = launch("dqn.moe_mixture_backward", *contiguous(d_out, g, experts), *grads)
    return grads if refused is None else refused


def _fake_mixture(g: Tensor, experts: Tensor) -> Tensor:
    return experts.new_empty((experts.shape[0], experts.shape[2]))


def _fake_mixture_backward(d_out: Tensor, g: Tensor, experts: Tensor) -> tuple[Tensor, Tensor]:
    return experts.new_empty(experts.shape), g.new_empty(g.shape)


def _keep_mixture(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _mixture_backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor]:
    g, experts = ctx.saved_tensors
    d_experts, dg = _mixture_backwards(d_out, g, experts)
    return dg, d_experts


_gate = operator(
    "moe_gate(Tensor x, Tensor W1, Tensor b1, Tensor W2, Tensor b2) -> (Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
_gate_backward = operator(
    "moe_gate_backward(Tensor dg, Tensor x, Tensor W1, Tensor W2, Tensor h, Tensor g) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake_backward,
)
_mixture = operator(
    "moe_mixture(Tensor g, Tensor experts) -> Tensor",
    _plain_mixture,
    fast=_fast_mixture,
    fake=_fake_mixture,
)
_mixture_backwards = operator(
    "moe_mixture_backward(Tensor d_out, Tensor g, Tensor experts) -> (Tensor, Tensor)",
    _plain_mixture_backward,
    fast=_fast_mixture_backward,
    fake=_fake_mixture_backward,
)
torch.library.register_autograd("trueup::moe_gate", _backward, setup_context=_keep)
torch.library.register_autograd(
    "trueup::moe_mixture", _mixture_backward, setup_context=_keep_mixture
)
