"""The fast tiers: polars reads a whole piece, and counts over its bytes prove that it read right.

polars by itself takes short rows, blank lines, `+3`, `03`, `1.`, `.5`, ` 3.5`, nan and 1e999
without a word. Tier A closes that by sums over the bytes and over neighbouring bytes; tier B reads
every cell as text and holds it to the grammar of numbers. What neither can prove is read row by
row.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from trueup.gates.read.columns.csv_cells import BOOLEANS, INTEGER, NUMBER
from trueup.gates.read.numbers import EXACT, may_underflow

_BLOCK = 1 << 18  # stays in the second-level cache
_ZERO, _NEWLINE, _COMMA, _DOT, _PLUS, _MINUS = 48, 10, 44, 46, 43, 45
Kind = type[pl.DataType]


@dataclass(frozen=True, slots=True)
class Place:
    """One column of the file: its name and type; no type while it has never held a value."""

    name: str | None  # None: left out
    kind: Kind | None


def _counts(raw: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Newlines, commas, and bytes up to a blank (newlines among them)."""
    totals = [0, 0, 0]
    for start in range(0, len(raw), _BLOCK):
        block = raw[start : start + _BLOCK]
        totals[0] += int(np.count_nonzero(block == _NEWLINE))
        totals[1] += int(np.count_nonzero(block == _COMMA))
        totals[2] += int(np.count_nonzero(block <= 32))
    return totals[0], totals[1], totals[2]


def _plain_numbers(raw: NDArray[np.uint8]) -> bool:
    """Whether each point stands between digits, each plus after an e, and no number begins in 0d.

    `raw` begins with a newline of its own and ends with one, so that every byte has neighbours.
    """
    for start in range(1, len(raw) - 1, _BLOCK):
        around = raw[start - 1 : start + _BLOCK + 1]
        here = around[1:-1]
        digit = (around - _ZERO) < 10
        if np.any((here == _DOT) & ~(digit[:-2] & digit[2:])):
            return False
        zeros = (here == _ZERO) & digit[2:]
        ends = (around == _NEWLINE) | (around == _COMMA)
        if np.any(zeros & ends[:-2]):
            return False
        for at in np.flatnonzero(zeros & (around[:-2] == _MINUS)).tolist():
            if raw[start + at - 2] in (_NEWLINE, _COMMA):
                return False
        for at in np.flatnonzero(here == _PLUS).tolist():
            if around[at] not in b"eE":
                return False
    return True


def _read(text: bytes, kinds: Sequence[Kind]) -> pl.DataFrame | None:
    """Integers past 64 bits are refused, also where the column has held one: each is reported."""
    narrow = [pl.Int64 if kind is pl.Int128 else kind for kind in kinds]
    schema = {f"c{index}": kind for index, kind in enumerate(narrow)}
    try:
        return pl.read_csv(
            io.BytesIO(text), has_header=False, schema=schema, quote_char=None, infer_schema=False,
            extra_columns="raise", missing_columns="raise",
        )  # fmt: skip
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None


def _shaped(frame: pl.DataFrame, newlines: int, commas: int) -> bool:
    """One row a line, each with all its commas. (Rows with more are refused by the engine.)"""
    whole = frame.height == newlines and commas == newlines * (frame.width - 1)
    if frame.width == 1 and whole:  # a blank line has as many commas as a row
        return bool(frame.null_count().row(0)[0] == 0)
    return whole


def _selected(frame: pl.DataFrame, places: Sequence[Place]) -> pl.DataFrame | None:
    """The known columns by name. None if there is none, if an unknown one has a value, or if a
    row holds nothing."""
    unknown = [i for i, one in enumerate(places) if one.name is not None and one.kind is None]
    nulls = frame.null_count().row(0)
    if any(nulls[index] != frame.height for index in unknown):
        return None
    known = [(i, one) for i, one in enumerate(places) if one.name is not None and one.kind]
    if not known:
        return None
    series = [frame.to_series(index).alias(one.name or "") for index, one in known]
    out = pl.DataFrame(series, height=frame.height)
    if all(one.null_count() for one in series):
        empty = out.select(pl.all_horizontal(pl.all().is_null()).any()).item()
        return None if empty else out
    return out


