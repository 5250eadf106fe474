"""What is remembered of each column, so that other artifacts can be held against the run."""

from __future__ import annotations

from typing import Any

import polars as pl

from trueup.gates.documents.run import Column


def column_summaries(frame: pl.DataFrame) -> dict[str, Column]:
    """Count, least, largest and last value of each column of a batch."""
    if not frame.height:
        return {}
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    texts = _texts(frame)
    counts = frame.select(pl.all().count()).row(0)
    extremes = frame.select(
        *(pl.col(name).min().alias(f"{i}l") for i, name in enumerate(numbers)),
        *(pl.col(name).max().alias(f"{i}h") for i, name in enumerate(numbers)),
    )
    lows = extremes.row(0) if numbers else ()
    floats = [name for name in numbers if frame.schema[name].is_float()]
    finite = (
        frame.select(pl.col(name).is_finite().all() for name in floats).row(0) if floats else ()
    )
    odd = {name for name, fine in zip(floats, finite, strict=True) if not fine}
    ranges = {name: (lows[i], lows[len(numbers) + i]) for i, name in enumerate(numbers)}
    ends = {name: _last(frame.get_column(name)) for name in numbers}
    return {
        name: Column(
            count, *ranges.get(name, (None, None)), texts.get(name), ends.get(name), name not in odd
        )
        for name, count in zip(frame.columns, counts, strict=True)
    }


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
