"""Liquid time constants: the fused step, forward and backward, and how inputs modulate tau."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.dqn.shapes import alike, flat
from trueup.kernels.torch.ops.registry import Refused, launch, operator

_Four = tuple[Tensor, Tensor, Tensor, Tensor]


def liquid_step(x: Tensor, f: Tensor, A: Tensor, tau: Tensor, dt: float) -> Tensor:
    """Step dx/dt = -(1/tau + f) x + f A, half implicitly: LTC, arXiv:2006.04439, fused solver.

        x' = (x + dt f A) / (1 + dt (1/tau + f))
    Shapes: x, f, A, tau of one shape, or what broadcasts to it. Stable for f >= 0 and any dt > 0.
    Differentiable in the four tensors, once. Raises ValueError for a negative dt.
    """
    if not dt >= 0:
        raise ValueError(f"liquid_step: got dt {dt}, expected 0 or more")
    moved: Tensor = _step(*torch.broadcast_tensors(*alike(x, f, A, tau)), dt)
    return moved


def liquid_mod(f: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """Tell how far inputs shorten a time constant: mod = 1 / (1 + tau f), tau_sys = tau mod.

    Shapes: f, tau of one shape, or what broadcasts to it. Returns (mod, tau_sys). mod is to
    multiply tau; multiplied to an averaging rate it acts the other way. Differentiable.
    """
    mod, tau_sys = _mod(*torch.broadcast_tensors(*alike(f, tau)))
    return mod, tau_sys


def _plain(x: Tensor, f: Tensor, A: Tensor, tau: Tensor, dt: float) -> Tensor:
    return (x + dt * f * A) / (1 + dt * (1 / tau + f))


def _plain_backward(
    d_next: Tensor, x: Tensor, f: Tensor, A: Tensor, tau: Tensor, dt: float
) -> _Four:
    den = 1 + dt * (1 / tau + f)
    moved, scaled = (x + dt * f * A) / den, d_next / den
    df, dtau = scaled * (dt * (A - moved)), scaled * moved * dt / (tau * tau)
    return scaled, df, scaled * (dt * f), dtau


def _fast(x: Tensor, f: Tensor, A: Tensor, tau: Tensor, dt: float) -> Tensor | Refused:
    rows = flat(x, f, A, tau)
    out = torch.empty_like(rows[0])
    refused = launch("dqn.liquid_step", *rows, dt, out)
    return out.view(x.shape) if refused is None else refused


def _fast_backward(
    d_next: Tensor, x: Tensor, f: Tensor, A: Tensor, tau: Tensor, dt: float
) -> _Four | Refused:
    rows = flat(d_next, x, f, A, tau)
    dx, df, dA, dtau = (torch.empty_like(rows[0]) for _ in range(4))
    refused = launch("dqn.liquid_step_backward", *rows, dt, dx, df, dA, dtau)
    if refused is not None:
        return refused
    return dx.view(x.shape), df.view(x.shape), dA.view(x.shape), dtau.view(x.shape)


def _fake(x: Tensor, *_: Any) -> Tensor:
    return x.new_empty(x.shape)


def _fake_backward(d_next: Tensor, x: Tensor, *_: Any) -> _Four:
    return x.new_empty(x.shape), x.new_empty(x.shape), x.new_empty(x.shape), x.new_empty(x.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.dt = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, d_next: Tensor) -> tuple[Tensor | None, ...]:
    return *_step_backward(d_next, *ctx.saved_tensors, ctx.dt), None


def _plain_mod(f: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    mod = 1 / (1 + tau * f)
    return mod, tau * mod


def _fast_mod(f: Tensor, tau: Tensor) -> tuple[Tensor, Tensor] | Refused:
    drive, constant = flat(f, tau)
    mod, tau_sys, rate = (torch.empty_like(drive) for _ in range(3))
    refused = launch("dqn.liquid_mod", drive, constant, drive, mod, tau_sys, rate)
    return (mod.view(f.shape), tau_sys.view(f.shape)) if refused is None else refused


def _fake_mod(f: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    return f.new_empty(f.shape), f.new_empty(f.shape)


def _keep_mod(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs)


def _backward_mod(ctx: Any, d_mod: Tensor, d_tau_sys: Tensor) -> tuple[Tensor, Tensor]:
    f, tau = ctx.saved_tensors
    square = (1 / (1 + tau * f)).square()
    return -(d_mod + tau * d_tau_sys) * tau * square, (d_tau_sys - d_mod * f) * square


_step = operator(
    "liquid_step(Tensor x, Tensor f, Tensor A, Tensor tau, float dt) -> Tensor",
    _plain,
    fast=_fast,
    fake=_fake,
)
_step_backward = operator(
    "liquid_step_backward(Tensor d_next, Tensor x, Tensor f, Tensor A, Tensor tau, float dt) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    _plain_backward,
    fast=_fast_backward,
    fake=_fake_backward,
)
_mod = operator(
    "liquid_mod(Tensor f, Tensor tau) -> (Tensor, Tensor)",
    _plain_mod,
    fast=_fast_mod,
    fake=_fake_mod,
)
torch.library.register_autograd("trueup::liquid_step", _backward, setup_context=_keep)
torch.library.register_autograd("trueup::liquid_mod", _backward_mod, setup_context=_keep_mod)
