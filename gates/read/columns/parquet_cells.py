"""Types the cells of parquet batches, and names those that are not fit by row and column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from trueup.gates.findings import show
from trueup.gates.read.cells import Places
from trueup.gates.read.columns.parquet_nested import Unfolder
from trueup.gates.read.columns.parquet_types import Plan, lost_in_decimal, past_int64, plan
from trueup.gates.read.extremes import Extremes, extremes
from trueup.gates.read.limits import Fault
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.rows.engine import Batch, Ints

if TYPE_CHECKING:
    from trueup.gates.read.tables import Wanted


def _empty_rows(frame: pl.DataFrame) -> pl.Series:
    """Which rows hold nothing."""
    if all(series.null_count() for series in frame.get_columns()):
        return frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return pl.repeat(False, frame.height, dtype=pl.Boolean, eager=True)


def _shown(cells: pl.Series) -> Callable[[int], str]:
    return lambda at: show(cells[at])


class ParquetCells:
    """Call `batch` for each frame in order, then `last_words` once."""

    def __init__(self, from_pandas: bool, wanted: Wanted, report: Callable[[Fault], None]) -> None:
        """`from_pandas`: the writer may have stored null where a NaN was."""
        self.rows = self.late = 0  # rows seen, of which some may be withheld
        self._pandas, self._report = from_pandas, report
        self._late_after, self._step_key = wanted.limits.late_after, wanted.step_key
        self._unfolder = Unfolder(wanted.nesting or Nesting(), wanted.limits)
        self._nullable = [re.compile(pattern) for pattern in wanted.nullable]
        self._plans: dict[str, Plan] = {}
        self._filled: set[str] = set()
        self._wide: set[str] = set()  # have held an integer past 64 bits

    @property
    def known(self) -> int:
        """Columns that held a value so far."""
        return len(self._filled)

    @property
    def never_filled(self) -> set[str]:
        """Columns that could be read and held no value so far."""
        fit = {name for name, one in self._plans.items() if one.refused is None}
        return fit - self._filled

    def batch(self, frame: pl.DataFrame, first_row: int) -> Iterator[Batch]:
        """The typed rows of a frame."""
        self.rows += frame.height
        numbers = np.arange(first_row, first_row + frame.height, dtype=np.int64)
        columns = self._columns(frame)
        steps = columns[self._step_key][1] if self._step_key in columns else None
        rows = Places(numbers, None, steps, self._report)
        withheld = _empty_rows(frame)
        rows.cells("empty_row", None, withheld, lambda _: "nulls alone")
        for flaw in self._unfolder.flaws:
            rows.cells(flaw.kind, flaw.key, flaw.rows, flaw.words)
            withheld |= flaw.rows
        typed = []
        for name, (one, raw) in columns.items():
            cells, bad = self._checked(name, one, raw, rows)
            if bad is not None:
                withheld |= bad
            if self._is_known(name, cells, numbers):
                typed.append(cells.alias(name))
        if typed:
            out = pl.DataFrame(typed)
            found: dict[str, Extremes] | None = extremes(out)
            self._not_finite(out, found or {}, rows)
            if withheld.any():
                out, numbers, found = out.filter(~withheld), numbers[~withheld.to_numpy()], None
            yield Batch(out, numbers, np.zeros(len(numbers), dtype=np.int64), found)

    @staticmethod
    def _not_finite(frame: pl.DataFrame, found: dict[str, Extremes], rows: Places) -> None:
        for name in (name for name, one in found.items() if not one.finite):
            cells = frame.get_column(name)
            odd = (~cells.is_finite()).fill_null(False)
            rows.cells("non_finite_literal", name, odd, _shown(cells))

    def _columns(self, frame: pl.DataFrame) -> dict[str, tuple[Plan, pl.Series]]:
        """The columns that can be read, nested ones unfolded, as they are stored."""
        columns: dict[str, tuple[Plan, pl.Series]] = {}
        for name, raw in self._unfolder.leaves(frame):
            known = self._plans.get(name)
            if known is None:
                known = self._plans[name] = plan(name, raw.dtype)
                self._say_once(known)
            if name in columns:
                self._report(Fault("key_clash", "two places with this name", key=name))
            elif known.refused is None:
                columns[name] = known, raw
        return columns

    def _say_once(self, one: Plan) -> None:
        fault = one.refused or one.flaw
        if fault is not None:
            self._report(Fault(fault, one.got, key=one.name or None))

    def _checked(
        self, name: str, one: Plan, raw: pl.Series, rows: Places
    ) -> tuple[pl.Series, pl.Series | None]:
        """The cells with their type, and which of their rows are withheld, if any."""
        cells = raw if one.convert is None else one.convert(raw)
        bad = None
        if one.past:
            past = past_int64(cells)
            if past.any():
                self._wide.add(name)
                rows.cells("int64", name, past, lambda at: show(cells[at]))
            if name not in self._wide:
                cells = cells.cast(pl.Int64)
        elif one.decimals:
            bad = lost_in_decimal(raw, one.decimals)
            rows.cells("lost_digits", name, bad, lambda at: show(str(raw[at]).encode()))
        may_hide = cells.dtype == pl.Float64 and self._pandas and cells.null_count()
        if may_hide and not self._may_be_null(name):
            rows.cells("maybe_nan", name, cells.is_null(), lambda _: "null")
        return cells, bad

    def _may_be_null(self, name: str) -> bool:
        return any(pattern.search(name) for pattern in self._nullable)

    def _is_known(self, name: str, cells: pl.Series, numbers: Ints) -> bool:
        """Whether the column has held a value; its first one may come late."""
        if name not in self._filled and cells.null_count() < len(cells):
            self._filled.add(name)
            row = int(numbers[cells.is_not_null().arg_max() or 0])
            if row > self._late_after:
                self.late += 1
                self._report(Fault("late_key", f"first seen in row {row}", row=row, key=name))
        return name in self._filled

    def last_words(self) -> None:
        """Say which columns never held a value."""
        for name in sorted(self.never_filled) if self.rows else ():
            if not self._may_be_null(name):
                self._report(Fault("empty_column", f"no value in {self.rows} rows", key=name))
