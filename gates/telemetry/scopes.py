"""The rows of a batch by what they are: configuration, steps, or all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from trueup.gates.documents.run import Column
from trueup.gates.profile.rules import Profile, Scope
from trueup.gates.read.extremes import Extremes
from trueup.gates.read.rows.engine import Batch
from trueup.gates.telemetry.summary import column_summaries


@dataclass(slots=True)
class Rows:
    """The rows of some scopes, and where each of them stands in the batch (None: as it is)."""

    frame: pl.DataFrame
    scopes: tuple[Scope, ...]
    index: pl.Series | None = None
    known: dict[str, Extremes] | None = None  # by the reader
    _columns: dict[str, Column] | None = field(default=None, repr=False)
    _filled: frozenset[str] | None = field(default=None, repr=False)

    @property
    def filled(self) -> frozenset[str]:
        """The columns that hold a value in at least one of the rows."""
        if self._filled is None:
            nulls = zip(self.frame.columns, self.frame.null_count().row(0), strict=True)
            self._filled = frozenset(name for name, n in nulls if n < self.frame.height)
        return self._filled

    @property
    def columns(self) -> dict[str, Column]:
        """Count, least and largest value of each column, computed once for all who ask."""
        if self._columns is None:
            self._columns = column_summaries(self.frame, self.known)
        return self._columns

    def indexed(self, name: str) -> pl.DataFrame:
        """The rows with their places in the batch as one more column."""
        places = pl.int_range(pl.len()) if self.index is None else self.index
        return self.frame.with_columns(places.alias(name))


def by_scope(batch: Batch, profile: Profile) -> list[Rows]:
    """Each row of a batch once for each scope it is in. Most batches hold steps alone."""
    frame, known = batch.frame, batch.extremes
    if profile.step not in frame.columns:
        return [Rows(frame, ("step", "all"), known=known)]
    steps = frame.get_column(profile.step)
    if not steps.dtype.is_numeric():
        return [Rows(frame, ("step", "all"), known=known)]
    is_config = (steps == profile.config_step).fill_null(False)
    if not is_config.any():
        return [Rows(frame, ("step", "all"), known=known)]
    if is_config.all():
        return [Rows(frame, ("config", "all"), known=known)]
    return [
        Rows(frame.filter(is_config), ("config",), is_config.arg_true()),
        Rows(frame.filter(~is_config), ("step",), (~is_config).arg_true()),
        Rows(frame, ("all",), known=known),
    ]
