"""Says of rows that do not hold where they stand and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from trueup.gates.collector import EXAMPLES
from trueup.gates.findings import Example, Where, show
from trueup.gates.read.rows.engine import Batch
from trueup.gates.telemetry.probe import INTEGERS, Probe
from trueup.gates.telemetry.scopes import Rows

_INDEX, _NULL = "\0index", "\0null"  # no key has such a name


@dataclass(frozen=True, slots=True)
class Failed:
    """The rows at which one probe does not hold."""

    probe: Probe
    rows: pl.DataFrame

    @property
    def unknown(self) -> bool:
        """Whether it is undetermined in all of them."""
        return bool(self.rows.get_column(_NULL).all())

    def examples(self, batch: Batch, step_key: str) -> list[Example]:
        """The first of them."""
        return [
            self._example(row, batch, step_key)
            for row in self.rows.head(EXAMPLES).iter_rows(named=True)
        ]

    def _example(self, row: dict[str, Any], batch: Batch, step_key: str) -> Example:
        at, step = row[_INDEX], row.get(step_key)
        where = Where(
            line=int(batch.lines[at]) or None,
            row=int(batch.rows[at]),
            step=step if isinstance(step, int) and not isinstance(step, bool) else None,
            key=self.probe.key,
        )
        got = _got(self.probe, row)
        return Example(where, f"undetermined: {got}" if row[_NULL] else got)

    def steps(self, step_key: str) -> tuple[int, int] | None:
        """The first and last step of them."""
        if step_key not in self.rows.columns or self.rows.schema[step_key] not in INTEGERS:
            return None
        steps = self.rows.get_column(step_key)
        low, high = steps.min(), steps.max()
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def failures(probes: list[Probe], rows: Rows) -> Iterator[Failed]:
    """The probes that do not hold, each with its rows."""
    frame = rows.indexed(_INDEX)
    bad = [~probe.ok.fill_null(False) for probe in probes]
    each_row = pl.int_range(pl.len()) >= 0  # a condition without a column is one value, not many
    counts = frame.select((each_row & one).sum().alias(str(i)) for i, one in enumerate(bad)).row(0)
    for probe, one, count in zip(probes, bad, counts, strict=True):
        if count:
            yield Failed(
                probe, frame.with_columns(probe.ok.is_null().alias(_NULL)).filter(each_row & one)
            )


def _got(probe: Probe, row: dict[str, Any]) -> str:
    if not probe.shown:
        return "absent"
    if len(probe.shown) == 1:
        value = row[probe.shown[0]]
        return "absent" if value is None else show(value)
    common = probe.key[: probe.key.rfind(".") + 1]
    return ", ".join(f"{name.removeprefix(common)} {show(row[name])}" for name in probe.shown)
