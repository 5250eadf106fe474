"""Eq. 23: a momentum that is a network over the rows of the gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from trueup.kernels.torch.ops.registry import (
    Refused,
    in_place,
    large,
    launch,
    nothing,
    one_of,
    operator,
    wide,
)
from trueup.kernels.torch.ops.shapes import axes, fit

INNERS = ("dot_self", "l2_neg", "dot_ones")
_AXES = axes("A1 d_in h, A2 h d_in, W d_out d_in, g d_out d_in")


def deep_momentum_(
    A1: Tensor,
    A2: Tensor,
    W: Tensor,
    g: Tensor,
    alpha: float,
    eta: float,
    *,
    inner: str = "dot_self",
    scale: float = 1.0,
) -> None:
    """Take one step of Nested Learning, Eq. 23, in place: the network learns, then is read.

        F(g) = tanh(g A2^T) A1^T;   (A1, A2) <- alpha (A1, A2) - eta grad <inner loss>(g)
        W <- W + scale F(g), with the new A1 and A2
    Shapes: A1 (d_in, h); A2 (h, d_in); W, g (d_out, d_in). `inner`: `dot_self` <F(g), g>,
    `l2_neg` 1/2 |F(g) + g|^2, `dot_ones` <F(g), 1> (the print's example).
    """
    one_of("inner", inner, INNERS)
    fit("deep_momentum_", _AXES, A1, A2, W, g)
    in_place("deep_momentum_", A1, A2, W)
    _deep(A1, A2, W, g, alpha, eta, inner, scale)


def next_network(
    A1: Tensor, A2: Tensor, g: Tensor, alpha: float | Tensor, eta: float | Tensor, inner: str
) -> tuple[Tensor, Tensor]:
    """Give A1 and A2 after the inner step; alpha and eta may be tensors."""
    hidden = torch.tanh(g @ A2.mT)  # (d_out, h)
    if inner == "dot_self":
        cotangent = g
    elif inner == "l2_neg":
        cotangent = hidden @ A1.mT + g
    else:
        cotangent = torch.ones_like(g)
    dA1 = cotangent.mT @ hidden
    dA2 = ((cotangent @ A1) * (1 - hidden * hidden)).mT @ g
    return alpha * A1 - eta * dA1, alpha * A2 - eta * dA2


def read_network(A1: Tensor, A2: Tensor, g: Tensor) -> Tensor:
    """Give F(g), of the gradient's shape."""
    return torch.tanh(g @ A2.mT) @ A1.mT


def _plain(
    A1: Tensor,
    A2: Tensor,
    W: Tensor,
    g: Tensor,
    alpha: float,
    eta: float,
    inner: str,
    scale: float,
) -> None:
    g = g.to(A1.dtype)
    new_A1, new_A2 = next_network(A1, A2, g, alpha, eta, inner)
    A1.copy_(new_A1)
    A2.copy_(new_A2)
    W.copy_(wide(W) + scale * read_network(A1, A2, g))


def _fast(
    A1: Tensor,
    A2: Tensor,
    W: Tensor,
    g: Tensor,
    alpha: float,
    eta: float,
    inner: str,
    scale: float,
) -> Refused | None:
    if inner != "dot_self" or scale != 1.0:
        return Refused("the kernel is for dot_self, read with scale 1")
    return large(W) or launch("nl.deep_momentum", A1, A2, W, g, alpha, eta)


_deep = operator(
    "deep_momentum_(Tensor(a!) A1, Tensor(b!) A2, Tensor(c!) W, Tensor g, float alpha, float eta, "
    "str inner, float scale) -> ()",
    _plain,
    fast=_fast,
    fake=nothing,
)
