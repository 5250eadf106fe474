"""Turns the runtime's reports, and what the guards show, into faults in the user's terms."""

from __future__ import annotations

import functools
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trueup.oracle.backends.base import AnyArray, Buffer, Fault, FaultKind
from trueup.oracle.backends.host.library import Report
from trueup.oracle.backends.host.memory import Region
from trueup.oracle.backends.host.sources import TOKEN, SourceTree

# The runtime's Kind, in its order.
_KINDS: tuple[FaultKind, ...] = (
    "crash",
    "time limit",
    "deadlock",
    "divergent barrier",
    "undefined behaviour",
    "out of bounds",
    "misuse",
    "undefined behaviour",
)
_CRASH, _MISALIGNED = 0, 7
DYNAMIC = "dynamic shared memory"


def from_report(
    report: Report,
    tree: SourceTree,
    library: Path,
    base: int,
    regions: Sequence[Region],
    buffers: Sequence[Buffer],
) -> Fault:
    """Say what a report says: place in the user's file, buffer and element."""
    kind = _KINDS[report.kind]
    message = tree.localise(report.message.decode("utf-8", "replace"))
    name: str | None = None
    hit = next((r for r in regions if report.address and r.holds(report.address)), None)
    if hit is not None:
        name = hit.name
        place = _place(hit, report.address - hit.address, buffers)
        if kind == "crash":
            kind = "out of bounds"
            verb = {0: "reads", 1: "writes"}.get(report.is_write, "touches")
            message = f"the kernel {verb} {place}"
        else:
            message = f"{message}: {place}"
    elif kind == "crash" and report.signal:
        message = f"{message} at address {report.address:#x}"
    return Fault(
        kind,
        message,
        location=_location(report, tree, library, base),
        block=_triple(report.block),
        thread=_triple(report.thread),
        buffer=name,
    )


def misaligned_buffers(report: Report, regions: Sequence[Region]) -> set[str]:
    """Name the buffers that a misaligned access may have been in.

    Where the compiler has left the check out, the processor traps, and does not say at which
    address.
    """
    if report.kind == _CRASH and report.signal == signal.SIGSEGV and not report.address:
        return {region.name for region in regions}
    if report.kind == _MISALIGNED:
        return {region.name for region in regions if region.holds(report.address)}
    return set()


def _triple(index: Sequence[int]) -> tuple[int, int, int]:
    return (int(index[0]), int(index[1]), int(index[2]))


def _place(region: Region, offset: int, buffers: Sequence[Buffer]) -> str:
    """Say where a byte lies, in elements of the buffer where it has any."""
    buffer = next((one for one in buffers if one.name == region.name), None)
    if buffer is None:
        return f"byte {offset} of {region.name}, which has {region.size} bytes"
    element = offset // buffer.dtype.itemsize
    count = region.size // buffer.dtype.itemsize
    return f"element {element} of `{region.name}`, which has {count} elements"


def _location(report: Report, tree: SourceTree, library: Path, base: int) -> str | None:
    file = report.file.decode("utf-8", "replace")
    if report.pc and not (tree.is_source(file) and report.column):
        found = _source_line(library, report.pc - base)
        if found:
            return tree.localise(found)
    if not tree.is_source(file):
        return None
    column = f":{report.column}" if report.column else ""
    return f"{tree.localise(file)}:{report.line}{column}"


@functools.lru_cache(maxsize=256)
def _source_line(library: Path, offset: int) -> str | None:
    """Look an instruction up in the line table: the innermost frame that is the user's."""
    tool = shutil.which("addr2line")
    if tool is None or not 0 <= offset < library.stat().st_size * 4:
        return None
    done = subprocess.run(
        [tool, "-i", "-e", str(library), hex(offset)], capture_output=True, text=True, check=False
    )
    found = re.search(rf"{TOKEN}\d+:\d+", done.stdout)
    return found[0] if found else None


def guard_faults(regions: Sequence[Region], buffers: Sequence[Buffer]) -> list[Fault]:
    """Find the writes that landed beside a buffer."""
    faults = []
    for region in regions:
        offset = region.overwritten()
        if offset is not None:
            side = "before" if offset < 0 else "behind"
            place = _place(region, offset, buffers)
            message = f"a write landed {side} the buffer, at {place}"
            faults.append(Fault("guard overwritten", message, buffer=region.name))
    return faults


def input_faults(
    before: Sequence[tuple[Buffer, AnyArray]], regions: dict[str, Region]
) -> list[Fault]:
    """Find the inputs that are no longer what they were, bit for bit."""
    faults = []
    for buffer, initial in before:
        was = np.ascontiguousarray(initial).reshape(-1).view(np.uint8)
        changed = np.flatnonzero(regions[buffer.name].data != was)
        if changed.size:
            element = int(changed[0]) // buffer.dtype.itemsize
            elements = np.unique(changed // buffer.dtype.itemsize).size
            message = (
                f"the input `{buffer.name}` was changed: {elements} element(s), "
                f"the first is element {element}"
            )
            faults.append(Fault("input changed", message, buffer=buffer.name))
    return faults
