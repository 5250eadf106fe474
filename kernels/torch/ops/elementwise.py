"""Eq. 20 in place, and Adam as an associative memory (preprint): one pass over the matrices."""

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

PRECONDITIONERS = ("left", "hadamard")
_LEFT = axes("m d_out d_in, W d_out d_in, g d_out d_in, P d_out d_out")
_HADAMARD = axes("m d_out d_in, W d_out d_in, g d_out d_in, P d_out d_in")
_SUMS = axes("sum_g d_out d_in, sum_gg d_out d_in, g d_out d_in")


def preconditioned_momentum_(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    P: Tensor,
    alpha: float,
    eta: float,
    *,
    reading: str = "left",
) -> None:
    """Take one step of Nested Learning, Eq. 20, in place.

        m <- alpha m - eta P g,    W <- W + m
    Shapes: m, W, g (d_out, d_in); P (d_out, d_out) from the left, or (d_out, d_in) element by
    element where `reading` is `hadamard`. m may be float32 beside bfloat16 W, g and P.
    """
    one_of("reading", reading, PRECONDITIONERS)
    fit("preconditioned_momentum_", _LEFT if reading == "left" else _HADAMARD, m, W, g, P)
    in_place("preconditioned_momentum_", m, W)
    _momentum(m, W, g, P, alpha, eta, reading)


def adam_memory_(sum_g: Tensor, sum_gg: Tensor, g: Tensor, lam: float = 0.0) -> Tensor:
    """Take in a gradient, in place, and give the least-squares memory of all of them.

        M = arg min_m sum_i (m g_i - P)^2 + lam m^2 = P sum g / (lam + sum g^2),  P = sqrt(sum g^2)
    element by element (preprint, Eq. 101-105); it is AdaGrad with summed momentum, not library
    Adam. Shapes: all (d_out, d_in). Where lam + sum g^2 = 0 the memory is 0.
    """
    fit("adam_memory_", _SUMS, sum_g, sum_gg, g)
    in_place("adam_memory_", sum_g, sum_gg)
    memory: Tensor = _adam(sum_g, sum_gg, g, lam)
    return memory


def _plain(
    m: Tensor, W: Tensor, g: Tensor, P: Tensor, alpha: float, eta: float, reading: str
) -> None:
    kind = wide(m).dtype
    g, P = g.to(kind), P.to(kind)
    if reading == "left":
        m.copy_(torch.addmm(wide(m), P, g, beta=alpha, alpha=-eta))
    else:
        m.copy_(alpha * wide(m) - eta * (P * g))
    W.copy_(wide(W) + m)


def _fast(
    m: Tensor, W: Tensor, g: Tensor, P: Tensor, alpha: float, eta: float, reading: str
) -> Refused | None:
    if reading == "left" and (refused := large(g)) is not None:
        return refused
    contract = "nl.preconditioned_momentum" + ("_hadamard" if reading == "hadamard" else "")
    if W.dtype is torch.bfloat16:
        contract += "_bf16"
    return launch(contract, m, W, g, P, alpha, eta)


def _plain_adam(sum_g: Tensor, sum_gg: Tensor, g: Tensor, lam: float) -> Tensor:
    sum_g.add_(g)
    sum_gg.addcmul_(g, g)
    below = lam + sum_gg
    memory = sum_gg.sqrt() * sum_g / torch.where(below == 0, 1, below)
    return torch.where(below == 0, 0, memory)


def _fast_adam(sum_g: Tensor, sum_gg: Tensor, g: Tensor, lam: float) -> Tensor | Refused:
    memory = torch.empty_like(sum_g)
    refused = launch("nl.adam_memory", sum_g, sum_gg, g, lam, memory)
    return memory if refused is None else refused


def _fake_adam(sum_g: Tensor, sum_gg: Tensor, g: Tensor, lam: float) -> Tensor:
    return torch.empty_like(sum_g)


_momentum = operator(
    "preconditioned_momentum_(Tensor(a!) m, Tensor(b!) W, Tensor g, Tensor P, float alpha, "
    "float eta, str reading) -> ()",
    _plain,
    fast=_fast,
    fake=nothing,
)
_adam = operator(
    "adam_memory_(Tensor(a!) sum_g, Tensor(b!) sum_gg, Tensor g, float lam) -> Tensor",
    _plain_adam,
    fast=_fast_adam,
    fake=_fake_adam,
)
