"""Symmetric logarithm and exponential: DreamerV3, arXiv:2301.04104, Eq. 9."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, flat
from trueup.kernels.torch.ops.registry import Refused, launch, operator


def symlog(x: Tensor) -> Tensor:
    """Compress numbers of any size and sign: y = sign(x) ln(1 + |x|).

    x of any shape, which y has too. Differentiable, twice.
    """
    y: Tensor = _symlog(*alike(x))
    return y


def symexp(x: Tensor) -> Tensor:
    """Undo `symlog`: y = sign(x) (exp(|x|) - 1).

    x of any shape, which y has too. Differentiable, twice.
    """
    y: Tensor = _symexp(*alike(x))
    return y


def _plain(x: Tensor) -> Tensor:
    # The vectorised logarithm is off by the last bit where a number is subnormal.
    size = x.abs()
    small = size < torch.finfo(x.dtype).eps / 4
    return torch.copysign(torch.where(small, size, torch.log1p(size)), x)


def _plain_backward(x: Tensor, dy: Tensor) -> Tensor:
    return dy / (1 + x.abs())


def _plain_symexp(x: Tensor) -> Tensor:
    return torch.copysign(torch.expm1(x.abs()), x)


def _plain_symexp_backward(x: Tensor, dy: Tensor) -> Tensor:
    return dy * torch.exp(x.abs())


def _fast(x: Tensor) -> Tensor | Refused:
    return _launched("dqn.symlog", x)


def _fast_symexp(x: Tensor) -> Tensor | Refused:
    return _launched("dqn.symexp", x)


def _fast_backward(x: Tensor, dy: Tensor) -> Tensor | Refused:
    return _launched("dqn.symlog_backward", x, dy)


def _fast_symexp_backward(x: Tensor, dy: Tensor) -> Tensor | Refused:
    return _launched("dqn.symexp_backward", x, dy)


def _launched(contract: str, *given: Tensor) -> Tensor | Refused:
    rows = flat(*given)
    out = torch.empty_like(rows[0])
    refused = launch(contract, *rows, out)
    return out.view(given[0].shape) if refused is None else refused


def _fake(x: Tensor, *_: Tensor) -> Tensor:
    return x.new_empty(x.shape)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, dy: Tensor) -> Tensor:
    dx: Tensor = _symlog_backward(*ctx.saved_tensors, dy)
    return dx


def _backward_twice(ctx: Any, d: Tensor) -> tuple[Tensor, Tensor]:
    x, dy = ctx.saved_tensors
    slope = 1 / (1 + x.abs())
    return -d * dy * torch.sign(x) * slope * slope, d * slope


def _backward_symexp(ctx: Any, dy: Tensor) -> Tensor:
    dx: Tensor = _symexp_backward(*ctx.saved_tensors, dy)
    return dx


def _backward_symexp_twice(ctx: Any, d: Tensor) -> tuple[Tensor, Tensor]:
    x, dy = ctx.saved_tensors
    slope = torch.exp(x.abs())
    return d * dy * torch.sign(x) * slope, d * slope


_symlog = operator("symlog(Tensor x) -> Tensor", _plain, fast=_fast, fake=_fake)
_symlog_backward = operator(
    "symlog_backward(Tensor x, Tensor dy) -> Tensor",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake,
)
_symexp = operator("symexp(Tensor x) -> Tensor", _plain_symexp, fast=_fast_symexp, fake=_fake)
_symexp_backward = operator(
    "symexp_backward(Tensor x, Tensor dy) -> Tensor",
    _plain_symexp_backward,
    fast=_fast_symexp_backward,
    fake=_fake,
)
torch.library.register_autograd("trueup::symlog", _backward, setup_context=_keep)
torch.library.register_autograd("trueup::symlog_backward", _backward_twice, setup_context=_keep)
torch.library.register_autograd("trueup::symexp", _backward_symexp, setup_context=_keep)
torch.library.register_autograd(
    "trueup::symexp_backward", _backward_symexp_twice, setup_context=_keep
)
