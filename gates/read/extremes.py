"""Least and largest number of each column of a batch: found once, for the reader and the rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True, slots=True)
class Extremes:
    """Of one column of numbers; None where it holds none. NaN is no number here."""

    low: Any = None
    high: Any = None
    finite: bool = True  # no NaN and no infinity


def extremes(frame: pl.DataFrame) -> dict[str, Extremes]:
    """Of each column of numbers."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    floats = [name for name in numbers if frame.schema[name].is_float()]
    if not numbers or not frame.height:
        return {name: Extremes() for name in numbers}
    found = frame.select(
        pl.col(numbers).min().name.suffix("<"),
        pl.col(numbers).max().name.suffix(">"),
        pl.col(floats).is_nan().any().name.suffix("?"),
    ).row(0)
    size = len(numbers)
    nan = dict(zip(floats, found[2 * size :], strict=True))
    return {
        name: Extremes(low, high, not nan.get(name) and _is_finite(low) and _is_finite(high))
        for name, low, high in zip(numbers, found[:size], found[size : 2 * size], strict=True)
    }


def _is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def together(each: Sequence[dict[str, Extremes] | None]) -> dict[str, Extremes] | None:
    """Of batches with the same columns that are joined; None if one of them is not known."""
    known = [one for one in each if one is not None]
    if not known or len(known) < len(each):
        return None
    return {
        name: Extremes(
            min((one[name].low for one in known if one[name].low is not None), default=None),
            max((one[name].high for one in known if one[name].high is not None), default=None),
            all(one[name].finite for one in known),
        )
        for name in known[0]
    }
