"""Shapes of an operator's tensors by the names of their axes: one message for a wrong call."""

from __future__ import annotations

from torch import Tensor

Axes = tuple[tuple[str, tuple[str, ...]], ...]


def axes(text: str) -> Axes:
    """Read "m d_out d_in, x d_in": each tensor's name, and the names of its axes."""
    tensors = (part.split() for part in text.split(","))
    return tuple((name, tuple(extents)) for name, *extents in tensors)


def fit(operator: str, expected: Axes, *tensors: Tensor | None) -> None:
    """Raise ValueError unless axes of one name have one size; None has any shape.

    A kernel would refuse what broadcasting lets pass: no tensor is expanded.
    """
    sizes: dict[str, int] = {}
    for (_, names), tensor in zip(expected, tensors, strict=True):
        if tensor is None:
            continue
        if tensor.ndim != len(names):
            raise _misfit(operator, expected, tensors)
        for name, size in zip(names, tensor.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise _misfit(operator, expected, tensors)


def _misfit(operator: str, expected: Axes, tensors: tuple[Tensor | None, ...]) -> ValueError:
    pairs = [(*names, item) for names, item in zip(expected, tensors, strict=True)]
    got = ", ".join(f"{name} {tuple(item.shape)}" for name, _, item in pairs if item is not None)
    wanted = ", ".join(f"{name} ({', '.join(names)})" for name, names, _ in pairs)
    return ValueError(f"{operator}: got {got}, expected {wanted}")
