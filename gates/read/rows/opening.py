"""What a file is, decided from its first and last bytes before any row is parsed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trueup.gates.errors import Unreadable
from trueup.gates.findings import show

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


def open_file(path: Path, name: str) -> tuple[int, Opened]:
    """Open for reading. Raises `Unreadable` where there is nothing a row could be in."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise Unreadable(
            "cannot be opened", where=name, got=str(error.strerror or error),
            expected="a readable file", fix="check the path and its permissions",
        ) from None  # fmt: skip
    try:
        return fd, _look(fd, path, name)
    except BaseException:
        os.close(fd)
        raise


def _look(fd: int, path: Path, name: str) -> Opened:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise Unreadable("is not a regular file", where=name, expected="a file of rows")
    if info.st_size == 0:
        raise Unreadable(
            "is empty", where=name, got="0 bytes", expected="a JSON list of rows, or JSON lines",
            fix="some trainers write the file only when the run ends: did this one crash?",
        )  # fmt: skip
    head = os.pread(fd, 4096, 0)
    _refuse_other_formats(head, name)
    has_bom = head.startswith(BOM)
    start = len(BOM) if has_bom else 0
    first, at = _first_byte(fd, start, info.st_size)
    if first is None:
        raise Unreadable(
            "holds only blanks", where=name, got=f"{info.st_size} bytes of white space or NUL",
            expected="a JSON list of rows, or JSON lines",
        )  # fmt: skip
    if first not in b"[{":
        raise Unreadable(
            "is not JSON telemetry", where=f"{name}:{at}", got=show(os.pread(fd, 24, at)),
            expected="`[` (a list of rows) or `{` (one row a line) as the first character",
        )  # fmt: skip
    nul_tail = _nul_tail(fd, info.st_size)
    return Opened(
        path, info.st_size, "list" if first == b"[" else "lines", start, nul_tail, has_bom
    )


def _refuse_other_formats(head: bytes, name: str) -> None:
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


def _first_byte(fd: int, start: int, size: int) -> tuple[bytes | None, int]:
    """The first byte that is no white space (and no NUL), and its offset."""
    at = start
    while at < size:
        block = os.pread(fd, 1 << 16, at)
        if not block:
            break
        rest = block.lstrip(_BLANK + b"\0")
        if rest:
            return rest[:1], at + len(block) - len(rest)
        at += len(block)
    return None, size


def _nul_tail(fd: int, size: int) -> int:
    """How many NUL bytes end the file, read backwards."""
    tail = 0
    while tail < size:
        length = min(1 << 16, size - tail)
        block = os.pread(fd, length, size - tail - length)
        kept = len(block.rstrip(b"\0"))
        tail += len(block) - kept
        if kept:
            break
    return tail
