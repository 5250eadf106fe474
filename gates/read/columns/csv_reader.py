"""The reader of CSV: a header and rows separated by commas in, typed batches and faults out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from trueup.gates.errors import Unreadable
from trueup.gates.read.columns.csv_engine import CsvEngine
from trueup.gates.read.columns.csv_header import read_header
from trueup.gates.read.columns.csv_records import Cut, Record, cut
from trueup.gates.read.limits import Fault
from trueup.gates.read.rows.engine import Batch, merged
from trueup.gates.read.rows.opening import BOM, refuse_other_formats
from trueup.gates.read.rows.pieces import Piece
from trueup.gates.read.sources.source import Source

if TYPE_CHECKING:
    from trueup.gates.read.tables import Wanted

_SEARCH = 1 << 16


class CsvReader:
    """One pass over one source. Faults go to `report` as they are found; memory stays bounded."""

    def __init__(
        self,
        source: Source,
        name: str,
        wanted: Wanted,
        report: Callable[[Fault], None],
        progress: Callable[[int, int], None],
    ) -> None:
        """Read the header. Raises `Unreadable` if there is none."""
        self.rows = 0
        self._source, self._limits = source, wanted.limits
        self._report, self._progress = report, progress
        self._held: list[Fault] = []
        self._end = source.size - source.nul_tail
        head = source.read_at(4096, 0)
        if self._end <= len(head) and not head[: self._end].strip():
            raise Unreadable(
                "is empty" if not source.size else "holds only blanks", where=name,
                got=f"{source.size} bytes", expected="a header and rows, separated by commas",
                fix="some trainers write the file only when the run ends: did this one crash?",
            )  # fmt: skip
        refuse_other_formats(head, name)
        start = len(BOM) if head.startswith(BOM) else 0
        if start:
            self._held.append(Fault("bom", "EF BB BF", line=1, byte=0))
        header = read_header(source, start, self._end, name, wanted.limits, self._held.append)
        self._engine = CsvEngine(header, wanted, report)
        self._nullable = [re.compile(pattern) for pattern in wanted.nullable]
        self._low, self._line, self._row = header.end, 1 + header.lines, 1

    @property
    def form(self) -> str:
        """In words."""
        return "CSV"

    @property
    def columns(self) -> int:
        """Columns that held a value so far."""
        return len(self._engine.table.columns)

    @property
    def late(self) -> int:
        """Columns whose first value came late."""
        return self._engine.table.late

    @property
    def null_keys(self) -> set[str]:
        """Columns with a null written out, and those that are there and held no value so far."""
        return self._engine.table.null_keys | set(self._engine.never_filled)

    def batches(self) -> Iterator[Batch]:
        """Batches of accepted rows, in order."""
        try:
            for fault in self._held:
                self._report(fault)
            for batch in merged(self._pieces(), self._limits.joined):
                self.rows += batch.frame.height
                yield batch
        finally:
            self._source.close()
        self._progress(self._source.size, self._source.size)
        self._last_words()

    def _last_words(self) -> None:
        tail = self._source.size - self._end
        if tail:
            self._report(Fault("nul", f"{tail} NUL bytes at the end", byte=self._end))
        if self.rows:
            for name in self._engine.never_filled:
                if not any(pattern.search(name) for pattern in self._nullable):
                    self._report(Fault("empty_column", f"no value in {self.rows} rows", key=name))

    def _pieces(self) -> Iterator[Batch]:
        want = self._limits.first_piece
        while self._low < self._end:
            self._progress(self._low, self._source.size)
            raw = self._source.read_at(min(want, self._end - self._low), self._low)
            if not raw:
                return
            more = self._low + len(raw) < self._end
            lines = raw.rfind(b"\n") + 1 if more else len(raw)
            before = self._low
            if lines:
                yield from self._piece(raw[:lines], more)
            want = self._limits.piece
            if self._low == before:  # not one whole record
                if len(raw) >= self._limits.max_row:
                    yield from self._give_up(raw)
                else:
                    want = min(max(2 * len(raw), 1 << 10), self._limits.max_row)

    def _give_up(self, raw: bytes) -> Iterator[Batch]:
        """A line past the limit, or a quote that is not closed for as long."""
        if b"\n" in raw:  # the quote is open: leave its line, go on with the next
            yield from self._records(cut(raw[: raw.index(b"\n") + 1], self._low, self._line, False))
            return
        stop = self._low + len(raw)
        while stop < self._end:
            block = self._source.read_at(min(_SEARCH, self._end - stop), stop)
            at = block.find(b"\n")
            stop += at + 1 if at >= 0 else len(block)
            if at >= 0 or not block:
                break
        got = f"{stop - self._low} bytes"
        self._report(Fault("row_too_long", got, self._line, self._low, self._row))
        self._low, self._line, self._row = stop, self._line + 1, self._row + 1

    def _piece(self, raw: bytes, more: bool) -> Iterator[Batch]:
        """Whole lines; at the end of the file perhaps one that is not."""
        if b'"' not in raw:
            lines = raw.rfind(b"\n") + 1
            yield from self._plain(raw[:lines])
            raw = raw[lines:]
            if not raw:
                return
        yield from self._records(cut(raw, self._low, self._line, more))

    def _plain(self, raw: bytes) -> Iterator[Batch]:
        """Lines without quotes: at once if they can be proven, else in small groups."""
        if not raw:
            return
        if raw.count(b"\n") * max(1, self.columns) <= self._limits.max_cells:
            batch = self._engine.fast(Piece(raw, 0, True).text(), self._row, self._line, False)
            if batch is not None:
                self._advance(len(raw), batch.frame.height, batch.frame.height)
                yield batch
                return
        low = 0
        while low < len(raw):
            high = self._group_end(raw, low)
            part = raw[low:high]
            text = Piece(part, 0, True).text()
            batch = self._engine.fast(text, self._row, self._line, True)
            if batch is not None:
                self._advance(len(part), batch.frame.height, batch.frame.height)
                yield batch
            else:
                yield from self._records(cut(part, self._low, self._line, False))
            low = high

    def _group_end(self, raw: bytes, low: int) -> int:
        """The end of a group of lines of about `first_piece` bytes."""
        at = raw.rfind(b"\n", low, low + self._limits.first_piece)
        if at < 0:
            at = raw.find(b"\n", low + self._limits.first_piece)
        return len(raw) if at < 0 else at + 1

    def _records(self, found: Cut) -> Iterator[Batch]:
        """Records one by one, some thousands at a time."""
        size = self._limits.max_group
        for low in range(0, len(found.records), size):
            part: list[Record] = found.records[low : low + size]
            yield from self._engine.slow(part, self._row)
            self._row += len(part)
        self._advance(found.used, 0, found.lines)

    def _advance(self, used: int, rows: int, lines: int) -> None:
        self._low += used
        self._row += rows
        self._line += lines
