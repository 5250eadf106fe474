"""Cuts a file into pieces of whole rows, without ever holding more than one piece."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.gates.read.sources.source import Source

_SEARCH = 1 << 16
_BLOCK = 1 << 18  # stays in the second-level cache
_BLANKS = 256  # between two rows of a list
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RawRow:
    """The bytes of one row, and where they stand."""

    text: bytes
    byte: int
    line: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file of lines. `skipped` is the length of a line past the limit."""

    raw: bytes
    byte: int
    ended: bool  # by a newline
    skipped: int = 0

    def text(self) -> bytes:
        """The lines with plain newlines, the last one included."""
        text = self.raw if self.ended else self.raw + b"\n"
        if b"\r" not in text:
            return text
        returns = text.count(b"\r")
        if returns == text.count(b"\r\n") == text.count(b"\n"):
            return text.replace(b"\r\n", b"\n")
        return text

    def rows(self, first_line: int) -> list[RawRow]:
        """The single lines."""
        lines = self.raw.split(b"\n")
        if self.ended:
            lines.pop()
        out, byte = [], self.byte
        for number, line in enumerate(lines):
            text = line[:-1] if line.endswith(b"\r") else line
            out.append(RawRow(text, byte, first_line + number))
            byte += len(line) + 1
        return out


def line_pieces(
    source: Source, start: int, end: int, first: int, size: int, max_row: int
) -> Iterator[Piece]:
    """Pieces cut at newlines; the first is shorter."""
    low, want = start, first
    while low < end:
        raw = source.read_at(min(want, end - low), low)
        if not raw:
            return  # the file was cut while we read it
        at = raw.rfind(b"\n")
        if at >= 0:
            raw = raw[: at + 1]
        elif low + len(raw) < end:
            stop = _newline(source, low + len(raw), end)
            if stop - low > max_row:
                yield Piece(raw[:256], low, True, skipped=stop - low)
                low = stop
                continue
            raw = source.read_at(stop - low, low)
        yield Piece(raw, low, raw.endswith(b"\n"))
        low, want = low + len(raw), size


def _newline(source: Source, at: int, end: int) -> int:
    """The offset after the next newline, or the end."""
    while at < end:
        block = source.read_at(min(_SEARCH, end - at), at)
        if not block:
            return at
        found = block.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(block)
    return end


# A row of a list ends at a `}`; between two rows stand blanks and one comma.
SEPARATOR = re.compile(rb"\}[ \t\r\n]*+,[ \t\r\n]*+\{")
COMMA = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+(?=\{)")
FIRST = re.compile(rb"[ \t\r\n]*+[^ \t\r\n]")
FLAT = bytes.maketrans(b"\n\r", b"\t\t")  # white space stays legal between tokens, not in strings
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\]"]', re.DOTALL)
_BETWEEN = re.compile(rb"[ \t\r\n]*+(,?)[ \t\r\n]*+")


def last_separator(text: bytes) -> int | None:
    """The offset after the `}` of the last separator, searched from the end."""
    window = 1 << 14
    while True:
        low = max(0, len(text) - window)
        found = None
        for found in SEPARATOR.finditer(text, low):  # noqa: B007  the last one is wanted
            pass
        if found is not None:
            return found.start() + 1
        if low == 0:
            return None
        window *= 8


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows of a list rewritten as lines, and where each of them begins in the list."""

    text: bytes
    starts: Ints
    newlines: Ints  # offsets of those in the list


def as_lines(buffer: bytes, cut: int) -> Listed:
    """The rows of a list up to `cut`, one a line: a comma between `}` and `{` becomes a newline.

    Only a parse can say that no string was cut by it: a raw newline in a string is refused by
    every JSON parser, and stays refused as a tab; a cut inside a string, or between the objects of
    an inner list, leaves two lines that cannot parse.
    """
    copy = io.BytesIO(memoryview(buffer)[:cut])
    copy.seek(cut)
    copy.write(b"\n")
    with copy.getbuffer() as view:
        raw = np.frombuffer(view, dtype=np.uint8)
        newlines = np.empty(0, dtype=np.int64)
        if buffer.find(b"\n", 0, cut) >= 0:
            newlines = _places(raw[:cut], 10)
            raw[newlines] = 9
        if buffer.find(b"\r", 0, cut) >= 0:
            raw[_places(raw, 13)] = 9
        commas = _after_blanks(raw, _places(raw, 125) + 1)
        commas = commas[raw[commas] == 44]
        opens = _after_blanks(raw, commas + 1)
        between = raw[opens] == 123
        raw[commas[between]] = 10
        del raw  # the view cannot be released before
    found = FIRST.match(buffer, 0, cut)
    first = [found.end() - 1 if found else 0]
    return Listed(copy.getvalue(), np.concatenate([first, opens[between]]), newlines)


def _places(raw: NDArray[np.uint8], char: int) -> Ints:
    """Where a character stands, searched in blocks with one mask."""
    mask = np.empty(min(_BLOCK, len(raw)), dtype=np.bool_)
    found = [
        np.flatnonzero(np.equal(block, char, out=mask[: len(block)])) + start
        for start in range(0, len(raw), _BLOCK)
        for block in (raw[start : start + _BLOCK],)
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _after_blanks(raw: NDArray[np.uint8], at: Ints) -> Ints:
    """Each offset moved over blanks, if they are not too many. The last newline stops it."""
    at = at.copy()
    for _ in range(_BLANKS):
        blank = (raw[at] == 32) | (raw[at] == 9)
        if not blank.any():
            break
        at[blank] += 1
    return at


@dataclass(slots=True)
class Split:
    """Rows found by following strings and brackets, and what came after them."""

    rows: list[tuple[int, int]]  # spans of elements
    used: int  # the text before this offset is dealt with
    closed: bool = False  # the list's own `]` was reached
    flaw: tuple[int, str] | None = None  # a wrong separator


def split_rows(text: bytes, wants_row: bool, at_end: bool) -> Split:
    """Split list content exactly. `wants_row`: a comma came before (or the list just began)."""
    out = Split([], 0)
    pos = 0
    while True:
        between = _BETWEEN.match(text, pos)
        after = between.end() if between else pos
        comma = bool(between and between.group(1))
        if after >= len(text) and not at_end:
            return out
        if comma and wants_row:
            out.flaw = (text.index(b",", pos), "a comma where a row belongs")
            return out
        if text[after : after + 1] == b"]":
            out.closed, out.used = True, after + 1
            if comma:
                out.flaw = (after, "a comma before the closing `]`")
            return out
        if after >= len(text):
            return out
        if text[after : after + 1] == b",":
            out.flaw = (after, "a comma where a row belongs")
            return out
        if not comma and not wants_row:
            out.flaw = (after, "no comma between two rows")
            return out
        end = _element_end(text, after)
        if end is None:
            return out
        out.rows.append((after, end))
        pos, wants_row = end, False
        out.used = end


def _element_end(text: bytes, start: int) -> int | None:
    """The end of the element that starts here, or None if the text ends before it does."""
    if text[start] not in b"{[":
        found = re.compile(rb'"(?:[^"\\]|\\.)*+"|[^,\]\}\s]++', re.DOTALL).match(text, start)
        return found.end() if found and found.end() < len(text) else None
    depth = 0
    for mark in _MARK.finditer(text, start):
        char = mark.group()
        if char in b"{[":
            depth += 1
        elif char in b"}]":
            depth -= 1
            if depth == 0:
                return mark.end()
        elif char == b'"':
            return None  # an unterminated string swallows the rest
    return None
