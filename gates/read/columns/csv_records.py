"""Cuts CSV text into records, which may go over several lines inside quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_QUOTED = rb'"(?:[^"]|"")*+"'
_FIELD = rb"(?:" + _QUOTED + rb'|[^",\n]*+)'
RECORD = re.compile(_FIELD + rb"(?:," + _FIELD + rb")*+\r?(?:\n|\Z)")
_OPEN = re.compile(rb"(?:" + _FIELD + rb',)*+"(?:[^"]|"")*+\Z')
_ONE = re.compile(_FIELD)


@dataclass(frozen=True, slots=True)
class Record:
    """The bytes of one record without its line end, and where it stands."""

    text: bytes
    byte: int
    line: int
    flaw: str | None = None  # a kind, where the quotes do not fit
    ended: bool = True  # by a newline


@dataclass(slots=True)
class Cut:
    """Records of a piece, and how much of it they take."""

    records: list[Record]
    used: int
    lines: int  # line ends in what was used


def cut(raw: bytes, byte: int, line: int, more: bool) -> Cut:
    """Records of the text that begins here. With `more`, an open quote may be closed later."""
    out = Cut([], 0, 0)
    last_quote = raw.rfind(b'"')
    while out.used < len(raw):
        low, flaw = out.used, None
        newline = raw.find(b"\n", low)
        high = len(raw) if newline < 0 else newline + 1
        if low <= last_quote:
            found = RECORD.match(raw, low)
            opened = found is None and _OPEN.match(raw, low) is not None
            if opened and more:
                break
            if found is not None:
                high = found.end()
            else:
                flaw = "open_quote" if opened else "stray_quote"
                flaw = "truncated" if opened and newline < 0 else flaw
        _add(raw, low, high, flaw, byte, line, out)
    return out


def _add(raw: bytes, low: int, high: int, flaw: str | None, byte: int, line: int, out: Cut) -> None:
    text = raw[low:high]
    ended = text.endswith(b"\n")
    body = text.removesuffix(b"\n").removesuffix(b"\r")
    out.records.append(Record(body, byte + low, line + out.lines, flaw, ended))
    out.used, out.lines = high, out.lines + text.count(b"\n")


def field_offsets(record: bytes) -> list[int]:
    """Where each cell of a record begins."""
    out, at = [], 0
    while True:
        out.append(at)
        found = _ONE.match(record, at)
        end = found.end() if found else len(record)
        if record[end : end + 1] != b",":
            return out
        at = end + 1
