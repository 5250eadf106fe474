"""A top-level JSON list of rows, read in pieces: cut by guess and proven by the parse, or split."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from trueup.gates.read.limits import Fault
from trueup.gates.read.rows.engine import Batch, Engine, Ints
from trueup.gates.read.rows.opening import Opened
from trueup.gates.read.rows.pieces import (
    FLAT,
    SEPARATOR,
    RawRow,
    Split,
    as_lines,
    last_separator,
    separators,
    split_rows,
)
from trueup.gates.read.sources.source import Source

_BLANK = b" \t\r\n"


class ListReader:
    """Holds a buffer that always begins at a row, a comma or the closing bracket."""

    def __init__(
        self, source: Source, opened: Opened, engine: Engine, progress: Callable[[int, int], None]
    ) -> None:
        """Start after the opening bracket."""
        self.closed = False
        self._source, self._engine, self._limits = source, engine, engine.limits
        self._progress, self._size = progress, opened.size
        self._end = opened.size - opened.nul_tail
        self._buffer = b""
        self._read_to = opened.start
        self._line, self._row = 1, 1
        self._wants_row = True
        self._again = False  # a wrong separator was stepped over: rows may follow it
        self._bracket()

    def _bracket(self) -> None:
        head = b""
        while b"[" not in head:
            head += self._more(1 << 16)
        at = head.index(b"[") + 1
        self._line += head.count(b"\n", 0, at)
        self._buffer = head[at:]

    def _more(self, size: int) -> bytes:
        data = self._source.read_at(min(size, self._end - self._read_to), self._read_to)
        if not data:
            self._end = self._read_to
        self._read_to += len(data)
        return data

    @property
    def _base(self) -> int:
        """The file offset of the buffer's first byte."""
        return self._read_to - len(self._buffer)

    def batches(self) -> Iterator[Batch]:
        """Batches of rows until the closing bracket, or until the text gives out."""
        size = self._limits.first_piece
        while not self.closed:
            self._buffer += self._more(size)
            size = self._limits.piece
            self._progress(self._base, self._size)
            at_end = self._read_to >= self._end
            self._take_comma()
            batch = self._guess(at_end)
            if batch is not None:
                yield batch
                continue
            yield from self._exactly(at_end)
            if at_end and not self.closed and not self._again and not self._resume():
                return
        self._after()

    def _advance(self, used: int, rows: int) -> None:
        self._line += self._buffer.count(b"\n", 0, used)
        self._row += rows
        self._buffer = self._buffer[used:]

    def _take_comma(self) -> None:
        """Between two rows: step over the comma, if it is there in full."""
        rest = self._buffer.lstrip(_BLANK)
        if not self._wants_row and rest[:1] == b"," and rest[1:].lstrip(_BLANK)[:1] == b"{":
            self._advance(len(self._buffer) - len(rest[1:].lstrip(_BLANK)), 0)
            self._wants_row = True

    def _guess(self, at_end: bool) -> Batch | None:
        """Cut at the last thing that looks like a separator, if a parse proves it was one."""
        if not self._wants_row:
            return None
        buffer = self._buffer
        if at_end:
            bracket = len(buffer.rstrip(_BLANK))
            if buffer[bracket - 1 : bracket] != b"]":
                return None
            body, used = buffer[: bracket - 1], bracket
        else:
            cut = last_separator(buffer)
            if cut is None:
                return None
            found = SEPARATOR.match(buffer, cut - 1)
            body, used = buffer[:cut], found.end() - 1 if found else cut
        if not body.strip(_BLANK):
            return None
        text = as_lines(body)
        batch = self._engine.fastest(text, *self._places(body, text.count(b"\n")))
        if batch is not None:
            self.closed = at_end
            self._advance(used, batch.frame.height)
        return batch

    def _places(self, body: bytes, rows: int) -> tuple[Ints, Ints]:
        numbers = np.arange(self._row, self._row + rows, dtype=np.int64)
        if b"\n" not in body:
            return numbers, np.full(rows, self._line, dtype=np.int64)
        newlines = np.flatnonzero(np.frombuffer(body, dtype=np.uint8) == 10)
        starts = np.array(separators(body), dtype=np.int64)
        return numbers, np.searchsorted(newlines, starts).astype(np.int64) + self._line

    def _exactly(self, at_end: bool) -> Iterator[Batch]:
        """Follow strings and brackets; slower, and right for every text."""
        split = split_rows(self._buffer, self._wants_row, at_end)
        buffer, base, line, at = self._buffer, self._base, self._line, 0
        row = self._row
        for group in _grouped(split.rows, self._limits.first_piece):
            raws = []
            for low, high in group:
                line += buffer.count(b"\n", at, low)
                raws.append(RawRow(buffer[low:high], base + low, line))
                at = low
            text = b"".join(raw.text.translate(FLAT) + b"\n" for raw in raws)
            yield from self._engine.group(text, raws, row, False)
            row += len(raws)
        self._settle(split)

    def _settle(self, split: Split) -> None:
        used, self._again = split.used, False
        if split.rows:
            self._wants_row = False
        if split.flaw is not None:
            at, got = split.flaw
            line = self._line + self._buffer.count(b"\n", 0, at)
            row = self._row + len(split.rows)
            self._engine.fault(Fault("list_structure", got, line, self._base + at, row))
            if not split.closed:
                used = at + (self._buffer[at : at + 1] == b",")
                self._wants_row = self._again = True
        self.closed = split.closed
        self._advance(used, len(split.rows))
        stuck = not split.rows and split.flaw is None and not split.closed
        if stuck and len(self._buffer) > self._limits.max_row:
            self._resume()

    def _resume(self) -> bool:
        """A row does not end. Say why, and go on at the next thing that looks like a row."""
        rest = self._buffer.lstrip(_BLANK + (b"" if self._wants_row else b","))
        if not rest:
            got = "the file ends before the list does"
            line = self._line + self._buffer.count(b"\n")
            self._engine.fault(Fault("truncated", got, line, self._end, self._row))
            return False
        skipped = len(self._buffer) - len(rest)
        self._advance(skipped, 0)
        raw = RawRow(rest, self._base, self._line)
        flaw_at = self._engine.flawed_rest(raw, self._row)
        if flaw_at is None and len(rest) > self._limits.max_row:
            got = f"more than {self._limits.max_row} bytes"
            self._engine.fault(Fault("row_too_long", got, self._line, self._base, self._row))
            flaw_at = self._limits.max_row
        found = None if flaw_at is None else SEPARATOR.search(rest, flaw_at)
        if found is None:
            self._advance(len(rest), 1)
            return False
        self._advance(found.end() - 1, 1)
        self._wants_row = True
        return True

    def _after(self) -> None:
        """Only blanks may follow the list."""
        while self._buffer or self._read_to < self._end:
            rest = self._buffer.lstrip(_BLANK)
            if rest:
                at = self._base + len(self._buffer) - len(rest)
                got = "text after the list"
                self._engine.fault(Fault("list_structure", got, self._line, at))
                return
            self._buffer = self._more(1 << 16)


def _grouped(spans: list[tuple[int, int]], size: int) -> Iterator[list[tuple[int, int]]]:
    group: list[tuple[int, int]] = []
    for span in spans:
        if group and span[1] - group[0][0] > size:
            yield group
            group = []
        group.append(span)
    if group:
        yield group
