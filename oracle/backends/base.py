"""The interface every backend offers: load a kernel's source, run its launches over buffers.

A backend owns memory and execution and nothing else. It fills what the kernel must write with a
pattern, puts guard zones around every buffer, launches, and hands back every buffer together with
what went wrong. Judging is the lanes' work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]

# A NaN in fp16, bf16, fp32 and fp64 alike, and a huge integer: what nobody wrote shows.
NAN_FILL = 0x7FF5
# The second fill of the poison lane: an ordinary tiny number in every format.
PLAIN_FILL = 0x0101

Role = Literal["in", "out", "inout", "workspace"]
ParameterKind = Literal["int", "float", "pointer", "const pointer", "struct"]
FaultKind = Literal[
    "crash",
    "time limit",
    "deadlock",
    "divergent barrier",
    "undefined behaviour",
    "out of bounds",
    "guard overwritten",
    "slot overwritten",
    "input changed",
    "launch refused",
    "misuse",
]


@dataclass(frozen=True)
class Source:
    """The code under test: a `.cu` to compile, or a cubin or PTX to load."""

    path: Path
    kind: Literal["cu", "cubin", "ptx"]
    include: tuple[Path, ...] = ()
    defines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel entry as the compiler deduced it; `size` in bytes."""

    size: int
    kind: ParameterKind


@dataclass(frozen=True)
class Buffer:
    """One array argument: `initial` (C order, the declared dtype) for in and inout, else None.

    `shape` is what the kernel addresses, in elements. `dtype` is a NumPy dtype, with bfloat16 from
    ml_dtypes. A buffer of zero elements still gets an address.
    """

    name: str
    role: Role
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    initial: AnyArray | None = None


@dataclass(frozen=True)
class Scalar:
    """One by-value argument: `value` packs to the bytes of the declared dtype."""

    name: str
    value: np.generic


@dataclass(frozen=True)
class Launch:
    """One kernel launch with its sizes resolved; `args` name buffers (str) or carry scalars."""

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    args: tuple[str | Scalar, ...]


@dataclass(frozen=True)
class RunOptions:
    """How to run: every lane is a choice of these.

    `fill` is the 16-bit pattern repeated over `out` and `workspace` buffers, the guard zones and
    (host) shared memory. `dirty` gives other start contents, by name, for out and workspace
    buffers. `order` is the host's thread and block order: 0 natural, 1 reversed, above that a
    seed. `placement` decides what lies beside a buffer: a guard zone filled with the pattern on
    both sides, or (host) an unmapped page right behind or right before it. `time_limit` is in
    seconds, for all the launches together.
    """

    fill: int = NAN_FILL
    order: int = 0
    placement: Literal["guard", "page_end", "page_start"] = "guard"
    dirty: Mapping[str, AnyArray] = field(default_factory=dict)
    time_limit: float = 20.0


@dataclass(frozen=True)
class Fault:
    """Something a run did that a kernel must not do."""

    kind: FaultKind
    message: str
    location: str | None = None  # file:line or file:line:column of the kernel's source
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    buffer: str | None = None


@dataclass(frozen=True)
class RunResult:
    """Every buffer after the launches (by name), how many launches ran, and every fault seen."""

    buffers: Mapping[str, AnyArray]
    launches: int
    faults: tuple[Fault, ...] = ()


class Kernel(Protocol):
    """One compiled source, ready to run."""

    def signature(self, entry: str) -> tuple[Parameter, ...] | None:
        """Return the entry's parameters, or None where the backend cannot know them."""
        ...

    def run(
        self, launches: Sequence[Launch], buffers: Sequence[Buffer], options: RunOptions
    ) -> RunResult:
        """Run the launches in order on fresh copies of the buffers."""
        ...


class Backend(Protocol):
    """A place where kernels run."""

    name: Literal["cuda", "host", "python"]

    @property
    def device(self) -> str:
        """Describe the device in one line: for reports and evidence."""
        ...

    def load(self, source: Source, entries: Sequence[str]) -> Kernel:
        """Compile or load `source`; `entries` are symbols or C++ name expressions.

        Raises CompileError with the first error at its line, ContractError for an entry that is
        not in the source, BackendUnavailable where the machine lacks what it takes.
        """
        ...
