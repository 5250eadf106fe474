"""Opens a document: a regular file within the limits, UTF-8, unchanged while it is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trueup.gates.errors import Unreadable
from trueup.gates.findings import show
from trueup.gates.read.limits import Fault, Limits

BOM = b"\xef\xbb\xbf"
_WIDE = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_UTF8 = "write the file as UTF-8 without a byte order mark"

Report = Callable[[Fault], None]


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a document. `shift`: bytes of a byte order mark before it."""

    raw: bytes
    text: str
    size: int
    shift: int = 0


@contextmanager
def opened(path: Path, name: str, report: Report) -> Iterator[tuple[BinaryIO, int]]:
    """A regular file for reading, and its size. Reports a file that changes meanwhile."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise Unreadable(
            "cannot be opened", where=name, got=str(getattr(error, "strerror", None) or error),
            expected="a readable file", fix="check the path and its permissions",
        ) from None  # fmt: skip
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode):
        os.close(fd)
        raise Unreadable("is not a regular file", where=name, expected="a file")
    with os.fdopen(fd, "rb") as file:
        if not before.st_size:
            raise Unreadable(
                "is empty", where=name, got="0 bytes", expected="a document",
                fix="write it under another name and rename it when it is complete",
            )  # fmt: skip
        yield file, before.st_size
        after = os.fstat(fd)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        got = f"{before.st_size} bytes before, {after.st_size} after, times differ"
        report(Fault("document_changed", got))


def read_text(path: Path, name: str, report: Report, limits: Limits) -> Text | None:
    """The whole text; None if its bytes have a fault after which it cannot be read."""
    with opened(path, name, report) as (file, size):
        if size > limits.max_document:
            raise Unreadable(
                "is too large for a document", where=name, got=f"{size} bytes",
                expected=f"at most {limits.max_document} bytes",
                fix="keep tables and tensors in files of their own",
            )  # fmt: skip
        raw = file.read(limits.max_document + 1)
    return text_of(raw, name, report)


def text_of(raw: bytes, name: str, report: Report) -> Text | None:
    """The same of bytes that are read already."""
    size, shift = len(raw), 0
    _refuse_wide(raw, name)
    if raw.startswith(BOM):
        report(Fault("document_bom", "bytes ef bb bf", 1, 0))
        raw, shift = raw[len(BOM) :], len(BOM)
    kept = raw.rstrip(b"\0")
    if not kept.strip():
        raise Unreadable(
            "holds only blanks", where=name, got=f"{size} bytes of white space or NUL",
            expected="a document",
        )  # fmt: skip
    at = kept.find(b"\0")
    if at >= 0 or len(kept) != len(raw):
        first = at if at >= 0 else len(kept)
        line = raw.count(b"\n", 0, first) + 1
        report(Fault("document_nul", f"{raw.count(0)} NUL bytes", line, shift + first))
        if at >= 0:
            return None
    try:
        return Text(kept, kept.decode("utf-8"), size, shift)
    except UnicodeDecodeError as error:
        bad = kept[error.start : error.start + 4]
        line = kept.count(b"\n", 0, error.start) + 1
        report(Fault("document_encoding", f"bytes {bad.hex(' ')}", line, shift + error.start))
        return None


def _refuse_wide(raw: bytes, name: str) -> None:
    for mark, encoding in _WIDE.items():
        if raw.startswith(mark):
            raise Unreadable("is not UTF-8", where=name, got=encoding, expected="UTF-8", fix=_UTF8)
    if len(raw) > 1 and raw[0] != raw[1] and 0 in raw[:2]:
        raise Unreadable(
            "is not UTF-8", where=name, got=f"{show(raw[:4])}: UTF-16 without a byte order mark",
            expected="UTF-8", fix=_UTF8,
        )  # fmt: skip
