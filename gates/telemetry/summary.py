"""What is remembered of each column, so that other artifacts can be held against the run."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from trueup.gates.documents.run import Column


def column_summaries(frame: pl.DataFrame) -> dict[str, Column]:
    """Count, least, largest and last value of each column of a batch."""
    if not frame.height:
        return {}
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    floats = [name for name in numbers if frame.schema[name].is_float()]
    texts = _texts(frame)
    nulls = frame.null_count().row(0)
    told = frame.select(
        pl.col(numbers).min().name.suffix("<"),
        pl.col(numbers).max().name.suffix(">"),
        pl.col(floats).is_nan().any().name.suffix("?"),
    )
    found = told.row(0) if numbers else ()
    lows, highs = found[: len(numbers)], found[len(numbers) : 2 * len(numbers)]
    ranges = dict(zip(numbers, zip(lows, highs, strict=True), strict=True))
    nan = dict(zip(floats, found[2 * len(numbers) :], strict=True))
    out = {}
    for name, missing in zip(frame.columns, nulls, strict=True):
        low, high = ranges.get(name, (None, None))
        out[name] = Column(
            frame.height - missing, low, high, texts.get(name),
            _last(frame.get_column(name)) if name in ranges else None,
            not nan.get(name) and _is_finite(low) and _is_finite(high),
        )  # fmt: skip
    return out


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


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
