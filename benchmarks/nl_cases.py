"""The kernels of Nested Learning: shapes, least bytes and operations, the equations in torch."""

from __future__ import annotations

import torch
from cases import Case
from torch import Tensor

ALPHA, ETA = 0.9, 0.1
Result = tuple[Tensor, ...]


def delta_momentum_rank1(
    m: Tensor, W: Tensor, u: Tensor, x: Tensor, alpha: float, eta: float
) -> Result:
    """Eq. 22 for the gradient u x^T."""
    step = eta * ((u @ u) * (m @ x) + u)
    m = alpha * m - step[:, None] * x
    return m, W + m


def delta_momentum(m: Tensor, W: Tensor, g: Tensor, P: Tensor, alpha: float, eta: float) -> Result:
    """Eq. 22 for a full gradient."""
    residual = torch.addmm(P, m, g.T)
    m = torch.addmm(m, residual, g, beta=alpha, alpha=-eta)
    return m, W + m


def projected_descent(W: Tensor, x: Tensor, u: Tensor, eta: float) -> Result:
    """Eq. 28 for one sample."""
    return (W - (eta * (W @ x + u))[:, None] * x,)


def projected_descent_batch(W: Tensor, X: Tensor, U: Tensor, eta: float) -> Result:
    """Eq. 28 for the sum over a batch, samples in rows."""
    return (torch.addmm(W, W @ X.T + U.T, X, alpha=-eta),)


def _rank1(d_out: int, d_in: int, versus: bool = False) -> Case:
    return Case(
        "nl.delta_momentum_rank1",
        {"d_out": d_out, "d_in": d_in},
        4 * (4 * d_out * d_in + d_out + d_in),
        delta_momentum_rank1,
        {"u": d_out**-0.5, "x": d_in**-0.5},
        {"alpha": ALPHA, "eta": ETA},
        variants=_rows("delta_momentum_rank1") if versus else (),
    )


def _descent(d_out: int, d_in: int, versus: bool = False) -> Case:
    return Case(
        "nl.projected_descent",
        {"d_out": d_out, "d_in": d_in},
        4 * (2 * d_out * d_in + d_out + d_in),
        projected_descent,
        {"u": d_out**-0.5, "x": d_in**-0.5},
        {"eta": ETA},
        variants=_rows("projected_descent") if versus else (),
    )


def _batch(B: int, side: int) -> Case:
    return Case(
        "nl.projected_descent_batch",
        {"B": B, "d_out": side, "d_in": side},
        4 * (2 * side * side + 2 * B * side),
        projected_descent_batch,
        {"U": side**-0.5, "X": side**-0.5 / max(1.0, B**0.5 / 2)},
        {"eta": ETA},
        4 * B * side * side,
        "tf32",
    )


def _full(side: int) -> Case:
    return Case(
        "nl.delta_momentum",
        {"d_out": side, "d_in": side},
        4 * 6 * side * side,
        delta_momentum,
        {"P": side**-0.5, "g": 0.5 * side**-0.5},
        {"alpha": ALPHA, "eta": ETA},
        4 * side**3,
    )


def _rows(entry: str) -> list[dict[str, tuple[str, str]]]:
    """List other launches of a kernel that takes a row a block."""
    tried = [("min(d_out, 528)", "256"), ("min(d_out, 1056)", "256"), ("d_out", "256")]
    tried += [("min(d_out, 528)", "512"), ("min(d_out, 1056)", "512"), ("d_out", "512")]
    return [{entry: pair} for pair in tried]


CASES: list[Case] = [
    _rank1(4096, 4096, versus=True),
    _rank1(16384, 1024),
    _rank1(4095, 4097),
    _descent(4096, 4096, versus=True),
    _descent(16384, 1024),
    _descent(4095, 4097),
    _batch(64, 4096),
    _full(4096),
]
