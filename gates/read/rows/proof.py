"""The fast tiers: parse a whole piece at once, and prove by counting that nothing was lost.

Tier A lets polars parse and type with an explicit schema. What polars refuses by itself is held by
a test; what it lets pass in silence (duplicate, unknown and null keys, blank lines, numbers in
string columns, digits lost, underflow) is closed by the sums below. A dropped member only ever
*adds* colons, so a sum of zero over the piece means zero in each row.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl

from trueup.gates.read.extremes import Extremes, extremes
from trueup.gates.read.numbers import EXACT, INT64, may_underflow
from trueup.gates.read.rows.lines import colons_of
from trueup.gates.read.rows.shape import Node, Row
from trueup.gates.read.rows.typed import TypedRows
from trueup.gates.read.rows.unfold import Schema, Unfolded, nested_schema, unfolded

_BLOCK = 1 << 18  # stays in the second-level cache
_NEWLINE, _COLON, _QUOTE, _OPEN, _CLOSE = 10, 58, 34, 123, 125
Asked = dict[str, Any]  # names and types to parse with


@dataclass(frozen=True, slots=True)
class Counts:
    """How often what stands in a piece of lines. `plain`: its bytes are what its strings hold."""

    lines: int
    colons: int
    quotes: int
    plain: bool


def counts(text: bytes) -> Counts:
    """Count in blocks, with one mask for all of them."""
    raw = np.frombuffer(text, dtype=np.uint8)
    mask = np.empty(min(_BLOCK, len(raw)), dtype=np.bool_)
    totals = [0, 0, 0]
    for start in range(0, len(raw), _BLOCK):
        block = raw[start : start + _BLOCK]
        part = mask[: len(block)]
        for place, byte in enumerate((_NEWLINE, _COLON, _QUOTE)):
            totals[place] += int(np.count_nonzero(np.equal(block, byte, out=part)))
    plain = not (b"\\" in text or b"\r" in text or b"\0" in text)
    return Counts(totals[0], totals[1], totals[2], plain)


def asked_schema(schema: Schema, root: Node | None) -> Asked | None:
    """What to parse with: the columns, or the nested shape they were flattened from."""
    if not schema:
        return None
    return dict(schema) if root is None else nested_schema(root, schema)


def parse(text: bytes, asked: Asked) -> pl.DataFrame | None:
    """What polars makes of a piece of lines; it refuses much, but not all that is wrong."""
    try:
        return pl.read_ndjson(io.BytesIO(text), schema=asked)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None


@dataclass(frozen=True, slots=True)
class Proven:
    """Typed rows that are the text, what was found of them, and what was null in some of them."""

    frame: pl.DataFrame
    extremes: dict[str, Extremes]
    nulls: frozenset[str] = frozenset()


def proven(
    frame: pl.DataFrame, text: bytes, seen: Counts, schema: Schema, root: Node | None
) -> Proven | None:
    """The parsed rows as plain columns, or None if it is not proven that they are the text."""
    if frame.height != seen.lines or not seen.plain:
        return None
    flat = Unfolded.of_flat(frame) if root is None else unfolded(frame, root, list(schema))
    if flat is None or not _adds_up(flat, seen, schema) or _has_empty_row(flat.frame):
        return None
    ends = extremes(flat.frame)
    if not _keeps_digits(flat.frame, ends, text, schema):
        return None
    return Proven(flat.frame, ends)


def _has_empty_row(frame: pl.DataFrame) -> bool:
    """Whether some row holds nothing: `{}` is written with no colon that could be missed."""
    if any(not series.null_count() for series in frame.get_columns()):
        return False
    return bool(frame.select(pl.all_horizontal(pl.all().is_null()).any()).item())


def tier_a(text: bytes, schema: Schema, root: Node | None = None) -> pl.DataFrame | None:
    """The typed rows of a piece of lines, or None if it is not proven that they are the text.

    With `root`, the places of nested rows, objects and lists become columns.
    """
    asked = asked_schema(schema, root)
    seen = counts(text)
    if asked is None or not seen.plain or not text.endswith(b"\n"):
        return None
    frame = parse(text, asked)
    found = None if frame is None else proven(frame, text, seen, schema, root)
    return None if found is None else found.frame


def _adds_up(flat: Unfolded, seen: Counts, schema: Schema) -> bool:
    told = _strings(flat.frame, [key for key, kind in schema.items() if kind is pl.String])
    if told is None:
        return False
    in_strings, string_cells = told
    if seen.colons - in_strings != flat.colons:
        return False
    return seen.quotes == 2 * flat.members + 2 * string_cells


def _keeps_digits(
    frame: pl.DataFrame, ends: dict[str, Extremes], text: bytes, schema: Schema
) -> bool:
    """No literal lost digits (past 2^53 a whole number may), none became 0.

    Each integer past 64 bits is to be named, so none of them passes here either.
    """
    around = []  # columns that may hold a 0.0
    for name, one in ends.items():
        if one.low is None:
            continue
        if schema[name] is pl.Int128 and not -INT64 <= one.low <= one.high < INT64:
            return False
        if schema[name] is pl.Float64:
            if not -EXACT < one.low <= one.high < EXACT:
                return False
            if one.low <= 0 <= one.high:
                around.append(name)
    if not around or not may_underflow(text):
        return True
    return not frame.select(pl.any_horizontal((pl.col(around) == 0.0).any())).item()


def _strings(frame: pl.DataFrame, strings: list[str]) -> tuple[int, int] | None:
    """Colons inside string cells, and the number of such cells; None if one holds a quote.

    Without escapes no string holds a quote: a cell with one is a list or an object, as text.
    """
    if not strings:
        return 0, 0
    cells = pl.col(strings)
    colons, count, quoted = frame.select(
        pl.sum_horizontal(cells.str.count_matches(":", literal=True).sum()).alias("colons"),
        pl.sum_horizontal(cells.is_not_null().sum()).alias("cells"),
        pl.any_horizontal(cells.str.contains('"', literal=True).any()).alias("quoted"),
    ).row(0)
    return None if quoted else (int(colons), int(count))


def _one_per_line(text: bytes, rows: int) -> bool:
    """Whether each newline stands between `}` and `{`: one flat object a line."""
    raw = np.frombuffer(text, dtype=np.uint8)
    at = np.flatnonzero(raw == _NEWLINE)
    if rows != len(at) or rows == 0 or raw[0] != _OPEN:
        return False
    return bool((raw[at - 1] == _CLOSE).all()) and bool((raw[at[:-1] + 1] == _OPEN).all())


_DECODER = msgspec.json.Decoder()


def tier_b(text: bytes, nested: bool = False) -> list[Row] | None:
    """The untyped rows of a piece of lines, or None if it is not proven that they are the text."""
    if not text.endswith(b"\n") or b"\\u" in text or b"\r" in text:
        return None  # other escapes neither add nor hide a colon
    try:
        rows = _DECODER.decode_lines(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if not _one_per_line(text, len(rows)) or may_underflow(text):
        return None
    colons = 0
    for row in rows:
        inside = colons_of(row, nested) if type(row) is dict else None
        if inside is None:
            return None
        colons += inside
    return rows if colons == counts(text).colons else None


def typed_with_nulls(text: bytes, seen: Counts, rows: TypedRows, schema: Schema) -> Proven | None:
    """The typed rows of a piece of lines in which nulls stand, or None if that is not proven."""
    if not text.endswith(b"\n") or b"\\u" in text or b"\r" in text:
        return None
    found = rows.decode(text)
    if found is None or found[0] != seen.lines or not _one_per_line(text, seen.lines):
        return None
    typed = found[1]
    if typed.columns.keys() != schema.keys():
        return None
    frame = pl.DataFrame([typed.columns[name] for name in schema])
    strings = [name for name, kind in schema.items() if kind is pl.String]
    in_strings = (
        frame.select(
            pl.sum_horizontal(pl.col(strings).str.count_matches(":", literal=True).sum())
        ).item()
        if strings
        else 0
    )
    if seen.colons != typed.colons + in_strings or _has_empty_row(frame):
        return None
    ends = extremes(frame)
    if not _keeps_digits(frame, ends, text, schema):
        return None
    return Proven(frame, ends, frozenset(typed.nulls))
