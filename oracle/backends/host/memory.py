"""Device memory on the host: each buffer in a mapping of its own, with what lies beside it."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.errors import BackendUnavailable

Bytes = NDArray[np.uint8]
Placement = Literal["guard", "page_end", "page_start"]

PAGE = mmap.PAGESIZE
# Unmapped on either side of a buffer, so that a stride too far is still told by the buffer's name.
_MARGIN = 256 * PAGE
_FLAGS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
_NONE, _READ_WRITE = 0, mmap.PROT_READ | mmap.PROT_WRITE


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def reserve(size: int) -> int:
    """Reserve address space that nothing may touch yet."""
    address = _libc().mmap(None, size, _NONE, _FLAGS, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise BackendUnavailable(
            f"cannot reserve {size} bytes of memory: {os.strerror(ctypes.get_errno())}",
            fix="verify smaller shapes, or raise the limit on memory (ulimit -v)",
        )
    return int(address)


def _up(size: int, to: int) -> int:
    return -(-size // to) * to


def _at(address: int, size: int) -> Bytes:
    if size <= 0:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class Region:
    """One buffer's memory: its bytes, the zones of fill pattern beside it, and unmapped pages.

    guard: a page or more of pattern on both sides. page_end: the last byte lies against an unmapped
    page. page_start: the first byte does.
    `align` moves a page_end buffer down to that alignment, leaving a few bytes of pattern behind.
    """

    def __init__(
        self, name: str, size: int, fill: int, placement: Placement = "guard", align: int = 1
    ) -> None:
        """Map the memory and fill all of it with the pattern."""
        self.name, self.size = name, size
        zone = PAGE if placement == "guard" else 0
        usable = _up(size, PAGE) + 2 * zone
        self._start = reserve(usable + 2 * _MARGIN)
        self._length = usable + 2 * _MARGIN
        self._low, self._high = self._start + _MARGIN, self._start + _MARGIN + usable
        if usable and _libc().mprotect(self._low, usable, _READ_WRITE) != 0:
            self.close()
            raise BackendUnavailable(f"no memory for the {size} bytes of `{name}`")
        if placement == "page_end":
            self.address = (self._high - size) // align * align
        else:
            self.address = self._low + zone
        self._pattern = np.frombuffer(fill.to_bytes(2, "little") * (PAGE // 2), np.uint8)
        _at(self._low, usable).reshape(-1, PAGE)[:] = self._pattern

    @property
    def data(self) -> Bytes:
        """The buffer's bytes, in place."""
        return _at(self.address, self.size)

    def holds(self, address: int) -> bool:
        """Tell whether an address lies in this region or in the unmapped pages around it."""
        return self._start <= address < self._start + self._length

    def overwritten(self) -> int | None:
        """Return the offset, from the buffer's start, of the first changed byte beside it."""
        for low, high in ((self._low, self.address), (self.address + self.size, self._high)):
            zone = _at(low, high - low)
            first = (low - self._low) % PAGE
            pages = np.resize(np.roll(self._pattern, -first), zone.size)
            changed = np.flatnonzero(zone != pages)
            if changed.size:
                # Before the buffer, the nearest byte to it; behind it, the first.
                at = changed[-1] if low == self._low and high == self.address else changed[0]
                return int(low + int(at) - self.address)
        return None

    def close(self) -> None:
        """Unmap; no view of the memory may be used after it."""
        if self._length:
            _libc().munmap(self._start, self._length)
            self._length = 0
