"""One online write of a linear memory, differentiable: an inner gradient step on a chunk."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.registry import operator, wide
from trueup.kernels.torch.ops.shapes import axes, fit

_AXES = axes("M N d_v d_k, k N C d_k, v N C d_v, eta N C")


def online_write(M: Tensor, k: Tensor, v: Tensor, eta: Tensor, *, pull: float = 1.0) -> Tensor:
    """Give the memory after one inner step on a chunk, all derivatives included.

        M' = M - eta sum_t (pull M k_t - v_t) k_t^T
    `pull` 1: a gradient step on 1/2 |M k - v|^2, which is Eq. 28 (`derived`, batch) with u = -v;
    2: Eq. 28 with u = M k - v, a function of M; 0: the dot-product objective of Eq. 15 and 16.
    Shapes: M (N, d_v, d_k); k (N, C, d_k); v (N, C, d_v); eta a 0-d tensor, or (N, C) with a rate
    for each token. Differentiable in M, k, v and eta, twice as well.
    """
    if eta.ndim not in (0, 2):
        raise ValueError(f"online_write: got eta {tuple(eta.shape)}, expected () or (N, C)")
    fit("online_write", _AXES, M, k, v, eta if eta.ndim else None)
    return _write(M, k, v, eta, pull)


def _rates(eta: Tensor) -> Tensor:
    return eta if eta.ndim == 0 else eta.unsqueeze(-1)


def _plain(M: Tensor, k: Tensor, v: Tensor, eta: Tensor, pull: float) -> Tensor:
    kind = wide(M).dtype
    memory, k, v = M.to(kind), k.to(kind), v.to(kind)
    error = pull * (k @ memory.mT) - v
    return (memory - (_rates(eta).to(kind) * error).mT @ k).to(M.dtype)


def _fake(M: Tensor, k: Tensor, v: Tensor, eta: Tensor, pull: float) -> Tensor:
    return torch.empty_like(M, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    M, k, v, eta, ctx.pull = inputs
    ctx.save_for_backward(M, k, v, eta)


def _backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
    M, k, v, eta = ctx.saved_tensors
    kind = wide(M).dtype
    types = [tensor.dtype for tensor in (M, k, v, eta)]
    M, k, v, G = (tensor.to(kind) for tensor in (M, k, v, G))
    pull, rates = ctx.pull, _rates(eta).to(kind)
    along = k @ G.mT  # (N, C, d_v)
    error = pull * (k @ M.mT) - v
    dM = G - pull * ((rates * along).mT @ k)
    dk = -rates * (pull * (along @ M) + error @ G)
    deta = -(along * error).sum(-1)
    grads = dM, dk, rates * along, deta.sum() if eta.ndim == 0 else deta
    return *(grad.to(dtype) for grad, dtype in zip(grads, types, strict=True)), None


_write = operator(
    "online_write(Tensor M, Tensor k, Tensor v, Tensor eta, float pull) -> Tensor",
    _plain,
    fake=_fake,
)
torch.library.register_autograd("trueup::online_write", _backward, setup_context=_keep)
