"""Turns rows into typed batches: by the fastest tier that can prove itself, then the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trueup.gates.read.extremes import Extremes, together
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.rows.ahead import Attempt, Helper
from trueup.gates.read.rows.lines import RowReader, step_of
from trueup.gates.read.rows.pieces import RawRow
from trueup.gates.read.rows.proof import (
    Proven,
    asked_schema,
    counts,
    proven,
    tier_b,
    typed_with_nulls,
)
from trueup.gates.read.rows.scanner import Flaw, scan
from trueup.gates.read.rows.shape import Node, Row, Shown, shape_of
from trueup.gates.read.rows.table import CellFlaw, Table
from trueup.gates.read.rows.typed import TypedRows
from trueup.gates.read.rows.unfinished import cut_off, unfinished
from trueup.gates.read.rows.unfold import Schema

# Flaws of a row that is nevertheless seen to be one complete object.
_WHOLE = frozenset(
    {"duplicate_key", "non_finite_literal", "overflow", "underflow", "number_too_long",
     "python_literal", "surrogate", "stray_cr", "glued"}
)  # fmt: skip

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Typed rows, and for each its number and line, from 1; line 0 in a form without lines."""

    frame: pl.DataFrame
    rows: Ints
    lines: Ints
    extremes: dict[str, Extremes] | None = None  # where the reader has found them out


