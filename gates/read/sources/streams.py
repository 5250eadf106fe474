"""Decompresses gzip and zstandard in one pass forward, never holding more than a few blocks.

A file may hold several members (gzip) or frames (zstandard), one after the other. How the stream
ended is kept: complete, cut off, damaged, or followed by something that is no stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from trueup.gates.read.sources.source import Source

Codec = Literal["gzip", "zstandard"]
MAGIC: dict[Codec, bytes] = {"gzip": b"\x1f\x8b", "zstandard": b"\x28\xb5\x2f\xfd"}

_INPUT = 1 << 16
_OUTPUT = 1 << 14  # of one call: what is lost where a checksum does not fit
_SLICE = 1 << 10  # of zstandard input: its blocks may grow to 128 KiB from 4 bytes each
_TRAILER: dict[Codec, int] = {"gzip": 8, "zstandard": 4}  # a checksum, and for gzip the size
_WINDOW = 1 << 27  # memory that a zstandard frame may ask for


@dataclass(frozen=True, slots=True)
class Ending:
    """How a stream ended. `at`: where in the compressed file."""

    how: Literal["complete", "cut", "damaged", "trailing"]
    at: int
    got: str = ""


class _Member(Protocol):
    """One member or frame. `rest` is what came after its end."""

    ended: bool
    rest: bytes

    def take(self, data: bytes) -> bytes: ...

    def wants(self) -> int: ...


class _GzipMember:
    def __init__(self) -> None:
        from isal import igzip_lib

        self._inflate: Any = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        self.ended, self.rest = False, b""

    def wants(self) -> int:
        """How much more input; 0 while it still has some."""
        return _INPUT if self._inflate.needs_input else 0

    def take(self, data: bytes) -> bytes:
        out: bytes = self._inflate.decompress(data, max_length=_OUTPUT)
        self.ended = self._inflate.eof
        self.rest = self._inflate.unused_data if self.ended else b""
        return out


class _ZstdFrame:
    def __init__(self) -> None:
        import zstandard

        inflate = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        self._inflate: Any = inflate.decompressobj()
        self.ended, self.rest = False, b""

    def wants(self) -> int:
        return _SLICE

    def take(self, data: bytes) -> bytes:
        out: bytes = self._inflate.decompress(data)
        self.ended = self._inflate.eof
        self.rest = self._inflate.unused_data if self.ended else b""
        return out


_MEMBERS: dict[Codec, Callable[[], _Member]] = {"gzip": _GzipMember, "zstandard": _ZstdFrame}


def begins(codec: Codec, head: bytes) -> bool:
    """Whether these bytes are the start of a member. zstandard also has frames to be skipped."""
    if codec == "zstandard" and head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F:
        return True
    return head.startswith(MAGIC[codec])


class Stream:
    """The text of a compressed source, block after block."""

    def __init__(self, source: Source, codec: Codec) -> None:
        """Start at the beginning."""
        self.ending: Ending | None = None
        self._source, self._codec = source, codec
        self._member: _Member | None = None
        self._input = b""  # read and not yet taken
        self._at = 0  # of the first byte that is not read

    def read(self) -> bytes:
        """The next block, empty at the end; then `ending` says how it ended."""
        while self.ending is None:
            if self._member is None and not self._begin():
                break
            block = self._step()
            if block:
                return block
        return b""

    def _begin(self) -> bool:
        """Open the next member, if there is one."""
        head = self._ahead(4)
        here = self._at - len(self._input)
        if not head:
            self.ending = Ending("complete", here)
            return False
        if not begins(self._codec, head):
            if len(head) < 4 and MAGIC[self._codec].startswith(head):
                self.ending = Ending("cut", self._source.size, "the start of a further stream")
            else:
                self.ending = Ending("trailing", here, f"{self._source.size - here} bytes")
            return False
        self._member = _MEMBERS[self._codec]()
        return True

    def _ahead(self, size: int) -> bytes:
        """The next bytes, without taking them."""
        while len(self._input) < size:
            more = self._source.read_at(_INPUT, self._at)
            if not more:
                break
            self._at += len(more)
            self._input += more
        return self._input[:size]

    def _before_trailer(self) -> int:
        """Input up to the last bytes of the file, which are taken by themselves.

        A checksum there that does not fit then costs none of the text before it.
        """
        rest = self._source.size - self._at + len(self._input)
        trailer = _TRAILER[self._codec]
        return rest - trailer if rest > trailer else max(rest, 0)

    def _step(self) -> bytes:
        """One call of the decompressor."""
        member = self._member
        if member is None:
            return b""
        wants = min(member.wants(), self._before_trailer())
        data = self._ahead(wants)[:wants]
        if member.wants() and not data:
            self.ending = Ending("cut", self._source.size, "the end of the file inside a stream")
            return b""
        self._input = self._input[len(data) :]
        here = self._at - len(self._input)
        try:
            block = member.take(data)
        except MemoryError:
            raise
        except Exception as error:
            self.ending = Ending("damaged", here - len(data), str(error))
            return b""
        if member.ended:
            self._input = member.rest + self._input
            self._member = None
        return block
