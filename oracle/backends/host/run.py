"""One run: memory laid out, launches made in order, everything looked at afterwards."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trueup.oracle.backends.base import (
    AnyArray,
    Buffer,
    Fault,
    Launch,
    Parameter,
    RunOptions,
    RunResult,
    Source,
)
from trueup.oracle.backends.host.arguments import Packed, check
from trueup.oracle.backends.host.build import build
from trueup.oracle.backends.host.faults import (
    DYNAMIC,
    from_report,
    guard_faults,
    input_faults,
    misaligned_buffers,
)
from trueup.oracle.backends.host.library import Library, Report
from trueup.oracle.backends.host.memory import Region
from trueup.oracle.errors import ContractError

_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_THREADS_OF_AXIS = (1024, 1024, 64)
_MOST_THREADS = 1024
_MOST_SHARED = 227 * 1024
# What cudaMalloc guarantees, as far as one access can need it.
_DEVICE_ALIGNMENT = 16


@dataclass
class _Run:
    """The state of one run."""

    regions: dict[str, Region] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    launches: int = 0
    misaligned: set[str] = field(default_factory=set)


class HostKernel:
    """One `.cu`, compiled for the host and loaded."""

    def __init__(self, source: Source, entries: Sequence[str]) -> None:
        """Build the source, or take it from the cache, and load it."""
        folder, self._tree = build(source, entries)
        self._library = Library(folder, entries)

    def signature(self, entry: str) -> tuple[Parameter, ...] | None:
        """Return the entry's parameters as the compiler deduced them."""
        slots = self._library.slots.get(entry)
        if slots is None:
            raise ContractError(
                f"the entry `{entry}` was not loaded",
                expected=f"one of {', '.join(self._library.slots) or 'no entry'}",
                fix="name it among the entries of load()",
            )
        return tuple(slot.parameter for slot in slots)

    def run(
        self, launches: Sequence[Launch], buffers: Sequence[Buffer], options: RunOptions
    ) -> RunResult:
        """Run the launches in order on fresh copies of the buffers.

        A page_end buffer lies flush against its unmapped page, whatever alignment that leaves. A
        kernel has the right to the alignment of an allocation, so where it meets a misaligned
        address in such a buffer, the run is repeated with that buffer aligned.
        """
        check(launches, self._library.slots, buffers)
        contents = {b.name: _content(b, options) for b in buffers}
        aligned: set[str] = set()
        while True:
            run = _Run()
            try:
                self._execute(run, launches, buffers, contents, options, aligned)
                if run.misaligned <= aligned:
                    return self._finish(run, buffers, contents)
                aligned |= run.misaligned
            finally:
                for region in run.regions.values():
                    region.close()

    def _execute(
        self,
        run: _Run,
        launches: Sequence[Launch],
        buffers: Sequence[Buffer],
        contents: dict[str, AnyArray | None],
        options: RunOptions,
        aligned: set[str],
    ) -> None:
        for buffer in buffers:
            align = _DEVICE_ALIGNMENT if buffer.name in aligned else 1
            size = int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize
            region = Region(buffer.name, size, options.fill, options.placement, align)
            run.regions[buffer.name] = region
            content = contents[buffer.name]
            if content is not None and size:
                region.data.view(buffer.dtype).reshape(buffer.shape)[...] = content
        deadline = time.monotonic() + options.time_limit
        for launch in launches:
            refused = _refusal(launch)
            if refused is not None:
                run.faults.append(refused)
                return
            if not self._launch(run, launch, buffers, options, deadline):
                self._library.restore()
                return
            run.launches += 1

    def _launch(
        self,
        run: _Run,
        launch: Launch,
        buffers: Sequence[Buffer],
        options: RunOptions,
        deadline: float,
    ) -> bool:
        dynamic = Region(DYNAMIC, launch.shared, options.fill, "page_end", _DEVICE_ALIGNMENT)
        try:
            packed = Packed(launch, {name: r.address for name, r in run.regions.items()})
            complete, reports = self._library.launch(
                launch,
                packed.addresses,
                dynamic,
                fill=options.fill,
                order=options.order,
                seconds=max(1e-3, deadline - time.monotonic()),
            )
            regions = [*run.regions.values(), dynamic]
            self._translate(run, reports, regions, buffers, options)
            run.faults.extend(guard_faults([dynamic], buffers))
        finally:
            dynamic.close()
        return complete

    def _translate(
        self,
        run: _Run,
        reports: Sequence[Report],
        regions: Sequence[Region],
        buffers: Sequence[Buffer],
        options: RunOptions,
    ) -> None:
        tree, library = self._tree, self._library
        for report in reports:
            fault = from_report(report, tree, library.path, library.base, regions, buffers)
            if fault.kind == "time limit":
                message = f"the kernel had not ended after the time limit, {options.time_limit:g} s"
                fault = replace(fault, message=message)
            run.faults.append(fault)
            if options.placement == "page_end":
                run.misaligned |= run.regions.keys() & misaligned_buffers(report, regions)

    def _finish(
        self, run: _Run, buffers: Sequence[Buffer], contents: dict[str, AnyArray | None]
    ) -> RunResult:
        run.faults.extend(guard_faults(list(run.regions.values()), buffers))
        inputs = [(b, c) for b in buffers if b.role == "in" and (c := contents[b.name]) is not None]
        run.faults.extend(input_faults(inputs, run.regions))
        results = {b.name: _take(run.regions[b.name], b) for b in buffers}
        return RunResult(results, run.launches, tuple(dict.fromkeys(run.faults)))


def _take(region: Region, buffer: Buffer) -> AnyArray:
    if not region.size:
        return np.empty(buffer.shape, buffer.dtype)
    return region.data.copy().view(buffer.dtype).reshape(buffer.shape)


def _content(buffer: Buffer, options: RunOptions) -> AnyArray | None:
    """Return what a buffer starts with, or None for the fill pattern."""
    if buffer.role in ("in", "inout"):
        content, source = buffer.initial, "initial"
        if content is None:
            raise ContractError(f"the {buffer.role} buffer `{buffer.name}` has no initial content")
    else:
        content, source = options.dirty.get(buffer.name), "dirty"
        if content is None:
            return None
    if content.dtype != buffer.dtype or content.shape != buffer.shape:
        raise ContractError(
            f"the {source} content of `{buffer.name}` does not fit its declaration",
            got=f"{content.dtype.name} {content.shape}",
            expected=f"{buffer.dtype.name} {buffer.shape}",
        )
    return content


def _refusal(launch: Launch) -> Fault | None:
    """Say why a device would refuse this launch, if it would."""
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    limits = [
        *zip(("grid.x", "grid.y", "grid.z"), launch.grid, _MOST_BLOCKS, strict=True),
        *zip(("block.x", "block.y", "block.z"), launch.block, _MOST_THREADS_OF_AXIS, strict=True),
        ("threads of a block", threads, _MOST_THREADS),
    ]
    for name, got, most in limits:
        if not 1 <= got <= most:
            message = f"launch of {launch.entry} refused: {name} is {got}, allowed is 1 to {most}"
            return Fault("launch refused", message)
    if not 0 <= launch.shared <= _MOST_SHARED:
        message = (
            f"launch of {launch.entry} refused: {launch.shared} bytes of dynamic shared memory, "
            f"allowed is 0 to {_MOST_SHARED}"
        )
        return Fault("launch refused", message)
    return None
