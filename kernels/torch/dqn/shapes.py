"""What the agent's operators share: one dtype for all inputs, checks of shapes, branches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

BRANCHES = (4, 3, 3, 3)
"""Actions of direction, magnitude, order and urgency."""


def alike(*tensors: Tensor | None) -> list[Any]:
    """Give tensors in one dtype, the widest of theirs and float32; None stays None.

    Raises ValueError for whole numbers.
    """
    dtype = torch.float32
    for tensor in tensors:
        if tensor is not None:
            dtype = torch.promote_types(dtype, floating(tensor).dtype)
    return [None if tensor is None else tensor.to(dtype) for tensor in tensors]


def floating(tensor: Tensor) -> Tensor:
    """Give the tensor; ValueError where it holds whole numbers or truth values."""
    if not tensor.is_floating_point():
        raise ValueError(
            f"got a tensor {tuple(tensor.shape)} of {tensor.dtype}, expected a floating dtype"
        )
    return tensor


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


def sized(name: str, **sizes: int) -> None:
    """Raise ValueError where a module's size is below 1."""
    for argument, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}: got {argument} {size}, expected 1 or more")


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
    return floating(x).to(weight.dtype)


def spread(name: str, argument: str, tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Give the tensor expanded to a shape; ValueError where it does not expand to it."""
    try:
        return tensor.expand(*shape)
    except RuntimeError:
        raise ValueError(
            f"{name}: got {argument} {tuple(tensor.shape)}, expected {tuple(shape)} or what "
            "expands to it"
        ) from None


class Constant(nn.Module, ABC):
    """A module with buffers that follow from its arguments, and are in no state dict.

    They are made anew whenever the module is moved: neither a cast to 16 bits nor empty memory
    (`to_empty` after the meta device) leaves them other than they are.
    """

    @abstractmethod
    def constants(self) -> dict[str, Tensor]:
        """Give the buffers by name, on the CPU."""

    def keep_constants(self) -> None:
        """Register the buffers; to be called once the module has what they follow from."""
        for name, value in self.constants().items():
            self.register_buffer(name, value, persistent=False)

    def _apply(self, *args: Any, **options: Any) -> Constant:
        super()._apply(*args, **options)
        for name, value in self.constants().items():
            setattr(self, name, value.to(getattr(self, name).device))
        return self