class Engine:
    """Holds what is learned while a file is read: its columns, and how often what was found."""

    def __init__(
        self,
        limits: Limits,
        nullable: Iterable[str],
        step_key: str,
        report: Callable[[Fault], None],
        nesting: Nesting | None = None,
        live: bool = False,
    ) -> None:
        """`report` takes each fault as it is found. `live`: somebody may still be writing."""
        self.limits, self.step_key, self.live = limits, step_key, live
        self.nesting = nesting or Nesting()
        self.table = Table(limits, nullable, self.nesting)
        self.recognised = 0
        self.first_fault: Fault | None = None
        self.last_fault: Fault | None = None
        self._rows = RowReader(limits, self.nesting)
        self._report = report
        self._placed: dict[tuple[str, str | None], int] = {}
        self._types: tuple[tuple[Schema, Shown], TypedRows] | None = None
        self._vain = False  # nulls were found that the profile does not allow

    def fault(self, fault: Fault) -> None:
        """Pass a fault on."""
        if self.first_fault is None:
            self.first_fault = fault
        self.last_fault = fault
        self._report(fault)

    @property
    def _root(self) -> Node | None:
        return self.table.shape.root if self.nesting.flatten else None

    def begin(self, text: bytes, helper: Helper) -> Attempt:
        """Count a piece of lines and have it parsed with what is known of its columns so far."""
        schema = self.table.schema()
        most = self.limits.max_cells // max(1, len(schema))
        if self._holds_null(text):
            most = 0
        return helper.begin(text, asked_schema(schema, self._root), most)

    def _holds_null(self, text: bytes) -> bool:
        """Whether the fastest tier cannot prove the text. Asked once a null was seen."""
        return bool(self.table.null_keys) and b"null" in text

    def fastest(self, attempt: Attempt, numbers: Ints, lines: Ints) -> Batch | None:
        """Tier A alone: everything proven at once, or nothing said."""
        found = self._tier_a(attempt)
        if found is None:
            return None
        self.recognised += found.frame.height
        return Batch(found.frame, numbers, lines, found.extremes)

    def with_nulls(self, attempt: Attempt, numbers: Ints, lines: Ints) -> Batch | None:
        """The tier for nulls alone; only for those that the profile allows."""
        schema, seen = self.table.schema(), attempt.seen
        if self._vain or b"null" not in attempt.text:
            return None
        if seen.lines * len(schema) > self.limits.max_cells:
            return None
        found = typed_with_nulls(attempt.text, seen, self._typed_rows(schema), schema)
        if found is None:
            return None
        self._vain = not all(self.table.may_be_null(name) for name in found.nulls)
        if self._vain:
            return None
        self.table.null_keys |= found.nulls
        self.recognised += found.frame.height
        return Batch(found.frame, numbers, lines, found.extremes)

    def _typed_rows(self, schema: Schema) -> TypedRows:
        """The types of the rows as they are known now, made anew when something was learned."""
        root = self._root or Node("", kind="object")
        if self._root is None:
            root.members = {
                name: Node(name, kind="value" if name in schema else None)
                for name in self.table.columns
            }
        known = (dict(schema), shape_of(root))
        if self._types is None or self._types[0] != known:
            self._types = (known, TypedRows(root, schema))
        return self._types[1]

    def _tier_a(self, attempt: Attempt) -> Proven | None:
        schema, seen = self.table.schema(), attempt.seen
        asked = asked_schema(schema, self._root)
        if asked is None or not seen.plain or not attempt.text.endswith(b"\n"):
            return None
        if seen.lines * len(schema) > self.limits.max_cells:
            return None
        if attempt.frame is None and self._holds_null(attempt.text):
            return None
        frame = attempt.parsed(asked)
        return None if frame is None else proven(frame, attempt.text, seen, schema, self._root)

    def group(
        self, text: bytes, raws: list[RawRow], first_row: int, cut_at_end: bool
    ) -> Iterator[Batch]:
        """A small group of rows, by the first tier that proves itself."""
        attempt = Attempt(text, counts(text))
        numbers, lines = _count(first_row, len(raws)), _array(raw.line for raw in raws)
        batch = self.fastest(attempt, numbers, lines) or self.with_nulls(attempt, numbers, lines)
        if batch is not None:
            yield batch
            return
        rows: Sequence[Row | None] | None = tier_b(text, self.nesting.flatten)
        if rows is not None and len(rows) == len(raws):
            self.recognised += len(rows)
        else:
            rows = self._slow(raws, first_row, cut_at_end)
        yield from self._typed(rows, raws, first_row)

    def _slow(self, raws: list[RawRow], first_row: int, cut_at_end: bool) -> list[Row | None]:
        rows: list[Row | None] = []
        for index, raw in enumerate(raws):
            row, flaws = self._rows.read(raw.text)
            rows.append(row)
            if row is not None or all(flaw.kind in _WHOLE for flaw in flaws):
                self.recognised += 1
            last = cut_at_end and index == len(raws) - 1
            if last:
                flaws = unfinished(raw.text, flaws) if self.live else cut_off(raw.text, flaws)
            for flaw in flaws:
                self._row_flaw(flaw, row, raw, first_row + index, last)
        return rows

    def _row_flaw(self, flaw: Flaw, row: Row | None, raw: RawRow, number: int, last: bool) -> None:
        kind = flaw.kind
        if kind == "cut":
            kind = "truncated" if last else "split"
        byte = None if flaw.at is None else raw.byte + flaw.at
        line = raw.line + (raw.text.count(b"\n", 0, flaw.at) if flaw.at else 0)
        step = step_of(row, raw.text, self.step_key, self.nesting)
        self.fault(Fault(kind, flaw.got, line, byte, number, step, flaw.key))

    def flawed_rest(self, raw: RawRow, number: int) -> int | None:
        """Name what stops a row from ending; the place of a flaw after which rows may follow."""
        text = raw.text[: self.limits.max_row]
        flaws = scan(text, self.limits, self.nesting).flaws
        for flaw in flaws:
            self._row_flaw(flaw, None, raw, number, True)
        broken = [flaw.at for flaw in flaws if flaw.at is not None and flaw.kind != "cut"]
        return broken[-1] if broken else None

    def _typed(
        self, rows: Sequence[Row | None], raws: list[RawRow], first_row: int
    ) -> Iterator[Batch]:
        numbers = range(first_row, first_row + len(rows))
        rows, unfit = self.table.flatten(rows)
        unfit += [_empty(index, "{}") for index, row in enumerate(rows) if row == {}]
        kept, flaws = self.table.type([row or None for row in rows], numbers)
        if not self.table.schema():
            flaws += [_empty(index, "nulls alone") for index in kept]
        for flaw in [*unfit, *flaws]:
            self._cell_flaw(flaw, rows[flaw.index], raws[flaw.index], numbers[flaw.index])
        for frame, part in self.table.frames(rows, kept):
            yield Batch(frame, _array(numbers[i] for i in part), _array(raws[i].line for i in part))

    def _cell_flaw(self, flaw: CellFlaw, row: Row | None, raw: RawRow, number: int) -> None:
        placed = self._placed.get((flaw.kind, flaw.key), 0)
        byte, line = None, raw.line
        if placed < self.limits.located:
            self._placed[flaw.kind, flaw.key] = placed + 1
            at = self._place_of(flaw, raw)
            if at is not None:
                byte = raw.byte + at
                line += raw.text.count(b"\n", 0, at)
        step = step_of(row, raw.text, self.step_key, self.nesting)
        self.fault(Fault(flaw.kind, flaw.got, line, byte, number, step, flaw.key))

    def _place_of(self, flaw: CellFlaw, raw: RawRow) -> int | None:
        """The offset of a cell in its row, or of the same flaw as the scanner sees it."""
        found = scan(raw.text, self.limits, self.nesting)
        span = found.values.get(flaw.key or "")
        if span is not None:
            return span[0]
        return next((one.at for one in found.flaws if one.kind == flaw.kind), None)


def _empty(index: int, got: str) -> CellFlaw:
    return CellFlaw(index, "empty_row", None, got, True)


def merged(batches: Iterable[Batch], cells: int) -> Iterator[Batch]:
    """Join small batches of one schema: judging a batch costs the same for few rows and many."""
    waiting: list[Batch] = []
    size = 0
    for batch in batches:
        if waiting and batch.frame.schema != waiting[0].frame.schema:
            yield _joined(waiting)
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.frame.height * batch.frame.width
        if size > cells:
            yield _joined(waiting)
            waiting, size = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        pl.concat([batch.frame for batch in batches]),
        np.concatenate([batch.rows for batch in batches]),
        np.concatenate([batch.lines for batch in batches]),
        together([batch.extremes for batch in batches]),
    )


def _array(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _count(first: int, length: int) -> Ints:
    return np.arange(first, first + length, dtype=np.int64)
