"""Where a reader's bytes come from: a file, or the text inside a compressed one."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol

from trueup.gates.errors import Unreadable

_TAIL = 1 << 16


class Source(Protocol):
    """Bytes by offset. What was read lately can be read again; going far back is slow."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    @property
    def nul_tail(self) -> int:
        """How many NUL bytes end it, which a crashed file system leaves."""
        ...

    def read_at(self, size: int, at: int) -> bytes:
        """Up to `size` bytes from the offset `at`; fewer only at the end."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class FileSource:
    """A regular file."""

    def __init__(self, path: Path, name: str) -> None:
        """Open it. Raises `Unreadable` if that cannot be done, or if it is no regular file."""
        try:
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except (OSError, ValueError) as error:
            raise Unreadable(
                "cannot be opened", where=name,
                got=str(getattr(error, "strerror", None) or error),
                expected="a readable file", fix="check the path and its permissions",
            ) from None  # fmt: skip
        info = os.fstat(self._fd)
        self._size = info.st_size
        if not stat.S_ISREG(info.st_mode):
            self.close()
            raise Unreadable("is not a regular file", where=name, expected="a file of rows")

    @property
    def size(self) -> int:
        """Bytes when it was opened."""
        return self._size

    @property
    def nul_tail(self) -> int:
        """Read backwards from the end."""
        tail = 0
        while tail < self._size:
            length = min(_TAIL, self._size - tail)
            block = self.read_at(length, self._size - tail - length)
            kept = len(block.rstrip(b"\0"))
            tail += len(block) - kept
            if kept or not block:
                break
        return tail

    def read_at(self, size: int, at: int) -> bytes:
        """Up to `size` bytes from the offset `at`."""
        return os.pread(self._fd, size, at)

    def close(self) -> None:
        """Close the file. A second time does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
