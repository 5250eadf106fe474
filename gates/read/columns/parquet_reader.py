"""The reader of parquet: row groups in, typed batches and faults out; memory stays bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from trueup.gates.errors import Unreadable
from trueup.gates.read.columns.footer import Footer, RowGroup, read_footer
from trueup.gates.read.columns.pages import flaw_of_pages
from trueup.gates.read.columns.parquet_cells import ParquetCells
from trueup.gates.read.columns.quiet import Damaged, guarded
from trueup.gates.read.limits import Fault
from trueup.gates.read.rows.engine import Batch
from trueup.gates.read.sources.source import Source

if TYPE_CHECKING:
    from trueup.gates.read.tables import Wanted

_AT_ONCE = 96 << 20  # compressed bytes of a row group that the engine may hold


class ParquetReader:
    """One pass over one file. Faults go to `report` as they are found."""

    def __init__(
        self,
        source: Source,
        path: Path,
        name: str,
        wanted: Wanted,
        report: Callable[[Fault], None],
        progress: Callable[[int, int], None],
    ) -> None:
        """Read the footer. Raises `Unreadable` if it does not fit the file."""
        self.rows = 0
        self._source, self._name, self._limits = source, name, wanted.limits
        self._report, self._progress = report, progress
        self._footer: Footer = read_footer(source, name, wanted.limits)
        self._scan = _opened(path, name, self._footer)
        self._cells = ParquetCells(self._footer.from_pandas, wanted, report)
        self._damage: str | None = None

    @property
    def form(self) -> str:
        """In words."""
        return "parquet"

    @property
    def columns(self) -> int:
        """Columns that held a value so far."""
        return self._cells.known

    @property
    def late(self) -> int:
        """Columns whose first value came late."""
        return self._cells.late

    @property
    def null_keys(self) -> set[str]:
        """Columns that are there and held no value so far."""
        return self._cells.never_filled

    def batches(self) -> Iterator[Batch]:
        """Batches in order. Raises `Unreadable` if there are rows, and none could be read."""
        try:
            for group in self._footer.groups:
                for batch in self._group(group):
                    self.rows += batch.frame.height
                    yield batch
                done = group.first_row - 1 + group.rows
                self._progress(done, max(1, self._footer.rows))
        finally:
            self._source.close()
        if self._damage is not None and not self._cells.rows:
            raise Unreadable(
                "no row could be read", where=self._name, got=self._damage,
                expected="pages that can be unpacked", fix="copy the file again, or write it anew",
            )  # fmt: skip
        self._cells.last_words()
        self._progress(1, 1)

    def _group(self, group: RowGroup) -> Iterator[Batch]:
        """The rows of one group in slices, or a fault if its pages are damaged."""
        flaws = (flaw_of_pages(self._source, chunk) for chunk in group.chunks)
        damage = next((flaw for flaw in flaws if flaw is not None), None)
        height = max(1, self._limits.max_cells // max(1, len(self._footer.names)))
        for low in range(0, group.rows, height):
            if damage is not None:
                break
            first, size = group.first_row + low, min(height, group.rows - low)
            try:
                with guarded():
                    frame = self._slice(group, first - 1, size)
            except Damaged as error:
                damage = f"rows {first} to {first + size - 1}: {error}"
                break
            if frame.height != size:
                damage = f"{frame.height} rows read where the footer says {size}"
                break
            yield from self._cells.batch(frame, first)
        if damage is not None:
            self._damage = damage
            fault = Fault("damaged_rows", damage, row=group.first_row, count=max(1, group.rows))
            self._report(fault)

    def _slice(self, group: RowGroup, offset: int, height: int) -> pl.DataFrame:
        """Some rows of all columns, read a few columns at a time where the group is large."""
        parts = [
            self._scan.select(pl.nth(places)).slice(offset, height).collect()
            for places in self._bins(group)
        ]
        return parts[0] if len(parts) == 1 else pl.concat(parts, how="horizontal")

    def _bins(self, group: RowGroup) -> Iterator[list[int]]:
        """Columns, by place, whose chunks may be held at once. (A name may be a pattern.)"""
        sizes = [0] * len(self._footer.names)
        for chunk in group.chunks:
            sizes[chunk.column] += chunk.compressed
        places: list[int] = []
        held = 0
        for place, size in enumerate(sizes):
            if places and held + size > _AT_ONCE:
                yield places
                places, held = [], 0
            places.append(place)
            held += size
        if places:
            yield places


def _opened(path: Path, name: str, footer: Footer) -> pl.LazyFrame:
    """The file as the engine sees it, which must have the columns that its footer names."""
    try:
        with guarded():
            scan = pl.scan_parquet(
                os.path.abspath(path), glob=False, hive_partitioning=False, use_statistics=False,
                cache=False,
            )  # fmt: skip
            schema = scan.collect_schema()
    except Damaged as error:
        raise Unreadable(
            "is parquet that cannot be read", where=name, got=str(error),
            expected="parquet of format version 1 or 2",
        ) from None  # fmt: skip
    if tuple(schema) != footer.names:
        raise Unreadable(
            "is read in two ways", where=name, got=f"the columns {', '.join(list(schema)[:5])}",
            expected=f"the columns that its footer names: {', '.join(footer.names[:5])}",
        )  # fmt: skip
    return scan
