"""Eq. 30 and 31 for one MLP level: forward, differentiable, and the gradients of a chunk."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.registry import one_of, operator

FORMS = ("residual", "plain", "pre_norm")
_EPS = 1e-6


def cms_level(x: Tensor, W1: Tensor, W2: Tensor, *, form: str = "residual") -> Tensor:
    """Apply one level of the continuum memory system: Nested Learning, Eq. 30.

        y = x + W2 silu(W1 x)        (`plain`: without x; `pre_norm`: W1 on x / rms(x))
    Shapes: x (T, d), W1 (h, d), W2 (d, h); or x (S, T, d), W1 (S, h, d), W2 (S, d, h) for S
    sequences with weights of their own. Differentiable in all three, twice as well. Raises
    ValueError for another form.
    """
    one_of("form", form, FORMS)
    if x.ndim == 2:
        y: Tensor = _level(x.unsqueeze(0), W1.unsqueeze(0), W2.unsqueeze(0), form)
        return y.squeeze(0)
    return _level(x, W1, W2, form)


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


_level = operator(
    "cms_level(Tensor x, Tensor W1, Tensor W2, str form) -> Tensor", _plain, fake=_fake
)
torch.library.register_autograd("trueup::cms_level", _backward, setup_context=_keep)
