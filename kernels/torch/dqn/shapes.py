"""What the agent's operators share: one dtype for all inputs, checks of shapes, branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

BRANCHES = (4, 3, 3, 3)
"""Actions of direction, magnitude, order and urgency."""


def alike(*tensors: Tensor | None) -> list[Any]:
    """Give floating tensors in one dtype, the widest of theirs and float32; None stays None."""
    dtype = torch.float32
    for tensor in tensors:
        if tensor is not None and tensor.is_floating_point():
            dtype = torch.promote_types(dtype, tensor.dtype)
    return [
        tensor if tensor is None or not tensor.is_floating_point() else tensor.to(dtype)
        for tensor in tensors
    ]


def expect(name: str, **given: tuple[Tensor | None, Sequence[int]]) -> None:
    """Raise ValueError where a tensor's shape is not the expected one; None has any shape."""
    for argument, (tensor, shape) in given.items():
        if tensor is not None and tuple(tensor.shape) != tuple(shape):
            raise ValueError(
                f"{name}: got {argument} {tuple(tensor.shape)}, expected {tuple(shape)}"
            )


def ranked(name: str, argument: str, tensor: Tensor, axes: str) -> None:
    """Raise ValueError where a tensor has another number of axes than those named."""
    if tensor.ndim != len(axes.split()):
        wanted = ", ".join(axes.split())
        raise ValueError(f"{name}: got {argument} {tuple(tensor.shape)}, expected ({wanted})")


def contiguous(*tensors: Tensor) -> list[Tensor]:
    """Give the tensors as kernels read them."""
    return [tensor.contiguous() for tensor in tensors]


def flat(*tensors: Tensor) -> list[Tensor]:
    """Give the tensors as kernels of one axis read them."""
    return [tensor.contiguous().view(-1) for tensor in tensors]


def numbered(tensor: Tensor) -> Tensor:
    """Give whole numbers as kernels read them, in int32, without a gradient."""
    return tensor.detach().int()


def entering(name: str, x: Tensor, weight: Tensor, axes: str = "B dim") -> Tensor:
    """Give a layer's input in the dtype of its weight; ValueError where the shape does not fit it.

    The last axis of x is that of the weight (out, dim). Autocast sees the same weights.
    """
    argument = "h" if name.endswith("Head") else "x"
    if x.ndim != len(axes.split()) or x.shape[-1] != weight.shape[-1]:
        wanted = ", ".join([*axes.split()[:-1], str(weight.shape[-1])])
        raise ValueError(f"{name}: got {argument} {tuple(x.shape)}, expected ({wanted})")
    return x.to(weight.dtype)
