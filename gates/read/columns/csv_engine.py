"""Turns CSV records into typed batches, by the fastest tier that can prove itself."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.gates.findings import show
from trueup.gates.read.columns import csv_proof
from trueup.gates.read.columns.csv_cells import ABSENT, group_of, is_complete_number, typed
from trueup.gates.read.columns.csv_header import Header
from trueup.gates.read.columns.csv_proof import Place
from trueup.gates.read.columns.csv_records import Record, field_offsets
from trueup.gates.read.limits import Fault
from trueup.gates.read.rows.engine import Batch
from trueup.gates.read.rows.table import DTYPES, CellFlaw, Table

if TYPE_CHECKING:
    from trueup.gates.read.tables import Wanted

_GROUPS = {"int": "number", "wide": "number", "float": "number", "str": "str", "bool": "bool"}
Cells = list[str]


class CsvEngine:
    """Holds what is learned while a file is read."""

    def __init__(self, header: Header, wanted: Wanted, report: Callable[[Fault], None]) -> None:
        """`report` takes each fault as it is found."""
        self.limits, self._live, self._step = wanted.limits, wanted.live, wanted.step_key
        self.table = Table(wanted.limits, wanted.nullable)
        self._header, self._report = header, report
        self._placed: dict[tuple[str, str | None], int] = {}

    @property
    def never_filled(self) -> list[str]:
        """Columns that have not held a value so far."""
        known = self.table.columns
        return [name for name in self._header.names if name is not None and name not in known]

    def places(self) -> list[Place]:
        """The columns of the file as they are known by now."""
        kinds = {name: one.kind for name, one in self.table.columns.items()}
        return [
            Place(name, DTYPES[kind] if name and (kind := kinds.get(name)) else None)
            for name in self._header.names
        ]

    def fast(self, text: bytes, row: int, line: int, thorough: bool) -> Batch | None:
        """Lines without quotes by tier A, and by tier B if `thorough`; None if not proven."""
        places = self.places()
        frame = csv_proof.tier_a(text, places)
        if frame is None and thorough:
            frame = csv_proof.tier_b(text, places)
        if frame is None:
            return None
        numbers = np.arange(row, row + frame.height, dtype=np.int64)
        return Batch(frame, numbers, numbers + (line - row))

    def slow(self, records: Sequence[Record], first_row: int) -> Iterator[Batch]:
        """Records one by one: each is split, and its flaws are named."""
        split: list[Cells | None] = []
        for index, record in enumerate(records):
            cells, fault = self._split(record, first_row + index)
            if fault is not None:
                self._report(fault)
            split.append(cells)
        batch = self._clean(split, records, first_row)
        if batch is not None:
            yield batch
            return
        rows, flaws = self._rows(split)
        numbers = range(first_row, first_row + len(rows))
        bad = {flaw.index for flaw in flaws if flaw.withheld}
        offered = [None if index in bad else row for index, row in enumerate(rows)]
        kept, more = self.table.type(offered, numbers)
        for flaw in sorted([*flaws, *more], key=lambda flaw: flaw.index):
            self._cell_flaw(flaw, rows[flaw.index], records[flaw.index], numbers[flaw.index])
        for frame, part in self.table.frames(offered, kept):
            yield Batch(
                frame,
                np.fromiter((numbers[i] for i in part), dtype=np.int64),
                np.fromiter((records[i].line for i in part), dtype=np.int64),
            )

    def _clean(
        self, split: Sequence[Cells | None], records: Sequence[Record], first_row: int
    ) -> Batch | None:
        """All records at once, where each could be split and no cell is odd."""
        rows = [cells for cells in split if cells is not None]
        if len(rows) < len(split) or not rows or not self.table.columns:
            return None
        text = b"\n".join(record.text for record in records)
        frame = csv_proof.tier_of_cells(rows, text, self.places())
        if frame is None:
            return None
        numbers = np.arange(first_row, first_row + len(rows), dtype=np.int64)
        return Batch(frame, numbers, np.array([r.line for r in records], dtype=np.int64))

    def _split(self, record: Record, row: int) -> tuple[Cells | None, Fault | None]:
        """The cells of a record, or what keeps it from having them."""
        kind, got, at = self._unfit(record)
        cells: Cells = []
        if kind is None:
            try:
                cells = next(csv.reader([record.text.decode("utf-8")], strict=True), [])
            except csv.Error as error:
                kind, got = "stray_quote", str(error)
        wide = len(self._header.names)
        if kind is None and record.ended and len(cells) != wide:
            kind = "short_row" if len(cells) < wide else "long_row"
            got = f"{len(cells)} cells, {wide} columns"
        if kind is None and not record.ended:
            kind, got, at = self._last(record, cells, wide)
        if kind is None:
            return cells, None
        byte = None if at is None else record.byte + at
        line = record.line + record.text.count(b"\n", 0, at or 0)
        kept = cells if kind == "no_newline" else None
        return kept, Fault(kind, got, line, byte, row)

    def _unfit(self, record: Record) -> tuple[str | None, str, int | None]:
        """What is wrong with the bytes of a record: kind, words and place."""
        text = record.text
        if record.flaw is not None:
            cut = record.flaw == "truncated"
            kind = "unfinished" if cut and self._live else record.flaw
            return kind, show(text[-40:] if cut else text[:60]), len(text) if cut else 0
        if not text.strip(b" \t\r"):
            return "blank", "a blank line", 0
        if len(text) > self.limits.max_row:
            return "row_too_long", f"{len(text)} bytes", 0
        if b"\0" in text:
            return "nul", "a NUL byte in a row", text.index(b"\0")
        if b"\r" in text and b'"' not in text:
            return "stray_cr", show(text[:60]), text.index(b"\r")
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            cut = not record.ended and self._live and error.end >= len(text) - 3
            bad = text[error.start : error.start + 4].hex(" ")
            return "unfinished" if cut else "encoding", f"bytes {bad}", error.start
        if len(text) > self.limits.max_cell:
            offsets = [*field_offsets(text), len(text) + 1]
            size, at = max((high - low - 1, low) for low, high in pairwise(offsets))
            if size > self.limits.max_cell:
                return "cell_too_long", f"{size} bytes", at
        return None, "", None

    def _last(self, record: Record, cells: Cells, wide: int) -> tuple[str, str, int]:
        """A record at the end of the file, without a newline."""
        end, got = len(record.text), f"the file ends after {show(record.text[-24:])}"
        if self._live:
            return "unfinished", got, end
        name = self._header.names[len(cells) - 1] if 0 < len(cells) <= wide else None
        column = self.table.columns.get(name or "")
        number = column is not None and _GROUPS.get(column.kind or "") == "number"
        if len(cells) != wide or (number and cells[-1] and not is_complete_number(cells[-1])):
            return "truncated", got, end
        return "no_newline", f"{got}: its last cell may be cut", end

    def _rows(
        self, split: Sequence[Cells | None]
    ) -> tuple[list[dict[str, Any] | None], list[CellFlaw]]:
        """Rows of typed values by column name, and what is wrong with the cells' texts."""
        whole = [(index, cells) for index, cells in enumerate(split) if cells is not None]
        found: dict[int, dict[str, Any]] = {index: {} for index, _ in whole}
        flaws: list[CellFlaw] = []
        for place, name in enumerate(self._header.names):
            if name is None:
                continue
            texts = [cells[place] for _, cells in whole]
            column = self.table.columns.get(name)
            known = _GROUPS.get(column.kind or "") if column is not None else None
            group = known or group_of(texts)
            digits = self.limits.max_digits
            for at, (value, flaw) in enumerate(typed(texts, group, name, digits)):
                index = whole[at][0]
                if value is not ABSENT:
                    found[index][name] = value
                if flaw is not None:
                    flaws.append(CellFlaw(index, flaw.kind, name, flaw.got, flaw.withheld))
        faulty = {flaw.index for flaw in flaws}
        for index, row in found.items():
            if not row and index not in faulty:
                flaws.append(CellFlaw(index, "empty_row", None, "empty cells alone", True))
        return [found.get(index) for index in range(len(split))], flaws

    def _cell_flaw(
        self, flaw: CellFlaw, row: dict[str, Any] | None, record: Record, number: int
    ) -> None:
        byte, line = None, record.line
        placed = self._placed.get((flaw.kind, flaw.key), 0)
        if placed < self.limits.located and flaw.key in self._header.names:
            self._placed[flaw.kind, flaw.key] = placed + 1
            at = field_offsets(record.text)[self._header.names.index(flaw.key)]
            byte, line = record.byte + at, line + record.text.count(b"\n", 0, at)
        step = (row or {}).get(self._step)
        known = step if isinstance(step, int) and not isinstance(step, bool) else None
        self._report(Fault(flaw.kind, flaw.got, line, byte, number, known, flaw.key))
