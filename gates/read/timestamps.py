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
        for name, kind in batch.frame.schema.items():
            if not any(pattern.search(name) for pattern in self._patterns):
                continue
            seen = self._seen.setdefault(name, _Seen())
            cells = batch.frame.get_column(name)
            if kind == pl.String:
                self._texts(cells, seen, batch)
            elif kind.is_numeric():
                self._order(cells, "number", seen, batch, cells)
            else:
                self._each(cells.is_not_null(), "bad_timestamp", cells, batch)

    def _texts(self, cells: pl.Series, seen: _Seen, batch: Batch) -> None:
        instants, zoned = _instants(cells)
        self._each(cells.is_not_null() & instants.is_null(), "bad_timestamp", cells, batch)
        known = instants.is_not_null()
        forms = {"naive": known & ~zoned, "aware": known & zoned}
        self._each(forms["naive"], "naive_timestamp", cells, batch)
        firsts = {form: which.arg_max() or 0 for form, which in forms.items() if which.any()}
        if not seen.mixed and len(firsts | seen.last) == 2:
            seen.mixed = True
            new = {form: at for form, at in firsts.items() if form not in seen.last} or firsts
            odd = pl.Series([at == max(new.values()) for at in range(len(cells))])
            self._each(odd, "mixed_timestamps", cells, batch)
        for form, which in forms.items():
            self._order(instants.set(~which, None), form, seen, batch, cells)

    def _order(
        self, values: pl.Series, form: str, seen: _Seen, batch: Batch, shown: pl.Series
    ) -> None:
        """Each value against the one before it."""
        before = values.shift(1).forward_fill()
        if form in seen.last:
            before = before.fill_null(seen.last[form])
        self._each((values < before).fill_null(False), "time_goes_back", shown, batch)
        known = values.drop_nulls()
        if len(known):
            seen.last[form] = known[-1]

    def _each(self, which: pl.Series, kind: str, cells: pl.Series, batch: Batch) -> None:
        """One fault for each of these rows."""
        steps = batch.frame.get_column(self._step) if self._step in batch.frame.columns else None
        for at in which.arg_true().to_list():
            step = steps[at] if steps is not None else None
            self._report(
                Fault(
                    kind, show(cells[at]), int(batch.lines[at]) or None, None, int(batch.rows[at]),
                    step if isinstance(step, int) and not isinstance(step, bool) else None,
                    cells.name,
                )
            )  # fmt: skip


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
