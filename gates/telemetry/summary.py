"""What is remembered of each column, so that other artifacts can be held against the run."""

from __future__ import annotations

from typing import Any

import polars as pl

from trueup.gates.documents.run import Column
from trueup.gates.read.extremes import Extremes, extremes


def column_summaries(
    frame: pl.DataFrame, known: dict[str, Extremes] | None = None
) -> dict[str, Column]:
    """Count, least, largest and last value of each column of a batch.

    `known`: what the reader has found out already.
    """
    if not frame.height:
        return {}
    numbers = extremes(frame) if known is None else known
    texts = _texts(frame)
    out = {}
    for name, missing in zip(frame.columns, frame.null_count().row(0), strict=True):
        ends = numbers.get(name)
        count = frame.height - missing
        if ends is None:
            out[name] = Column(count, texts=texts.get(name))
        else:
            last = _last(frame.get_column(name))
            out[name] = Column(count, ends.low, ends.high, None, last, ends.finite)
    return out


def _last(column: pl.Series) -> Any:
    """The last value that is there."""
    if column[-1] is not None:
        return column[-1]
    known = column.drop_nulls()
    return known[-1] if len(known) else None


def _texts(frame: pl.DataFrame) -> dict[str, tuple[str, str]]:
    """Least and largest text of each column of texts that holds any."""
    names = [name for name, kind in frame.schema.items() if kind == pl.String]
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        low, high = frame.get_column(name).min(), frame.get_column(name).max()
        if isinstance(low, str) and isinstance(high, str):
            found[name] = (low, high)
    return found


def joined(before: Column | None, now: Column) -> Column:
    """Two summaries of one column as one."""
    if before is None:
        return now
    lows = [one.low for one in (before, now) if one.low is not None]
    highs = [one.high for one in (before, now) if one.high is not None]
    texts = [text for one in (before, now) if one.texts is not None for text in one.texts]
    return Column(
        before.count + now.count,
        min(lows, default=None),
        max(highs, default=None),
        (min(texts), max(texts)) if texts else None,
        before.last if now.last is None else now.last,
        before.finite and now.finite,
    )