def _widened(frame: pl.DataFrame, places: Sequence[Place]) -> pl.DataFrame:
    """With the columns that have held an integer past 64 bits."""
    return frame.with_columns(
        pl.col(one.name).cast(pl.Int128) for one in places if one.name and one.kind is pl.Int128
    )


def _exact(frame: pl.DataFrame, text: bytes) -> bool:
    """Whether floats are finite, lost no digit and did not become 0."""
    floats = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    if not floats:
        return True
    columns = pl.col(floats)
    largest, zero, finite = frame.select(
        pl.max_horizontal(columns.abs().max()).alias("largest"),
        pl.any_horizontal((columns == 0.0).any()).alias("zero"),
        pl.all_horizontal(columns.is_finite().all()).alias("finite"),
    ).row(0)
    small = largest is None or largest < EXACT
    return bool(finite) and small and not (zero and may_underflow(text))


def tier_a(text: bytes, places: Sequence[Place]) -> pl.DataFrame | None:
    """Typed rows of a piece of lines without quotes, or None if it is not proven that they are."""
    if b'"' in text:
        return None
    raw = np.frombuffer(b"\n" + text, dtype=np.uint8)
    newlines, commas, blanks = _counts(raw[1:])
    if blanks != newlines or not text.endswith(b"\n") or not _plain_numbers(raw):
        return None
    frame = _read(text, [one.kind or pl.String for one in places])
    if frame is None or not _shaped(frame, newlines, commas):
        return None
    typed = _selected(frame, places)
    exact = typed is not None and _exact(typed, text)
    return _widened(typed, places) if typed is not None and exact else None


def tier_b(text: bytes, places: Sequence[Place]) -> pl.DataFrame | None:
    """The same with every cell read as text first; takes any text in columns of text."""
    if b'"' in text or b"\r" in text or b"\0" in text or not text.endswith(b"\n"):
        return None
    newlines, commas, _ = _counts(np.frombuffer(text, dtype=np.uint8))
    frame = _read(text, [pl.String] * len(places))
    if frame is None or not _shaped(frame, newlines, commas):
        return None
    return _typed(frame, text, places)


def tier_of_cells(
    rows: Sequence[Sequence[str]], text: bytes, places: Sequence[Place]
) -> pl.DataFrame | None:
    """The same of records that are split already, as those with quotes are."""
    columns = [
        pl.Series(f"c{i}", cells, dtype=pl.String)
        for i, cells in enumerate(zip(*rows, strict=True))
    ]
    frame = pl.DataFrame(columns).select(pl.when(pl.all() != "").then(pl.all()))
    return _typed(frame, text, places)


def _typed(frame: pl.DataFrame, text: bytes, places: Sequence[Place]) -> pl.DataFrame | None:
    """Typed columns out of text ones, if every cell is written as the type of its column is."""
    texts = _selected(frame, places)
    if texts is None:
        return None
    kinds = {one.name: one.kind for one in places if one.name is not None and one.kind}
    tests = [_grammar(name, kind) for name, kind in kinds.items() if kind is not pl.String]
    if tests and not texts.select(pl.all_horizontal(tests).all()).item():
        return None
    try:
        typed = texts.select(_cast(name, kind) for name, kind in kinds.items())
    except pl.exceptions.PolarsError:
        return None
    return _widened(typed, places) if _exact(typed, text) else None


def _grammar(name: str, kind: Kind) -> pl.Expr:
    """Whether all cells of a column are written as its type is; absent ones are."""
    if kind is pl.Boolean:
        return pl.col(name).str.to_lowercase().is_in(list(BOOLEANS)).all()
    pattern = NUMBER if kind is pl.Float64 else INTEGER
    return pl.col(name).str.contains(f"^(?:{pattern})$").all()


def _cast(name: str, kind: Kind) -> pl.Expr:
    if kind is pl.Boolean:
        return pl.col(name).str.to_lowercase() == "true"
    return pl.col(name).cast(pl.Int64 if kind is pl.Int128 else kind, strict=True)
