"""Variable selection over feature groups, forward and backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, operator

BOUNDS = (0, 42, 60, 76, 92, 115, 121)
"""Where market, OFI, TLOB, MTF, portfolio and plan features begin, and where the last ends."""


def select_variables(
    x: Tensor, W: Tensor, b: Tensor, bounds: Tensor, sigma: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Scale every group of features by its weight: variable selection, arXiv:1912.09363.

        w = softmax(x W^T + b);  out_i = x_i (w_g(i) sigma), the gate formed first
    Shapes: x (B, D); W (6, D); b (6,); bounds (7,), int32, ascending: group g is [bounds[g],
    bounds[g + 1]), features outside pass unscaled. Returns out (B, D) and w (B, 6), which is for
    reading alone. Differentiable in x, W and b, once. Raises ValueError for shapes that do not fit.
    """
    ranked("select_variables", "x", x, "B D")
    ranked("select_variables", "W", W, "6 D")
    rows, D = x.shape[0], W.shape[1]
    expect("select_variables", x=(x, (rows, D)), W=(W, (6, D)), b=(b, (6,)), bounds=(bounds, (7,)))
    out, w = _forward(*alike(x, W, b), bounds.int(), sigma)
    return out, w


def _member(bounds: Tensor, D: int) -> Tensor:
    """Give (6, D), true where a feature is in a group."""
    at = torch.arange(D, device=bounds.device)
    return (at >= bounds[:-1, None]) & (at < bounds[1:, None])


def _gate(w: Tensor, member: Tensor, sigma: float) -> Tensor:
    """Give each feature the gate of its group, 1 outside; nothing is added up, nothing rounded."""
    gate = torch.ones_like(w[:, :1]).expand(-1, member.shape[1])
    for group, scaled in zip(member, (w * sigma).unbind(1), strict=True):
        gate = torch.where(group, scaled.unsqueeze(1), gate)
    return gate


def _plain(x: Tensor, W: Tensor, b: Tensor, bounds: Tensor, sigma: float) -> tuple[Tensor, Tensor]:
    w = torch.softmax(torch.addmm(b, x, W.mT), 1)
    return x * _gate(w, _member(bounds, x.shape[1]), sigma), w


def _plain_backward(
    d_out: Tensor, x: Tensor, W: Tensor, w: Tensor, bounds: Tensor, sigma: float
) -> tuple[Tensor, Tensor, Tensor]:
    member = _member(bounds, x.shape[1])
    dw = sigma * ((d_out * x) @ member.mT.to(x.dtype))
    dlogit = w * (dw - (w * dw).sum(1, keepdim=True))
    dx = d_out * _gate(w, member, sigma) + dlogit @ W
    return dx, dlogit.mT @ x, dlogit.sum(0)


def _fast(
    x: Tensor, W: Tensor, b: Tensor, bounds: Tensor, sigma: float
) -> tuple[Tensor, Tensor] | Refused:
    out, w = _fake(x)
    refused = launch("dqn.vsn_forward", *contiguous(x, W, b, bounds), sigma, out, w)
    return (out, w) if refused is None else refused


def _fast_backward(
    d_out: Tensor, x: Tensor, W: Tensor, w: Tensor, bounds: Tensor, sigma: float
) -> tuple[Tensor, Tensor, Tensor] | Refused:
    grads = _fake_backward(d_out, x, W)
    refused = launch("dqn.vsn_backward", *contiguous(d_out, x, W, w, bounds), sigma, *grads)
    return grads if refused is None else refused


def _fake(x: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty((x.shape[0], 6))


def _fake_backward(d_out: Tensor, x: Tensor, W: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), W.new_empty(W.shape), W.new_empty((6,))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, W, _, bounds, ctx.sigma = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, W, output[1], bounds)


def _backward(ctx: Any, d_out: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if d_out is None:
        return (None,) * 5
    return *_backwards(d_out, *ctx.saved_tensors, ctx.sigma), None, None


_forward = operator(
    "vsn(Tensor x, Tensor W, Tensor b, Tensor bounds, float sigma) -> (Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
_backwards = operator(
    "vsn_backward(Tensor d_out, Tensor x, Tensor W, Tensor w, Tensor bounds, float sigma) "
    "-> (Tensor, Tensor, Tensor)",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake_backward,
)
torch.library.register_autograd("trueup::vsn", _backward, setup_context=_keep)
