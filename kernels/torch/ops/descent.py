"""Eq. 28 in place: descent on 1/2 |W x + u|^2, for one sample, a batch, or tokens in turn."""

from __future__ import annotations

import torch
from torch import Tensor

from trueup.kernels.torch.ops.registry import (
    Refused,
    in_place,
    launch,
    nothing,
    one_of,
    operator,
    wide,
)

READINGS = (
    "derived",
    "literal",
    "normalized",
    "prox",
    "prox_unit",
    "printed_objective_half",
    "printed_objective_full",
)
BATCH_READINGS = ("derived", "prox", "printed_objective_half", "printed_objective_full")


def projected_descent_(
    W: Tensor, x: Tensor, u: Tensor, eta: float, *, reading: str = "derived"
) -> None:
    """Take one step of Nested Learning, Eq. 28 (corrected), in place.

        W <- W (I - eta x x^T) - eta u x^T        (reading `derived`)
    Shapes: W (d_out, d_in); x (d_in,); u (d_out,) = dL/dy at y = W x. `reading` is one of
    READINGS; raises ValueError for another.
    """
    one_of("reading", reading, READINGS)
    in_place("projected_descent_", W)
    _single(W, x, u, eta, reading)


def projected_descent_batch_(
    W: Tensor, X: Tensor, U: Tensor, eta: float, *, reading: str = "derived"
) -> None:
    """Take one step of Eq. 28 on the sum over a batch, in place.

        W <- W (I - eta X^T X) - eta U^T X        (reading `derived`, samples in rows)
    Shapes: W (d_out, d_in); X (B, d_in); U (B, d_out), used as given. `reading` is one of
    BATCH_READINGS; `prox` solves for the exact minimiser, by Woodbury where B < d_in.
    """
    one_of("reading", reading, BATCH_READINGS)
    in_place("projected_descent_batch_", W)
    _batch(W, X, U, eta, reading)


def projected_descent_tokens_(
    W: Tensor, X: Tensor, U: Tensor, eta: float, *, reading: str = "derived"
) -> None:
    """Take one step of Eq. 28 for each token in turn, in place: the order of rows matters.

    Shapes: W (d_out, d_in); X (C, d_in); U (C, d_out), frozen. `reading` is one of READINGS.
    Computed in the compact form: e_t = c_t (W x_t - sum_{s<t} e_s (x_s . x_t)) + b_t u_t and
    W <- W - E^T X, which re-orders the loop exactly.
    """
    one_of("reading", reading, READINGS)
    in_place("projected_descent_tokens_", W)
    _tokens(W, X, U, eta, reading)


def coefficients(
    eta: float | Tensor, squared: Tensor, reading: str
) -> tuple[float | Tensor, float | Tensor]:
    """Give (c, b) of W <- W - (c W x + b u) x^T; `squared` is |x|^2, of any shape."""
    if reading == "derived":
        return eta, eta
    if reading == "literal":
        return 1.0, eta
    if reading == "normalized":
        return torch.where(squared > 0, 1 / torch.where(squared > 0, squared, 1), 0), eta
    if reading == "prox":
        rate = eta / (1 + eta * squared)
        return rate, rate
    if reading == "prox_unit":
        return eta / (1 + eta), eta / (1 + eta)
    if reading == "printed_objective_half":
        return eta, -eta
    return 2 * eta, -2 * eta  # printed_objective_full


def _plain_single(W: Tensor, x: Tensor, u: Tensor, eta: float, reading: str) -> None:
    matrix = wide(W)
    x, u = x.to(matrix.dtype), u.to(matrix.dtype)
    c, b = coefficients(eta, x.dot(x), reading)
    W.copy_(matrix - torch.outer(c * (matrix @ x) + b * u, x))


def _fast_single(W: Tensor, x: Tensor, u: Tensor, eta: float, reading: str) -> Refused | None:
    if reading != "derived":
        return Refused(f"there is no kernel for the reading {reading}")
    return launch("nl.projected_descent", W, x, u, eta)


def _plain_batch(W: Tensor, X: Tensor, U: Tensor, eta: float, reading: str) -> None:
    matrix = wide(W)
    X, U = X.to(matrix.dtype), U.to(matrix.dtype)
    if reading == "prox":
        W.copy_(prox(matrix, X, U, eta))
        return
    c, b = coefficients(eta, X.new_zeros(()), reading)
    W.copy_(matrix - (c * (X @ matrix.mT) + b * U).mT @ X)


def prox(W: Tensor, X: Tensor, U: Tensor, eta: float) -> Tensor:
    """Minimise 1/2 |X W'^T + U|^2 + |W' - W|^2 / (2 eta) exactly; samples in rows."""
    residual = X @ W.mT + U
    if X.shape[0] < X.shape[1]:
        gram = eta * (X @ X.mT)
        gram.diagonal().add_(1)
        return W - eta * torch.linalg.solve(gram, residual).mT @ X
    gram = eta * (X.mT @ X)
    gram.diagonal().add_(1)
    return W - eta * torch.linalg.solve(gram, X.mT @ residual).mT


def _fast_batch(W: Tensor, X: Tensor, U: Tensor, eta: float, reading: str) -> Refused | None:
    if reading != "derived":
        return Refused(f"there is no kernel for the reading {reading}")
    return launch("nl.projected_descent_batch", W, X, U, eta)


def _plain_tokens(W: Tensor, X: Tensor, U: Tensor, eta: float, reading: str) -> None:
    matrix = wide(W)
    X, U = X.to(matrix.dtype), U.to(matrix.dtype)
    W.copy_(matrix - token_errors(matrix, X, U, eta, reading).mT @ X)


def token_errors(W: Tensor, X: Tensor, U: Tensor, eta: float | Tensor, reading: str) -> Tensor:
    """Give the rows e_t with W' = W - E^T X after all tokens in turn, of shape (C, d_out).

    E solves (I + D L) E = D X W^T + B U with D = diag(c_t), B = diag(b_t) and L the strictly
    lower triangle of X X^T; unlike the form with D^{-1} it allows c_t = 0.
    """
    c, b = coefficients(eta, (X * X).sum(-1), reading)
    c, b = (_column(item, X) for item in (c, b))
    lower = c * (X @ X.mT).tril(-1)
    lower.diagonal().fill_(1)
    return torch.linalg.solve_triangular(
        lower, c * (X @ W.mT) + b * U, upper=False, unitriangular=True
    )


def _column(value: float | Tensor, like: Tensor) -> Tensor:
    column = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    return column.expand(like.shape[0]).unsqueeze(-1)


_SCHEMA = "(Tensor(a!) W, Tensor {x}, Tensor {u}, float eta, str reading) -> ()"
_single = operator(
    "projected_descent_" + _SCHEMA.format(x="x", u="u"),
    _plain_single,
    fast=_fast_single,
    fake=nothing,
)
_batch = operator(
    "projected_descent_batch_" + _SCHEMA.format(x="X", u="U"),
    _plain_batch,
    fast=_fast_batch,
    fake=nothing,
)
_tokens = operator(
    "projected_descent_tokens_" + _SCHEMA.format(x="X", u="U"), _plain_tokens, fake=nothing
)
