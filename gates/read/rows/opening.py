"""What a file is, decided from its first and last bytes before any row is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trueup.gates.errors import Unreadable
from trueup.gates.findings import show
from trueup.gates.read.sources.source import Source

BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_WIDE = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_MAGIC = {
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstandard file",
    b"PAR1": "a parquet file",
    b"PK\x03\x04": "a zip file",
}
_UTF8 = "write the file as UTF-8 without a byte order mark"

Form = Literal["list", "lines"]


@dataclass(frozen=True, slots=True)
class Opened:
    """A regular file with at least one row's beginning. `start` is after a byte order mark."""

    path: Path
    size: int
    form: Form
    start: int
    nul_tail: int  # NUL bytes at the end, which a crashed file system leaves
    has_bom: bool


def look(source: Source, path: Path, name: str) -> Opened:
    """What the source holds. Raises `Unreadable` where there is nothing a row could be in."""
    if source.size == 0:
        raise Unreadable(
            "is empty", where=name, got="0 bytes", expected="a JSON list of rows, or JSON lines",
            fix="some trainers write the file only when the run ends: did this one crash?",
        )  # fmt: skip
    head = source.read_at(4096, 0)
    refuse_other_formats(head, name)
    has_bom = head.startswith(BOM)
    start = len(BOM) if has_bom else 0
    first, at = _first_byte(source, start)
    if first is None:
        raise Unreadable(
            "holds only blanks", where=name, got=f"{source.size} bytes of white space or NUL",
            expected="a JSON list of rows, or JSON lines",
        )  # fmt: skip
    if first not in b"[{":
        raise Unreadable(
            "is not JSON telemetry", where=f"{name}:{at}", got=show(source.read_at(24, at)),
            expected="`[` (a list of rows) or `{` (one row a line) as the first character",
        )  # fmt: skip
    form: Form = "list" if first == b"[" else "lines"
    return Opened(path, source.size, form, start, source.nul_tail, has_bom)


def refuse_other_formats(head: bytes, name: str) -> None:
    """Raise `Unreadable` for text that is not UTF-8, and for well-known forms that are no text."""
    for mark, encoding in _WIDE.items():
        if head.startswith(mark):
            raise Unreadable("is not UTF-8", where=name, got=encoding, expected="UTF-8", fix=_UTF8)
    if head[:2] in (b"{\0", b"[\0", b"\0{", b"\0["):
        got = "UTF-16 without a byte order mark"
        raise Unreadable("is not UTF-8", where=name, got=got, expected="UTF-8", fix=_UTF8)
    for mark, what in _MAGIC.items():
        if head.startswith(mark):
            raise Unreadable(
                "is not JSON telemetry", where=name, got=what,
                expected="a JSON list of rows, or JSON lines",
            )  # fmt: skip


def _first_byte(source: Source, start: int) -> tuple[bytes | None, int]:
    """The first byte that is no white space (and no NUL), and its offset."""
    at = start
    while at < source.size:
        block = source.read_at(1 << 16, at)
        if not block:
            break
        rest = block.lstrip(_BLANK + b"\0")
        if rest:
            return rest[:1], at + len(block) - len(rest)
        at += len(block)
    return None, source.size
