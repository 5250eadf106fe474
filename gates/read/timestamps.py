"""Holds columns of date-times to one form: a date, a time and a zone, in order of time.

A date-time without a zone means another instant on each machine; with and without one cannot be
compared. Numbers in such a column are taken for seconds since 1970: only their order is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from trueup.gates.findings import show
from trueup.gates.read.cells import Places
from trueup.gates.read.limits import Fault

if TYPE_CHECKING:
    from trueup.gates.read.rows.engine import Batch

_PATTERN = (
    r"^(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.(?P<part>[0-9]{1,9}))?(?P<zone>[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?$"
)


@dataclass(slots=True)
class _Seen:
    """What is known of one column, by form: with a zone, without, a number."""

    last: dict[str, Any] = field(default_factory=dict)  # the value of the row before
    mixed: bool = False


class Timestamps:
    """Call `batch` for each batch, in order. Faults go to `report`."""

    def __init__(
        self, patterns: Iterable[str], step_key: str, report: Callable[[Fault], None]
    ) -> None:
        """`patterns` are anchored, and say which columns hold date-times."""
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._step, self._report = step_key, report
        self._seen: dict[str, _Seen] = {}

    def batch(self, batch: Batch) -> None:
        """Check the declared columns of a batch."""
        names = [
            name
            for name in batch.frame.columns
            if any(pattern.search(name) for pattern in self._patterns)
        ]
        frame = batch.frame
        steps = frame.get_column(self._step) if names and self._step in frame.columns else None
        for name in names:
            seen = self._seen.setdefault(name, _Seen())
            column = _Column(
                frame.get_column(name), Places(batch.rows, batch.lines, steps, self._report)
            )
            kind = frame.schema[name]
            if kind == pl.String:
                _texts(column, seen)
            elif kind.is_numeric():
                values = column.cells.fill_nan(None) if kind.is_float() else column.cells
                _order(column, values, "number", seen)
            else:
                column.report("bad_timestamp", column.cells.is_not_null())


@dataclass(frozen=True, slots=True)
class _Column:
    """The cells of one column in one batch."""

    cells: pl.Series
    places: Places

    def report(self, kind: str, which: pl.Series) -> None:
        """These cells have this fault."""
        self.places.cells(kind, self.cells.name, which, lambda at: show(self.cells[at]))


def _texts(column: _Column, seen: _Seen) -> None:
    cells = column.cells
    instants, zoned = _instants(cells)
    column.report("bad_timestamp", cells.is_not_null() & instants.is_null())
    known = instants.is_not_null()
    forms = {"naive": known & ~zoned, "aware": known & zoned}
    column.report("naive_timestamp", forms["naive"])
    firsts = {form: which.arg_max() or 0 for form, which in forms.items() if which.any()}
    if not seen.mixed and len(firsts | seen.last) == 2:
        seen.mixed = True
        new = {form: at for form, at in firsts.items() if form not in seen.last} or firsts
        odd = max(new.values())
        column.report("mixed_timestamps", pl.int_range(len(cells), eager=True) == odd)
    for form, which in forms.items():
        _order(column, instants.set(~which, None), form, seen)


def _order(column: _Column, values: pl.Series, form: str, seen: _Seen) -> None:
    """Each value against the one before it."""
    before = values.shift(1).forward_fill()
    if form in seen.last:
        before = before.fill_null(seen.last[form])
    column.report("time_goes_back", (values < before).fill_null(False))
    known = values.drop_nulls()
    if len(known):
        seen.last[form] = known[-1]


def _instants(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Microseconds since 1970 of each text (in its own zone if it has none), and whether it has."""
    groups = cells.str.extract_groups(_PATTERN).struct.unnest()
    clock = (groups["date"] + " " + groups["time"]).str.to_datetime(
        "%Y-%m-%d %H:%M:%S", time_unit="us", strict=False
    )
    part = groups["part"].fill_null("").str.pad_end(6, "0").str.slice(0, 6)
    zone = groups["zone"]
    digits = zone.str.replace_all("[^0-9]", "").str.pad_end(4, "0")
    hours = digits.str.slice(0, 2).cast(pl.Int64, strict=False)
    minutes = digits.str.slice(2, 2).cast(pl.Int64, strict=False)
    fits = ((hours < 24) & (minutes < 60)).fill_null(True)
    offset = ((hours * 60 + minutes) * 60_000_000).fill_null(0)
    west = zone.str.starts_with("-").fill_null(False)
    instants = clock.to_physical() + part.cast(pl.Int64) - offset.zip_with(~west, -offset)
    return instants.set(~fits, None), zone.is_not_null()
