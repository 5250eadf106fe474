"""Eq. 24 with Newton-Schulz, and the library's Muon, in place; in float32 or narrower."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trueup.kernels.torch.ops.orthogonal import EPS, EPS_RULES, newton_schulz
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

SHAPE_FACTORS = ("one", "original", "match_rms_adamw")
_AXES = axes("m d_out d_in, W d_out d_in, g d_out d_in")


def muon_(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    alpha: float,
    eta: float,
    *,
    poly: str = "quintic5",
    eps: float = EPS,
    eps_rule: str = "clamp",
    narrow: bool = False,
) -> None:
    """Take one step of Nested Learning, Eq. 24, in place, the rate outside.

        m <- alpha m - g,    W <- W + eta NS(m)
    Shapes: m, W, g (d_out, d_in). The options are `newton_schulz`'s; `narrow` iterates in
    bfloat16, as the library's Muon does.
    """
    one_of("eps_rule", eps_rule, EPS_RULES)
    fit("muon_", _AXES, m, W, g)
    in_place("muon_", m, W)
    _muon(m, W, g, alpha, eta, poly, eps, eps_rule, narrow)


def muon_library_(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    mu: float,
    lr: float,
    weight_decay: float,
    *,
    nesterov: bool = True,
    shape_factor: str = "original",
    poly: str = "quintic5",
    eps: float = EPS,
    eps_rule: str = "clamp",
    narrow: bool = True,
) -> None:
    """Take one step of `torch.optim.Muon`'s rule, in place.

        m <- mu m + (1 - mu) g;   z = (1 - mu) g + mu m if nesterov, else m
        W <- (1 - lr wd) W - lr rho NS(z)
    rho: `one`; `original`, sqrt(max(1, d_out / d_in)); `match_rms_adamw`, 0.2 sqrt(max(d_out,
    d_in)). Shapes: m, W, g (d_out, d_in). The options are `newton_schulz`'s.
    """
    one_of("eps_rule", eps_rule, EPS_RULES)
    one_of("shape_factor", shape_factor, SHAPE_FACTORS)
    fit("muon_library_", _AXES, m, W, g)
    in_place("muon_library_", m, W)
    rate = lr * rho(shape_factor, W)
    _library(m, W, g, mu, rate, lr * weight_decay, nesterov, poly, eps, eps_rule, narrow)


def rho(shape_factor: str, W: Tensor) -> float:
    """Give the factor that makes rates transfer between shapes."""
    d_out, d_in = int(W.shape[0]), int(W.shape[1])
    if shape_factor == "original":
        return math.sqrt(max(1.0, d_out / max(d_in, 1)))
    return 0.2 * math.sqrt(max(d_out, d_in)) if shape_factor == "match_rms_adamw" else 1.0


def orthogonal(z: Tensor, poly: str, eps: float, eps_rule: str, narrow: bool) -> Tensor:
    """Give NS(z), iterated in bfloat16 or in z's own precision."""
    kind = torch.bfloat16 if narrow else None
    return newton_schulz(z, poly=poly, eps=eps, eps_rule=eps_rule, dtype=kind)


def _plain_muon(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    alpha: float,
    eta: float,
    poly: str,
    eps: float,
    eps_rule: str,
    narrow: bool,
) -> None:
    m.mul_(alpha).sub_(g)
    step = orthogonal(m, poly, eps, eps_rule, narrow)
    W.copy_(wide(W) + eta * step.to(wide(W).dtype))


def _plain_library(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    mu: float,
    rate: float,
    decay: float,
    nesterov: bool,
    poly: str,
    eps: float,
    eps_rule: str,
    narrow: bool,
) -> None:
    g = g.to(m.dtype)
    m.lerp_(g, 1 - mu)
    z = g.lerp(m, mu) if nesterov else m
    step = orthogonal(z, poly, eps, eps_rule, narrow)
    W.copy_(wide(W) * (1 - decay) - rate * step.to(wide(W).dtype))


def _fast_muon(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    alpha: float,
    eta: float,
    poly: str,
    eps: float,
    eps_rule: str,
    narrow: bool,
) -> Refused | None:
    if narrow:
        return Refused("in bfloat16 the kernel is that of newton_schulz, between plain operations")
    if (poly, eps_rule) != ("quintic5", "clamp"):
        return Refused("the kernel is for quintic5 with clamp")
    return large(W) or launch("nl.muon", m, W, g, alpha, eta, eps)


def _fast_library(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    mu: float,
    rate: float,
    decay: float,
    nesterov: bool,
    poly: str,
    eps: float,
    eps_rule: str,
    narrow: bool,
) -> Refused | None:
    if (poly, eps_rule, nesterov) != ("quintic5", "clamp", True):
        return Refused("the kernels are for quintic5 with clamp and Nesterov")
    # The kernels multiply their lr by the shape's factor, and their weight decay by their lr.
    lr = rate / rho("original", W)
    given = (m, W, g, mu, lr, decay / lr if lr else 0.0, eps)
    contract = "nl.muon_library_bf16" if narrow else "nl.muon_library"
    return large(W) or launch(contract, *given)


_NS = "str poly, float eps, str eps_rule, bool narrow) -> ()"
_muon = operator(
    "muon_(Tensor(a!) m, Tensor(b!) W, Tensor g, float alpha, float eta, " + _NS,
    _plain_muon,
    fast=_fast_muon,
    fake=nothing,
)
_library = operator(
    "muon_library_(Tensor(a!) m, Tensor(b!) W, Tensor g, float mu, float rate, float decay, "
    "bool nesterov, " + _NS,
    _plain_library,
    fast=_fast_library,
    fake=nothing,
)
