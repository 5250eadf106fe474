"""Eq. 20 and 22 in place: preconditioned momentum, and momentum that forgets by the delta rule."""

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

DELTA_READINGS = (
    "derived",
    "literal_right",
    "literal_left",
    "left_gg",
    "scalar",
    "flat_outer",
    "printed_objective_half",
    "printed_objective_full",
)
_FULL = axes("m d_out d_in, W d_out d_in, g d_out d_in, P d_out d_out")
_RANK1 = axes("m d_out d_in, W d_out d_in, u d_out, x d_in")


def delta_momentum_(
    m: Tensor,
    W: Tensor,
    g: Tensor,
    alpha: float,
    eta: float,
    P: Tensor | None = None,
    *,
    reading: str = "derived",
) -> None:
    """Take one step of Nested Learning, Eq. 22 (corrected), in place.

        m <- m (alpha I - eta g^T g) - eta P g,    W <- W + m
    Shapes: m, W, g (d_out, d_in); P (d_out, d_out), the identity if None. dtypes: floating; m and
    W may differ (a bfloat16 W keeps a float32 m). `reading` is one of DELTA_READINGS. Raises
    ValueError for another reading, or `literal_left` on a matrix that is not square.
    """
    one_of("reading", reading, DELTA_READINGS)
    if reading == "literal_left" and g.shape[0] != g.shape[1]:
        raise ValueError(f"literal_left needs a square gradient, got {tuple(g.shape)}")
    fit("delta_momentum_", _FULL, m, W, g, P)
    in_place("delta_momentum_", m, W)
    _delta_momentum(m, W, g, P, alpha, eta, reading)


def delta_momentum_rank1_(
    m: Tensor, W: Tensor, u: Tensor, x: Tensor, alpha: float, eta: float
) -> None:
    """Take one step of Eq. 22 for the gradient u x^T of one sample and P = I, in place.

        m <- alpha m - eta |u|^2 (m x) x^T - eta u x^T,    W <- W + m
    Shapes: m, W (d_out, d_in); u (d_out,); x (d_in,).
    """
    fit("delta_momentum_rank1_", _RANK1, m, W, u, x)
    in_place("delta_momentum_rank1_", m, W)
    _rank1(m, W, u, x, alpha, eta)


def next_delta_momentum(
    m: Tensor, g: Tensor, P: Tensor | None, alpha: float | Tensor, eta: float | Tensor, reading: str
) -> Tensor:
    """Give the momentum after Eq. 22, out of place; alpha and eta may be tensors.

    Shapes as in `delta_momentum_`; m and g of one dtype. `reading` is not checked.
    """
    if reading in ("derived", "printed_objective_half", "printed_objective_full"):
        sign = 1 if reading == "derived" else -1
        factor = 2 * eta if reading == "printed_objective_full" else eta
        if P is None:
            residual = m @ g.mT
            residual.diagonal().add_(sign)
        else:
            residual = torch.addmm(P, m, g.mT, beta=sign)
        if isinstance(alpha, Tensor) or isinstance(factor, Tensor):
            return alpha * m - factor * (residual @ g)
        return torch.addmm(m, residual, g, beta=alpha, alpha=-factor)
    Pg = g if P is None else P @ g
    if reading == "literal_right":
        delta = (m @ g.mT) @ g
    elif reading == "literal_left":
        delta = g.mT @ (g @ m)
    elif reading == "left_gg":
        delta = eta * (g @ (g.mT @ m))
    elif reading == "scalar":
        delta = eta * (g * g).sum() * m
    else:  # flat_outer
        delta = (g * m).sum() * g
    return alpha * m - delta - eta * Pg


def _plain(
    m: Tensor, W: Tensor, g: Tensor, P: Tensor | None, alpha: float, eta: float, reading: str
) -> None:
    kind = wide(m).dtype
    target = None if P is None else P.to(kind)
    m.copy_(next_delta_momentum(wide(m), g.to(kind), target, alpha, eta, reading))
    W.copy_(wide(W) + m)


def _fast(
    m: Tensor, W: Tensor, g: Tensor, P: Tensor | None, alpha: float, eta: float, reading: str
) -> Refused | None:
    if reading != "derived":
        return Refused(f"there is no kernel for the reading {reading}")
    if P is None:
        return Refused("the kernel takes P; without one two library products are as fast")
    return large(g) or launch("nl.delta_momentum", m, W, g, P, alpha, eta)


def _plain_rank1(m: Tensor, W: Tensor, u: Tensor, x: Tensor, alpha: float, eta: float) -> None:
    kind = wide(m).dtype
    long_m, long_u, long_x = m.to(kind), u.to(kind), x.to(kind)
    step = eta * (long_u.dot(long_u) * (long_m @ long_x) + long_u)
    m.copy_(alpha * long_m - torch.outer(step, long_x))
    W.copy_(wide(W) + m)


def _fast_rank1(
    m: Tensor, W: Tensor, u: Tensor, x: Tensor, alpha: float, eta: float
) -> Refused | None:
    return launch("nl.delta_momentum_rank1", m, W, u, x, alpha, eta)


_delta_momentum = operator(
    "delta_momentum_(Tensor(a!) m, Tensor(b!) W, Tensor g, Tensor? P, float alpha, float eta, "
    "str reading) -> ()",
    _plain,
    fast=_fast,
    fake=nothing,
)
_rank1 = operator(
    "delta_momentum_rank1_(Tensor(a!) m, Tensor(b!) W, Tensor u, Tensor x, float alpha, "
    "float eta) -> ()",
    _plain_rank1,
    fast=_fast_rank1,
    fake=nothing,
)
