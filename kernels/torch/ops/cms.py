"""Eq. 30 and 31 for one MLP level: forward, differentiable, and the gradients of a chunk."""

from __future__ import annotations

from typing import Any

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
)
from trueup.kernels.torch.ops.shapes import axes, fit

FORMS = ("residual", "plain", "pre_norm")
MULTIPLY = ("f32", "tf32")
_EPS = 1e-6
_ONE = axes("x T d, W1 h d, W2 d h")
_STACK = axes("x S T d, W1 S h d, W2 S d h")
_UPDATE = axes("W1 h d, W2 d h, x C d, delta C d, mask C")


def cms_level(x: Tensor, W1: Tensor, W2: Tensor, *, form: str = "residual") -> Tensor:
    """Apply one level of the continuum memory system: Nested Learning, Eq. 30.

        y = x + W2 silu(W1 x)        (`plain`: without x; `pre_norm`: W1 on x / rms(x))
    Shapes: x (T, d), W1 (h, d), W2 (d, h); or x (S, T, d), W1 (S, h, d), W2 (S, d, h) for S
    sequences with weights of their own. Differentiable in all three, twice as well. Raises
    ValueError for another form.
    """
    one_of("form", form, FORMS)
    fit("cms_level", _ONE if x.ndim == 2 else _STACK, x, W1, W2)
    if x.ndim == 2:
        y: Tensor = _level(x.unsqueeze(0), W1.unsqueeze(0), W2.unsqueeze(0), form)
        return y.squeeze(0)
    return _level(x, W1, W2, form)


def cms_level_update_(
    W1: Tensor,
    W2: Tensor,
    x: Tensor,
    delta: Tensor,
    mask: Tensor,
    eta: float,
    *,
    mean: bool = False,
    multiply: str | None = None,
) -> None:
    """Update one residual level at the end of its chunk, in place: Nested Learning, Eq. 31.

        W1 <- W1 - eta Z^T x,  W2 <- W2 - eta delta^T A,  over the active tokens
    with A = silu(x W1^T) and Z = (delta W2) * silu'(x W1^T). Shapes: W1 (h, d); W2 (d, h); x,
    delta (C, d); mask (C,), bool. `mean` divides by the active tokens, at least 1. Without an
    active token nothing changes. `multiply` "tf32" lets a kernel round the factors of its products
    to tf32 (the sum has one), "f32" does not; None follows torch's setting for its own products,
    `torch.backends.cuda.matmul.fp32_precision` (`torch.set_float32_matmul_precision`), as plain
    torch does in any case. Raises ValueError for another `multiply`.
    """
    if multiply is not None:
        one_of("multiply", multiply, MULTIPLY)
    fit("cms_level_update_", _UPDATE, W1, W2, x, delta, mask)
    in_place("cms_level_update_", W1, W2)
    _update(W1, W2, x, delta, mask, eta, mean, multiply)


def level_gradients(
    x: Tensor, delta: Tensor, W1: Tensor, W2: Tensor, *, form: str = "residual"
) -> tuple[Tensor, Tensor]:
    """Give the gradients of W1 and W2, summed over a chunk's tokens: the f of Eq. 31.

    Shapes: x, delta (S, C, d), delta = dL/dy at the level's output; W1 (S, h, d), W2 (S, d, h). A
    masked token is a row of zeros in both. The residual branch adds nothing to them.
    """
    inputs = _normed(x) if form == "pre_norm" else x
    z = inputs @ W1.mT
    error = (delta @ W2) * _slope(z)
    return error.mT @ inputs, delta.mT @ torch.nn.functional.silu(z)


def _normed(x: Tensor) -> Tensor:
    return x * (x * x).mean(-1, keepdim=True).add(_EPS).rsqrt()


def _slope(z: Tensor) -> Tensor:
    s = torch.sigmoid(z)
    return s * (1 + z * (1 - s))


def _plain(x: Tensor, W1: Tensor, W2: Tensor, form: str) -> Tensor:
    inputs = _normed(x) if form == "pre_norm" else x
    change = torch.nn.functional.silu(inputs @ W1.mT) @ W2.mT
    return change if form == "plain" else x + change


def _fake(x: Tensor, W1: Tensor, W2: Tensor, form: str) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, W1, W2, ctx.form = inputs
    ctx.save_for_backward(x, W1, W2)


def _backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
    x, W1, W2 = ctx.saved_tensors
    dW1, dW2 = level_gradients(x, dy, W1, W2, form=ctx.form)
    inputs = _normed(x) if ctx.form == "pre_norm" else x
    dx = ((dy @ W2) * _slope(inputs @ W1.mT)) @ W1
    if ctx.form == "pre_norm":  # x r with r = 1 / rms(x): dr/dx = -r^3 x / d
        r = (x * x).mean(-1, keepdim=True).add(_EPS).rsqrt()
        dx = r * dx - r**3 * x * (dx * x).mean(-1, keepdim=True)
    return dx if ctx.form == "plain" else dy + dx, dW1, dW2, None


def _fast_level(x: Tensor, W1: Tensor, W2: Tensor, form: str) -> Tensor | Refused:
    if form != "residual" or x.shape[0] != 1:
        return Refused("the kernel is for the residual form and one set of weights")
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    given = (item[0].contiguous() for item in (x, W1, W2))
    refused = large(W1[0]) or launch("nl.cms_level", *given, y[0])
    return y if refused is None else refused


def _plain_update(
    W1: Tensor,
    W2: Tensor,
    x: Tensor,
    delta: Tensor,
    mask: Tensor,
    eta: float,
    mean: bool,
    multiply: str | None,
) -> None:
    active = mask.bool()
    x, delta = (torch.where(active.unsqueeze(-1), rows, 0).unsqueeze(0) for rows in (x, delta))
    dW1, dW2 = level_gradients(x, delta, W1.unsqueeze(0), W2.unsqueeze(0))
    rate = eta / active.sum().clamp(min=1).to(W1.dtype) if mean else eta
    # Selected, not multiplied: without an active token the bits stay.
    for W, gradient in ((W1, dW1[0]), (W2, dW2[0])):
        W.copy_(torch.where(active.any(), W - rate * gradient, W))


def _fast_update(
    W1: Tensor,
    W2: Tensor,
    x: Tensor,
    delta: Tensor,
    mask: Tensor,
    eta: float,
    mean: bool,
    multiply: str | None,
) -> Refused | None:
    counts = torch.zeros(4, dtype=torch.int32, device=W1.device)
    # Read at the call: a setting may change between two of them, and a compiled graph keeps None.
    allowed = multiply or torch.backends.cuda.matmul.fp32_precision
    contract = "nl.cms_level_update"
    if mean:
        contract += "_mean"
    elif allowed == "tf32":
        contract += "_tf32"
    given = (x.contiguous(), delta.contiguous(), mask.to(torch.uint8))
    return launch(contract, W1, W2, *given, eta, counts)


_level = operator(
    "cms_level(Tensor x, Tensor W1, Tensor W2, str form) -> Tensor",
    _plain,
    fast=_fast_level,
    fake=_fake,
)
_update = operator(
    "cms_level_update_(Tensor(a!) W1, Tensor(b!) W2, Tensor x, Tensor delta, Tensor mask, "
    "float eta, bool mean, str? multiply) -> ()",
    _plain_update,
    fast=_fast_update,
    fake=nothing,
)
torch.library.register_autograd("trueup::cms_level", _backward, setup_context=_keep)
