"""Eq. 28 in place: descent on 1/2 |W x + u|^2, for one sample, a batch, or tokens in turn."""

from __future__ import annotations

import torch
from torch import Tensor

from trueup.kernels.torch.device import contract_path, load_contract
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

READINGS = (
    "derived",
    "literal",
    "normalized",
    "prox",
    "prox_unit",
    "printed_objective_half",
    "printed_objective_full",
)
_LOOSE = 1e-2  # a gradient this far from that of the captured tokens is not theirs
BATCH_READINGS = ("derived", "prox", "printed_objective_half", "printed_objective_full")
_SINGLE = axes("W d_out d_in, x d_in, u d_out")
_BATCH = axes("W d_out d_in, X B d_in, U B d_out")
_CHUNK = axes("W d_out d_in, X C d_in, U C d_out, eta C, alpha C")


def projected_descent_(
    W: Tensor, x: Tensor, u: Tensor, eta: float, *, reading: str = "derived"
) -> None:
    """Take one step of Nested Learning, Eq. 28 (corrected), in place.

        W <- W (I - eta x x^T) - eta u x^T        (reading `derived`)
    Shapes: W (d_out, d_in); x (d_in,); u (d_out,) = dL/dy at y = W x. `reading` is one of
    READINGS; raises ValueError for another.
    """
    one_of("reading", reading, READINGS)
    fit("projected_descent_", _SINGLE, W, x, u)
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
    fit("projected_descent_batch_", _BATCH, W, X, U)
    in_place("projected_descent_batch_", W)
    _batch(W, X, U, eta, reading)


def projected_descent_chunk_(
    W: Tensor,
    X: Tensor,
    U: Tensor,
    eta: float | Tensor,
    alpha: Tensor | None = None,
    *,
    reading: str = "derived",
) -> None:
    """Take one step of Eq. 28 for each token of a chunk in turn, in place: their order matters.

        W_t = alpha_t W_{t-1} - (c_t W_{t-1} x_t + b_t u_t) x_t^T
    Shapes: W (d_out, d_in); X (C, d_in); U (C, d_out), frozen; eta (C,) or a number; alpha (C,),
    retention, 1 if None. `reading` is one of READINGS. Computed in the compact form, which
    re-orders the loop exactly: a triangular solve in the tokens, one pass over W.
    """
    one_of("reading", reading, READINGS)
    each = eta if isinstance(eta, Tensor) and eta.ndim else None
    fit("projected_descent_chunk_", _CHUNK, W, X, U, each, alpha)
    in_place("projected_descent_chunk_", W)
    rates = torch.as_tensor(eta, dtype=wide(W).dtype, device=W.device).expand(X.shape[0])
    _chunk(W, X, U, rates.contiguous(), alpha, reading)


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


def gradient_scale(grad: Tensor, captured: Tensor) -> Tensor:
    """Give the factor between a gradient and the captured one: loss scale, mean, clipping.

    Shapes: both (d_out, d_in), of one dtype; the result is 0-d. Raises RuntimeError where they
    are further apart than a factor, for which the host waits for the device. It is an operator,
    so that a compiled step can hold the question.
    """
    factor: Tensor = _scale(grad, captured)
    return factor


def _plain_scale(grad: Tensor, captured: Tensor) -> Tensor:
    square = (captured * captured).sum()
    scale = torch.where(square > 0, (grad * captured).sum() / square, 1)
    if (grad - scale * captured).norm() > _LOOSE * grad.norm():
        raise RuntimeError(
            "the gradient is not that of the captured tokens, up to a factor: order='tokens' needs "
            "a gradient of these calls alone, without weight decay or other terms"
        )
    return scale


def _plain_single(W: Tensor, x: Tensor, u: Tensor, eta: float, reading: str) -> None:
    matrix = wide(W)
    x, u = x.to(matrix.dtype), u.to(matrix.dtype)
    c, b = coefficients(eta, x.dot(x), reading)
    W.copy_(matrix - torch.outer(c * (matrix @ x) + b * u, x))


