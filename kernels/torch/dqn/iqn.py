"""The quantile Huber loss of the branches, and the value at risk of their quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, contiguous, expect, ranked
from trueup.kernels.torch.ops.registry import Refused, launch, one_of, operator

TAUS = (0.05, 0.25, 0.5, 0.75, 0.95)
READINGS = ("divided", "undivided")
_Outputs = tuple[Tensor, Tensor, Tensor]


class IQNLoss(NamedTuple):
    """What `iqn_loss` gives; `total` alone is differentiable."""

    total: Tensor
    """Scalar: the sum over the branches of their losses, weighted mean over the samples."""
    losses: Tensor
    """(B, 4): loss of every branch, unweighted."""


def iqn_loss(
    theta: Tensor,
    target: Tensor,
    tau: Tensor,
    weight: Tensor,
    kappa: float = 1.0,
    *,
    reading: str = "divided",
) -> IQNLoss:
    """Give the quantile Huber loss: IQN, arXiv:1806.06923.

        u_ij = target_j - theta_i;  L = sum_i mean_j |tau_i - 1{u_ij < 0}| H(u_ij) / kappa
    Shapes: theta (B, 4, n_tau) of the taken actions; target (B, 4, n_target), a constant; tau
    (n_tau,); weight (B,). The gradient of `total` is that of each branch's own loss, which its
    head receives whole; the mean over the branches, which is reported, is a quarter of it.
    `reading` is `divided` by kappa, or `undivided` as in QR-DQN, arXiv:1710.10044. Differentiable
    in theta, once. Raises ValueError for shapes that do not fit and for another reading.
    """
    one_of("reading", reading, READINGS)
    ranked("iqn_loss", "theta", theta, "B 4 n_tau")
    ranked("iqn_loss", "target", target, "B 4 n_target")
    B, K, n_tau = theta.shape
    expect(
        "iqn_loss",
        target=(target, (B, K, target.shape[2])),
        tau=(tau, (n_tau,)),
        weight=(weight, (B,)),
    )
    total, losses, _ = _loss(*alike(theta, target, tau, weight), kappa)
    factor = kappa if reading == "undivided" else 1.0
    return IQNLoss(factor * total, factor * losses)


def cvar(theta: Tensor, tau: Sequence[float] = TAUS, level: float = 1.0) -> Tensor:
    """Give the mean of the worst share `level` of a distribution told by its quantiles.

        CVaR_a = (1/a) sum_i max(0, min(e_{i+1}, a) - e_i) theta_i
    with cell edges e at 0, the midpoints of the taus, and 1. Shapes: theta (..., n_tau), not
    sorted; returns (...). `level` 1 is the action value of quantile heads. Raises ValueError for
    a level outside (0, 1].
    """
    if not 0 < level <= 1:
        raise ValueError(f"cvar: got level {level}, expected more than 0 and at most 1")
    if theta.ndim < 1 or theta.shape[-1] != len(tau):
        raise ValueError(f"cvar: got theta {tuple(theta.shape)}, expected (..., {len(tau)})")
    value: Tensor = _cvar(*alike(theta), list(tau), level)
    return value


def _cells(tau: Sequence[float], level: float) -> list[float]:
    """Give each quantile's share of the worst outcomes: cells end halfway between the levels."""
    inner = [(low + high) / 2 for low, high in pairwise(tau)]
    edges = [0.0, *inner, 1.0]
    return [max(0.0, min(high, level) - low) / level for low, high in pairwise(edges)]


def _plain_cvar(theta: Tensor, tau: Sequence[float], level: float) -> Tensor:
    cells = _cells(tau, level)
    return sum((theta[..., i] * cells[i] for i in range(1, len(cells))), theta[..., 0] * cells[0])


def _fast_cvar(theta: Tensor, tau: Sequence[float], level: float) -> Tensor | Refused:
    if tuple(tau) != TAUS:
        return Refused(f"the kernel is for quantiles at {TAUS}")
    value = _fake_cvar(theta, tau, level)
    rows, worst = theta.contiguous().view(-1, len(TAUS)), theta.new_full((1,), level)
    refused = launch("dqn.cvar", rows, worst, value.view(-1))
    return value if refused is None else refused


def _fake_cvar(theta: Tensor, tau: Sequence[float], level: float) -> Tensor:
    return theta.new_empty(theta.shape[:-1])


def _keep_cvar(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.cells = _cells(*inputs[1:])


def _backward_cvar(ctx: Any, d: Tensor) -> tuple[Tensor, None, None]:
    return torch.stack([d * cell for cell in ctx.cells], -1), None, None


def _plain(theta: Tensor, target: Tensor, tau: Tensor, weight: Tensor, kappa: float) -> _Outputs:
    u = target.unsqueeze(-2) - theta.unsqueeze(-1)
    inner = u.clamp(-kappa, kappa)
    level = torch.where(u < 0, 1 - tau.unsqueeze(-1), tau.unsqueeze(-1)) / kappa
    losses = (level * inner.abs() * (u.abs() - inner.abs() / 2)).mean(-1).sum(-1)
    omega = weight / weight.shape[0]
    d_theta = -omega[:, None, None] * (level * inner).mean(-1)
    return (omega.unsqueeze(-1) * losses).sum(), losses, d_theta


def _fast(
    theta: Tensor, target: Tensor, tau: Tensor, weight: Tensor, kappa: float
) -> _Outputs | Refused:
    losses, d_theta = _fake(theta)[1:]
    given = contiguous(theta, target, tau, weight)
    refused = launch("dqn.iqn_loss", *given, losses, d_theta, kappa)
    if refused is not None:
        return refused
    return ((weight / weight.shape[0]).unsqueeze(-1) * losses).sum(), losses, d_theta


def _fake(theta: Tensor, *_: Any) -> _Outputs:
    return theta.new_empty(()), theta.new_empty(theta.shape[:2]), theta.new_empty(theta.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: _Outputs) -> None:
    _, losses, d_theta = output
    ctx.mark_non_differentiable(losses, d_theta)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(d_theta)


def _backward(ctx: Any, d_total: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    (d_theta,) = ctx.saved_tensors
    return None if d_total is None else d_total * d_theta, None, None, None, None


_loss = operator(
    "iqn_loss(Tensor theta, Tensor target, Tensor tau, Tensor weight, float kappa) "
    "-> (Tensor, Tensor, Tensor)",
    _plain,
    fast=_fast,
    fake=_fake,
)
torch.library.register_autograd("trueup::iqn_loss", _backward, setup_context=_keep)
_cvar = operator(
    "cvar(Tensor theta, float[] tau, float level) -> Tensor",
    _plain_cvar,
    fast=_fast_cvar,
    fake=_fake_cvar,
)
torch.library.register_autograd("trueup::cvar", _backward_cvar, setup_context=_keep_cvar)
