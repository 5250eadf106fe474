"""What a benchmark runs: a shipped kernel at a shape, and the same equation in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from trueup.kernels.torch.device import Contract, Kernel, contract_path, load_contract
from trueup.kernels.torch.device.driver import load

Given = list[Any]  # the contract's arguments in its order, without axes and workspace
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i32": torch.int32, "u8": torch.uint8}


@dataclass(frozen=True)
class Case:
    """One kernel at one shape.

    `scales` gives the standard deviation of an input (1 where not named); `fixed` the value of
    a scalar or a function that makes an argument. `equation` takes the arguments as the kernel
    does and returns what the kernel writes, and so does `op`; `library` returns a call to a
    library's own operator. `operations` are those of the matrix products, in the format `rate`.
    """

    contract: str
    sizes: Mapping[str, int]
    least_bytes: int
    equation: Callable[..., tuple[torch.Tensor, ...]] | None = None
    scales: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    operations: int = 0
    rate: str = "f32"
    library: Callable[..., Callable[[], object]] | None = None
    variants: Sequence[Mapping[str, tuple[str, str]]] = ()  # entry -> (grid, block)
    note: str = ""
    op: Callable[..., tuple[torch.Tensor, ...]] | None = None  # runs in the kernel's place

    @property
    def label(self) -> str:
        """The shape in words."""
        label = " ".join(f"{axis}={size}" for axis, size in self.sizes.items()) or "scalar"
        return f"{label}; {self.note}" if self.note else label

    def kernel(self, variant: Mapping[str, tuple[str, str]] | None = None) -> Kernel:
        """Give the shipped kernel, or the same with other launches."""
        contract = load_contract(contract_path(self.contract))
        for entry, (grid, block) in (variant or {}).items():
            contract = _relaunched(contract, entry, grid, block)
        return Kernel(contract, load)

    def given(self, kernel: Kernel) -> Given:
        """Draw one set of arguments; outputs are poisoned."""
        out: Given = []
        for arg in kernel.contract.given():
            fixed = self.fixed.get(arg.name)
            if callable(fixed):
                out.append(fixed())
            elif arg.role == "scalar" or fixed is not None:
                out.append(fixed)
            else:
                out.append(self._buffer(arg))
        return out

    def _buffer(self, arg: Any) -> torch.Tensor:
        shape, kind = arg.extents(self.sizes), DTYPES[arg.dtype]
        if arg.role == "out":
            poison = float("nan") if kind.is_floating_point else torch.iinfo(kind).min
            return torch.full(shape, poison, dtype=kind, device="cuda")
        scale = self.scales.get(arg.name, 1.0)
        return (torch.randn(shape, device="cuda") * scale).to(kind)


def _relaunched(contract: Contract, entry: str, grid: str, block: str) -> Contract:
    launches = tuple(
        replace(launch, grid=(grid,), block=(block,)) if launch.entry == entry else launch
        for launch in contract.launches
    )
    return replace(contract, launches=launches)


def written(kernel: Kernel, given: Given) -> list[tuple[bool, torch.Tensor]]:
    """Give what a kernel writes: (updated in place?, tensor)."""
    pairs = zip(kernel.contract.given(), given, strict=True)
    return [(arg.role == "inout", value) for arg, value in pairs if arg.role in ("out", "inout")]