def _fast_single(W: Tensor, x: Tensor, u: Tensor, eta: float, reading: str) -> Refused | None:
    names = {"derived": "", "normalized": "_normalized", "prox": "_prox"}
    if reading not in names:
        return Refused(f"there is no kernel for the reading {reading}")
    return launch(f"nl.projected_descent{names[reading]}", W, x, u, eta)


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
    names = {"derived": "", "prox": "_prox"}
    if reading not in names:
        return Refused(f"there is no kernel for the reading {reading}")
    return large(W) or launch(f"nl.projected_descent_batch{names[reading]}", W, X, U, eta)


def _plain_chunk(
    W: Tensor, X: Tensor, U: Tensor, eta: Tensor, alpha: Tensor | None, reading: str
) -> None:
    matrix = wide(W)
    kept = torch.ones_like(eta) if alpha is None else alpha.to(matrix.dtype)
    W.copy_(after_tokens(matrix, X.to(matrix.dtype), U.to(matrix.dtype), eta, kept, reading))


def after_tokens(
    W: Tensor, X: Tensor, U: Tensor, eta: Tensor, alpha: Tensor, reading: str
) -> Tensor:
    """Give W after all tokens in turn; shapes as in `projected_descent_chunk_`, eta (C,).

    With p_ts = prod_{s<j<=t} alpha_j the errors e_t = c_t W_{t-1} x_t + b_t u_t solve
        (I + D L) E = D diag(p_{t-1,0}) X W^T + B U,   L_ts = p_{t-1,s} (x_t . x_s) for s < t
    and W_C = p_C0 W - sum_s p_Cs e_s x_s^T. Zeros in alpha and in c are allowed.
    """
    c, b = (_column(item, X) for item in coefficients(eta, (X * X).sum(-1), reading))
    size = X.shape[0]
    # Row t, column s of `passed`: what of token s (column 0: of W) is left after token t.
    older = torch.ones(size + 1, size + 1, dtype=torch.bool, device=X.device).tril(-1)
    stay = torch.cat([alpha.new_ones(1), alpha]).unsqueeze(-1)
    passed = torch.where(older, stay, 1).cumprod(0).tril()
    lower = c * ((X @ X.mT) * passed[:-1, 1:]).tril(-1)
    lower.diagonal().fill_(1)
    read = passed[:-1, :1] * (X @ W.mT)
    errors = torch.linalg.solve_triangular(lower, c * read + b * U, upper=False, unitriangular=True)
    return passed[-1, 0] * W - (passed[-1, 1:].unsqueeze(-1) * errors).mT @ X


def _fast_chunk(
    W: Tensor, X: Tensor, U: Tensor, eta: Tensor, alpha: Tensor | None, reading: str
) -> Refused | None:
    if reading != "derived":
        return Refused(f"there is no kernel for the reading {reading}")
    kept = torch.ones_like(eta) if alpha is None else alpha
    contract = "nl.projected_descent_chunk"
    limits = load_contract(contract_path(contract)).limits.get("C", {})
    longest = limits.get("max", X.shape[0])  # tokens that the kernel takes at once
    for rows in zip(*(item.split(longest) for item in (X, U, eta, kept)), strict=True):
        refused = launch(contract, W, *rows)
        if refused is not None:
            return refused
    return None


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
_chunk = operator(
    "projected_descent_chunk_(Tensor(a!) W, Tensor X, Tensor U, Tensor eta, Tensor? alpha, "
    "str reading) -> ()",
    _plain_chunk,
    fast=_fast_chunk,
    fake=nothing,
)
_scale = operator(
    "gradient_scale(Tensor grad, Tensor captured) -> Tensor",
    _plain_scale,
    fake=lambda grad, captured: grad.new_empty(()),
)
