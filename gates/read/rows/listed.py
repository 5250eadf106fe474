"""A top-level JSON list of rows, read in pieces: cut by guess and proven by the parse, or split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from trueup.gates.read.limits import Fault
from trueup.gates.read.rows.ahead import Attempt, Helper
from trueup.gates.read.rows.engine import Batch, Engine
from trueup.gates.read.rows.opening import Opened
from trueup.gates.read.rows.pieces import (
    COMMA,
    FIRST,
    FLAT,
    SEPARATOR,
    Ints,
    RawRow,
    Split,
    as_lines,
    last_separator,
    split_rows,
)
from trueup.gates.read.sources.source import Source

_BLANK = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class _Guess:
    """Rows cut from the buffer before it is known that the cut is right."""

    attempt: Attempt
    numbers: Ints
    lines: Ints
    used: int
    before: bytes  # the buffer, and line and row where it began
    line: int
    row: int


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
        self._size_wanted = engine.limits.first_piece
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

    @property
    def _at_end(self) -> bool:
        return self._read_to >= self._end

    def batches(self) -> Iterator[Batch]:
        """Batches of rows until the closing bracket, or until the text gives out."""
        with Helper() as helper:
            yield from self._rows(helper)
        if self.closed:
            self._after()

    def _rows(self, helper: Helper) -> Iterator[Batch]:
        """One guess is parsed while the next is cut; a wrong one is undone with what followed."""
        guess: _Guess | None = None
        while guess is not None or not self.closed:
            tried = not self.closed and (guess is None or guess.attempt.frame is not None)
            following = self._next(helper) if tried else None
            if guess is not None:
                said = guess.attempt, guess.numbers, guess.lines
                batch = self._engine.fastest(*said) or self._engine.with_nulls(*said)
                if batch is not None:
                    yield batch
                else:
                    self._undo(guess, following)
                    tried, following = True, None
            if tried and following is None:
                yield from self._exactly(self._at_end)
                if self._at_end and not self.closed and not self._again and not self._resume():
                    return
            guess = following

    def _next(self, helper: Helper) -> _Guess | None:
        """Read on, and cut what was read at a guess that is taken for right."""
        self._buffer += self._more(self._size_wanted)
        self._size_wanted = self._limits.piece
        self._progress(self._base, self._size)
        self._take_comma()
        return self._guess(helper) if self._wants_row else None

    def _advance(self, used: int, rows: int) -> None:
        self._line += self._buffer.count(b"\n", 0, used)
        self._row += rows
        self._buffer = self._buffer[used:]

    def _take_comma(self) -> None:
        """Between two rows: step over the comma, if it is there in full."""
        if self._wants_row:
            return
        comma = COMMA.match(self._buffer)
        if comma is not None:
            self._advance(comma.end(), 0)
            self._wants_row = True

    def _guess(self, helper: Helper) -> _Guess | None:
        """Cut at the last thing that looks like a separator; only a parse can prove that it was."""
        buffer = self._buffer
        if self._at_end:
            used = len(buffer.rstrip(_BLANK))
            cut = used - 1 if buffer[used - 1 : used] == b"]" else None
        else:
            cut = last_separator(buffer)
            found = None if cut is None else SEPARATOR.match(buffer, cut - 1)
            used = found.end() - 1 if found else cut or 0
        most = 2 * max(self._limits.piece, self._limits.max_row)
        if cut is None or cut > most or FIRST.match(buffer, 0, cut) is None:
            return None
        listed = as_lines(buffer, cut)
        rows = len(listed.starts)
        lines = np.searchsorted(listed.newlines, listed.starts).astype(np.int64) + self._line
        numbers = np.arange(self._row, self._row + rows, dtype=np.int64)
        attempt = self._engine.begin(listed.text, helper)
        guess = _Guess(attempt, numbers, lines, used, buffer, self._line, self._row)
        self._line += len(listed.newlines) + buffer.count(b"\n", cut, used)
        self._row += rows
        self._buffer = buffer[used:]
        self.closed = self._at_end
        return guess

    def _undo(self, guess: _Guess, following: _Guess | None) -> None:
        """Stand again where the guess was made, with all that was read since."""
        rest = self._buffer if following is None else following.before
        self._buffer = guess.before[: guess.used] + rest
        self._line, self._row = guess.line, guess.row
        self.closed = False

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
