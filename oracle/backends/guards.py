"""Guard zones: what lies on both sides of a buffer, and what went wrong in and around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.oracle.backends.arguments import Bytes, pattern, size_in_bytes, start_bytes
from trueup.oracle.backends.base import Buffer, Fault, RunOptions

# Wide enough for a stray warp or block of doubles; a multiple of 256 keeps the payload as aligned
# as the allocation.
_SMALLEST, _LARGEST = 4096, 1 << 20


@dataclass(frozen=True)
class Guarded:
    """One allocation laid out as guard, payload, guard; `start` is the whole of it at the start."""

    buffer: Buffer
    guard: int
    payload: int
    start: Bytes

    @classmethod
    def lay_out(cls, buffer: Buffer, options: RunOptions) -> Guarded:
        """Fill the guards with the pattern and the payload with what the buffer starts with."""
        payload = size_in_bytes(buffer)
        row = (buffer.shape[-1] if buffer.shape else 1) * buffer.dtype.itemsize
        guard = -(-min(max(_SMALLEST, 2 * row), _LARGEST) // 256) * 256
        start = pattern(2 * guard + payload, options.fill)
        start[guard : guard + payload] = start_bytes(buffer, options)
        return cls(buffer, guard, payload, start)

    def inside(self, whole: Bytes) -> Bytes:
        """Return the payload of a copy of the whole allocation."""
        return whole[self.guard : self.guard + self.payload]

    def faults(self, whole: Bytes) -> list[Fault]:
        """Compare the allocation after the run with its start: guards, and inputs bit by bit."""
        found = [self._side(whole, before=True), self._side(whole, before=False)]
        if self.buffer.role == "in":
            found.append(self._input(whole))
        return [fault for fault in found if fault]

    def _side(self, whole: Bytes, *, before: bool) -> Fault | None:
        side = slice(0, self.guard) if before else slice(self.guard + self.payload, None)
        changed = np.flatnonzero(whole[side] != self.start[side])
        if not changed.size:
            return None
        item = self.buffer.dtype.itemsize
        if before:
            nearest = (self.guard - 1 - int(changed[-1])) // item + 1
            where = f"{_elements(nearest)} before its first"
        else:
            nearest = int(changed[0]) // item + 1
            where = f"{_elements(nearest)} past its last"
        return Fault(
            "guard overwritten",
            f"{self.buffer.name}: {changed.size} bytes written outside the buffer, "
            f"the nearest {where}",
            buffer=self.buffer.name,
        )

    def _input(self, whole: Bytes) -> Fault | None:
        changed = np.flatnonzero(self.inside(whole) != self.inside(self.start))
        if not changed.size:
            return None
        flat = changed // self.buffer.dtype.itemsize
        first = tuple(int(i) for i in np.unravel_index(int(flat[0]), self.buffer.shape or (1,)))
        return Fault(
            "input changed",
            f"{self.buffer.name}: {_elements(np.unique(flat).size)} of an input overwritten, "
            f"the first at {list(first)}",
            buffer=self.buffer.name,
        )


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"
