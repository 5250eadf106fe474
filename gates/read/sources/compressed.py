"""The text inside a compressed file as a source: surveyed once, then read through a window.

The survey finds how long the text is and how the stream ends before any row is judged; it costs
one more decompression and saves a copy of the text on the disk.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from trueup.gates.errors import Unreadable
from trueup.gates.read.limits import Limits
from trueup.gates.read.sources.source import Source
from trueup.gates.read.sources.streams import Codec, Ending, Stream


@dataclass(slots=True)
class _Survey:
    """What one pass over the stream found."""

    ending: Ending
    size: int = 0
    nul_tail: int = 0


@dataclass(slots=True)
class _Window:
    """The blocks read lately. `start` is the offset of the first, `end` that after the last."""

    blocks: deque[bytes] = field(default_factory=deque)
    start: int = 0
    end: int = 0

    def add(self, block: bytes, keep: int, wanted: int) -> None:
        """Append a block; let go of those that lie far behind, and before the wanted offset."""
        self.blocks.append(block)
        self.end += len(block)
        least = min(self.end - keep, wanted)
        while self.start + len(self.blocks[0]) <= least:
            self.start += len(self.blocks.popleft())

    def cut(self, low: int, high: int) -> bytes:
        """The bytes between two offsets that it holds."""
        parts, at = [], self.start
        for block in self.blocks:
            if at < high and at + len(block) > low:
                parts.append(block[max(0, low - at) : high - at])
            at += len(block)
        return b"".join(parts)


class CompressedSource:
    """Decompressed text by offset. Offsets are those of the text, not of the file."""

    def __init__(self, inner: Source, codec: Codec, name: str, limits: Limits) -> None:
        """Survey the stream. Raises `Unreadable` if it has no text, or too much of it."""
        self.codec = codec
        self._inner, self._name, self._limits = inner, name, limits
        self._survey = self._look()
        self._keep = limits.piece + limits.max_row
        self._lock = threading.Lock()  # a reader may ask from the thread that parses
        self._restart()

    @property
    def ending(self) -> Ending:
        """How the stream ended."""
        return self._survey.ending

    @property
    def size(self) -> int:
        """Bytes of text."""
        return self._survey.size

    @property
    def nul_tail(self) -> int:
        """NUL bytes at the end of the text."""
        return self._survey.nul_tail

    def _look(self) -> _Survey:
        stream = Stream(self._inner, self.codec)
        found = _Survey(Ending("complete", 0))
        while block := stream.read():
            found.size += len(block)
            kept = len(block.rstrip(b"\0"))
            found.nul_tail = len(block) - kept + (0 if kept else found.nul_tail)
            self._within_limits(found.size)
        found.ending = stream.ending or found.ending
        if not found.size:
            raise Unreadable(
                "cannot be decompressed", where=self._name,
                got=f"{_words(found.ending)} before any text",
                expected=f"a {self.codec} stream with rows in it",
                fix="copy the file again, or ask whether the run ever wrote a row",
            )  # fmt: skip
        return found

    def _within_limits(self, size: int) -> None:
        limits = self._limits
        most = max(limits.inflated_from, self._inner.size * limits.max_inflation)
        if size > min(most, limits.max_inflated):
            raise Unreadable(
                "unpacks to more text than the limit", where=self._name,
                got=f"more than {size} bytes out of {self._inner.size}",
                expected=f"at most {limits.max_inflated} bytes, and {limits.max_inflation} for "
                "each compressed one",
                fix="check who wrote this file; judge the text itself if it is meant",
            )  # fmt: skip

    def _restart(self) -> None:
        self._stream = Stream(self._inner, self.codec)
        self._window = _Window()

    def read_at(self, size: int, at: int) -> bytes:
        """Up to `size` bytes from the offset `at`. Behind the window, it starts once more."""
        with self._lock:
            return self._read_at(min(at + size, self.size), at)

    def _read_at(self, high: int, at: int) -> bytes:
        if at < self._window.start:
            self._restart()
        while self._window.end < high:
            block = self._stream.read()
            if not block:
                raise Unreadable(
                    "changed while it was read", where=self._name,
                    got=f"{self._window.end} bytes of text, {self.size} a moment before",
                    fix="judge the file when nobody writes it",
                )  # fmt: skip
            self._window.add(block, self._keep, at)
        return self._window.cut(at, high)

    def close(self) -> None:
        """Close the file."""
        self._inner.close()


def _words(ending: Ending) -> str:
    return {
        "complete": "the end of the stream",
        "cut": "the end of the file",
        "damaged": f"damage ({ending.got})",
        "trailing": "something that is no stream",
    }[ending.how]
