"""What the step from linear trunk layers to gated residual networks does to the tensor list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueup.reference.symbols import F64

TRUNK = ("w_s1", "b_s1", "w_s2", "b_s2")
"""The four tensors of the two linear layers that are replaced, at the head of the list."""

BEFORE = 86
AFTER = 95


@dataclass(frozen=True)
class Tensor:
    """One tensor of the parameter list: its name and shape."""

    name: str
    shape: tuple[int, ...]

    @property
    def numel(self) -> int:
        """The number of its elements."""
        return int(np.prod(self.shape, dtype=np.int64))


def grn_tensors(prefix: str, D_in: int, H: int, D: int) -> list[Tensor]:
    """List a block's tensors: seven with a projected residual (D_in differs from D), else six."""
    shapes = {
        "w_a": (H, D_in),
        "b_a": (H,),
        "w_b": (2 * D, H),
        "b_b": (2 * D,),
        "w_res": (D, D_in),
        "gamma": (D,),
        "beta": (D,),
    }
    if D_in == D:
        del shapes["w_res"]
    return [Tensor(f"{prefix}.{name}", shape) for name, shape in shapes.items()]


def with_grn_trunk(tensors: Sequence[Tensor], S: int, SH1: int, SH2: int) -> list[Tensor]:
    """Replace the four trunk tensors by those of two blocks; the others keep order and shape.

    Raises ValueError where the list does not begin with the trunk, or where the widths do not give
    the programme's 13 new tensors (SH1 = SH2, and SH1 not S).
    """
    head = tuple(tensor.name for tensor in tensors[: len(TRUNK)])
    if head != TRUNK:
        raise ValueError(f"the list begins with {head}, expected the trunk {TRUNK}")
    if SH1 == S or SH1 != SH2:
        raise ValueError(f"widths {S}, {SH1}, {SH2}: 13 tensors need SH1 = SH2, SH1 other than S")
    blocks = grn_tensors("grn1", S, SH1, SH1) + grn_tensors("grn2", SH1, SH2, SH2)
    return [*blocks, *tensors[len(TRUNK) :]]


def initial(tensor: Tensor, rng: np.random.Generator) -> F64:
    """Give a tensor's first value: Xavier for matrices, 1 for gamma, 0 for beta and biases."""
    if len(tensor.shape) == 2:
        limit = np.sqrt(6.0 / sum(tensor.shape))  # uniform: variance 2 / (fan_in + fan_out)
        return rng.uniform(-limit, limit, tensor.shape)
    return np.ones(tensor.shape) if tensor.name.endswith("gamma") else np.zeros(tensor.shape)
