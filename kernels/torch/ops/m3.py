"""M3 in place: the step of every gradient, and the slow momentum of every f-th."""

from __future__ import annotations

from torch import Tensor

from trueup.kernels.torch.ops.orthogonal import EPS, newton_schulz
from trueup.kernels.torch.ops.registry import (
    Refused,
    in_place,
    large,
    launch,
    nothing,
    operator,
    wide,
)
from trueup.kernels.torch.ops.shapes import axes, fit

_AXES = axes(", ".join(f"{name} d_out d_in" for name in ("W", "M1", "V", "S", "O2", "g")))
_SLOW = axes("M2 d_out d_in, S d_out d_in, O2 d_out d_in")


def m3_(
    W: Tensor,
    M1: Tensor,
    V: Tensor,
    S: Tensor,
    O2: Tensor,
    g: Tensor,
    betas: tuple[float, float],
    alpha: float,
    eta: float,
    eps: float,
    *,
    poly: str = "quintic5",
    ns_eps: float = EPS,
) -> None:
    """Take one step of M3 (preprint, Algorithm 1) in place.

        M1 += beta1 g;  V += beta2 g*g;  S += g;  W -= eta (NS(M1) + alpha O2) / (sqrt(V) + eps)
    Shapes: all (d_out, d_in). `poly` is `newton_schulz`'s, or `none` for the identity.
    """
    fit("m3_", _AXES, W, M1, V, S, O2, g)
    in_place("m3_", W, M1, V, S)
    _m3(W, M1, V, S, O2, g, *betas, alpha, eta, eps, poly, ns_eps)


def m3_slow_(
    M2: Tensor,
    S: Tensor,
    O2: Tensor,
    beta3: float,
    *,
    poly: str = "quintic5",
    ns_eps: float = EPS,
) -> None:
    """Move the slow momentum of M3 in place: M2 += beta3 S;  S = 0;  O2 = NS(M2)."""
    fit("m3_slow_", _SLOW, M2, S, O2)
    in_place("m3_slow_", M2, S, O2)
    _slow(M2, S, O2, beta3, poly, ns_eps)


def m3_direction(
    M1: Tensor,
    V: Tensor,
    S: Tensor,
    O2: Tensor,
    g: Tensor,
    betas: tuple[float, float],
    alpha: float,
    eps: float,
    poly: str,
    ns_eps: float,
) -> Tensor:
    """Add a gradient to the sums, in place, and give what the rate multiplies."""
    g = g.to(M1.dtype)
    M1.add_(g, alpha=betas[0])
    V.addcmul_(g, g, value=betas[1])
    S.add_(g)
    return (_orthogonal(M1, poly, ns_eps) + alpha * O2) / (V.sqrt() + eps)


def _orthogonal(M: Tensor, poly: str, eps: float) -> Tensor:
    return M if poly == "none" else newton_schulz(M, poly=poly, eps=eps)


def _plain(
    W: Tensor,
    M1: Tensor,
    V: Tensor,
    S: Tensor,
    O2: Tensor,
    g: Tensor,
    beta1: float,
    beta2: float,
    alpha: float,
    eta: float,
    eps: float,
    poly: str,
    ns_eps: float,
) -> None:
    step = m3_direction(M1, V, S, O2, g, (beta1, beta2), alpha, eps, poly, ns_eps)
    W.copy_(wide(W) - eta * step)


def _fast(
    W: Tensor,
    M1: Tensor,
    V: Tensor,
    S: Tensor,
    O2: Tensor,
    g: Tensor,
    beta1: float,
    beta2: float,
    alpha: float,
    eta: float,
    eps: float,
    poly: str,
    ns_eps: float,
) -> Refused | None:
    if poly != "quintic5":
        return Refused(f"there is no kernel for {poly}")
    return large(W) or launch("nl.m3", W, M1, V, S, O2, g, beta1, beta2, alpha, eta, eps, ns_eps)


def _plain_slow(M2: Tensor, S: Tensor, O2: Tensor, beta3: float, poly: str, ns_eps: float) -> None:
    M2.add_(S, alpha=beta3)
    S.zero_()
    O2.copy_(_orthogonal(M2, poly, ns_eps))


def _fast_slow(
    M2: Tensor, S: Tensor, O2: Tensor, beta3: float, poly: str, ns_eps: float
) -> Refused | None:
    if poly != "quintic5":
        return Refused(f"there is no kernel for {poly}")
    return large(M2) or launch("nl.m3_slow", M2, S, O2, beta3, ns_eps)


_m3 = operator(
    "m3_(Tensor(a!) W, Tensor(b!) M1, Tensor(c!) V, Tensor(d!) S, Tensor O2, Tensor g, "
    "float beta1, float beta2, float alpha, float eta, float eps, str poly, float ns_eps) -> ()",
    _plain,
    fast=_fast,
    fake=nothing,
)
_slow = operator(
    "m3_slow_(Tensor(a!) M2, Tensor(b!) S, Tensor(c!) O2, float beta3, str poly, float ns_eps) "
    "-> ()",
    _plain_slow,
    fast=_fast_slow,
    fake=nothing,
)
