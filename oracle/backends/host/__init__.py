"""The host backend: the very same `.cu`, compiled by g++ through a shim and run on the CPU."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import ClassVar, Literal

from trueup.oracle.backends.base import Source
from trueup.oracle.backends.host.compiler import find_compiler
from trueup.oracle.backends.host.run import HostKernel
from trueup.oracle.errors import ContractError

__all__ = ["HostBackend", "HostKernel"]


class HostBackend:
    """Runs CUDA C++ on the CPU, each CUDA thread a fiber, in an order that a seed decides."""

    name: Literal["host"] = "host"
    placements: ClassVar[tuple[str, ...]] = ("guard", "page_end", "page_start")

    @property
    def device(self) -> str:
        """Describe the processor and the compiler in one line."""
        return f"host CPU ({platform.machine()}), {find_compiler().version}"

    def load(self, source: Source, entries: Sequence[str]) -> HostKernel:
        """Compile `source`, or take it from the cache, and load it."""
        if source.kind != "cu":
            raise ContractError(
                f"the host backend compiles .cu sources and cannot run a {source.kind}",
                where=str(source.path),
                fix="give the .cu, or verify it with --backend cuda",
            )
        if not entries:
            raise ContractError("no entry is asked for", where=str(source.path))
        return HostKernel(source, entries)
