"""A contract in memory: what a kernel computes, over which arguments, launched how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trueup.oracle.backends.base import Source
from trueup.oracle.bounds import Precision
from trueup.oracle.contract.bus import Bus
from trueup.oracle.contract.expressions import Expression
from trueup.oracle.contract.formats import DTYPES
from trueup.oracle.errors import ContractError

ArgRole = Literal["in", "out", "inout", "scalar", "axis", "workspace"]


@dataclass(frozen=True)
class Limit:
    """The legal sizes of one axis: from `low` to `high`, in multiples of `multiple`."""

    low: int = 1
    high: int = 1 << 31
    multiple: int = 1

    def __str__(self) -> str:
        """Say it in words."""
        parts = [f"at least {self.low}"]
        parts += [f"at most {self.high}"] if self.high < 1 << 31 else []
        parts += [f"a multiple of {self.multiple}"] if self.multiple > 1 else []
        return ", ".join(parts)

    def admits(self, size: int) -> bool:
        """Whether a size is legal."""
        return self.low <= size <= self.high and size % self.multiple == 0


@dataclass(frozen=True)
class Arg:
    """One argument: a buffer (in, out, inout, workspace), a scalar, or an axis size.

    `shape` and `strides` are expressions over axes, in elements; `strides` is None for C order.
    `written` gives, for each dimension, the start and stop of what the kernel writes; None means
    everything. `legal` is the range of legal values where the reference declares no domain. `slot`
    names the part of the contract's bus that it is; then it has no buffer of its own.
    """

    name: str
    role: ArgRole
    dtype: str
    shape: tuple[Expression, ...] = ()
    strides: tuple[Expression, ...] | None = None
    legal: tuple[float, float] | None = None
    written: tuple[tuple[Expression | None, Expression | None], ...] | None = None
    slot: str | None = None

    @property
    def is_buffer(self) -> bool:
        """Whether the argument is an array in memory."""
        return self.role not in ("scalar", "axis")

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype (bfloat16 from ml_dtypes)."""
        return DTYPES[self.dtype]

    def sizes(self, axes: Mapping[str, int]) -> tuple[int, ...]:
        """Evaluate the shape at the given axis sizes."""
        shape = tuple(e.value(axes, f"shape of {self.name}") for e in self.shape)
        if any(size < 0 for size in shape):
            raise ContractError(
                f"the shape of `{self.name}` is negative",
                where=f"shape of {self.name}",
                got=f"{shape} at {dict(axes)}",
                fix="state the legal sizes in [contract] limits",
            )
        return shape


@dataclass(frozen=True)
class LaunchPlan:
    """One launch with its sizes still expressions."""

    entry: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared: Expression
    args: tuple[str, ...]


@dataclass(frozen=True)
class Call:
    """How a Python callable is called: argument names in order, and the names it returns.

    `results` is None where the callable writes its outputs in place and returns nothing.
    """

    args: tuple[str, ...]
    results: tuple[str, ...] | None = None
    kind: Literal["numpy", "torch"] = "numpy"
    device: Literal["cpu", "cuda"] = "cpu"


@dataclass(frozen=True)
class Contract:
    """Everything a contract file says, validated against its schema and against itself."""

    id: str
    path: Path
    reference: str
    reading: str | None
    source: Source | None
    python: str | None
    axes: tuple[str, ...]
    limits: Mapping[str, Limit]
    tried: Mapping[str, int]  # the largest size to try of an axis, where legal ones cost too much
    precision: Precision
    determinism: Literal["bitwise", "tolerance"]
    nan: Literal["propagate", "ignore", "guarded"]
    alias: tuple[tuple[str, str], ...]
    backends: tuple[str, ...]
    minimum_cases: int
    minimum_elements: int
    args: tuple[Arg, ...]
    launches: tuple[LaunchPlan, ...] = ()
    call: Call | None = None
    bus: Bus | None = None
    digest: str = ""
    text: str = field(default="", repr=False)

    def arg(self, name: str) -> Arg:
        """Return the argument of that name; the bus is one of a launch's arguments."""
        if self.bus is not None and name == self.bus.name:
            written = any(arg.slot is not None and arg.role != "in" for arg in self.args)
            return Arg(name, "inout" if written else "in", "f32")
        return next(arg for arg in self.args if arg.name == name)

    def with_role(self, *roles: str) -> tuple[Arg, ...]:
        """Return the arguments of these roles, in the order declared."""
        return tuple(arg for arg in self.args if arg.role in roles)

    @property
    def outputs(self) -> tuple[Arg, ...]:
        """The arrays the reference returns, in order: `out` and `inout`."""
        return self.with_role("out", "inout")

    @property
    def entries(self) -> tuple[str, ...]:
        """The kernel entries its launches name, each once, in order."""
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))
