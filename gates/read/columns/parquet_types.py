"""Brings the types of parquet columns to the four that rules know, exactly or with a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from trueup.gates.findings import show
from trueup.gates.read.numbers import EXACT, INT64
from trueup.gates.read.rows.table import is_unusable

_SMALL = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)
_LARGE = (pl.UInt64, pl.Int128)
_NESTED = (pl.Struct, pl.List, pl.Array)
_TEN = 22  # the largest power of ten that a double holds exactly


@dataclass(frozen=True, slots=True)
class Plan:
    """How a column is handed on. `refused`: the kind of fault for which it is left out."""

    name: str
    convert: Callable[[pl.Series], pl.Series] | None = None
    past: bool = False  # integers that may lie past 64 bits
    decimals: int = 0
    refused: str | None = None
    flaw: str | None = None  # a fault of the column, which is handed on all the same
    got: str = ""


def plan(name: str, kind: pl.DataType) -> Plan:
    """What is to be done with a column of this name and type."""
    if is_unusable(name):
        return Plan(name, refused="unusable_key", got=show(name))
    if kind in (pl.Int64, pl.Float64, pl.String, pl.Boolean):
        return Plan(name)
    if kind in _SMALL:
        return Plan(name, lambda cells: cells.cast(pl.Int64))
    if kind in (pl.Float32, pl.Float16):
        return Plan(name, lambda cells: cells.cast(pl.Float64))
    if kind in _LARGE:
        return Plan(name, lambda cells: cells.cast(pl.Int128), past=True)
    if kind in (pl.Categorical, pl.Enum):
        return Plan(name, lambda cells: cells.cast(pl.String))
    if kind == pl.Null:
        return Plan(name, lambda cells: cells.cast(pl.String))
    if isinstance(kind, pl.Decimal):
        scale = kind.scale
        if scale == 0:
            return Plan(name, lambda cells: cells.to_physical().cast(pl.Int128), past=True)
        return Plan(name, lambda cells: cells.cast(pl.Float64), decimals=scale)
    return _time_or_other(name, kind)


def _time_or_other(name: str, kind: pl.DataType) -> Plan:
    if isinstance(kind, pl.Datetime):
        digits = {"ms": 3, "us": 6, "ns": 9}[kind.time_unit]
        form = f"%Y-%m-%dT%H:%M:%S%.{digits}f"
        if kind.time_zone is None:
            got = f"a column of date-times without a zone ({kind})"
            return Plan(name, lambda c: c.dt.to_string(form), flaw="naive_timestamp", got=got)
        return Plan(name, lambda cells: cells.dt.to_string(f"{form}%:z"))
    if kind == pl.Date:
        return Plan(name, lambda cells: cells.dt.to_string("%Y-%m-%d"))
    if isinstance(kind, _NESTED) or str(kind).startswith("Map"):
        return Plan(name, refused="nested", got=f"a column of {kind}")
    return Plan(name, refused="column_type", got=f"a column of {kind}")


def past_int64(cells: pl.Series) -> pl.Series:
    """Which integers lie past 64 bits."""
    return ((cells < -INT64) | (cells >= INT64)).fill_null(False)


def lost_in_decimal(cells: pl.Series, decimals: int) -> pl.Series:
    """Which decimals a double may not be nearest to: too many digits, or too small a unit."""
    digits = cells.to_physical().cast(pl.Int128)
    if decimals > _TEN:
        return (digits != 0).fill_null(False)
    return ((digits > EXACT) | (digits < -EXACT)).fill_null(False)
