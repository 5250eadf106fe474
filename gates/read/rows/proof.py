"""The fast tiers: parse a whole piece at once, and prove by counting that nothing was lost.

Tier A lets polars parse and type with an explicit schema. What polars refuses by itself is held by
a test; what it lets pass in silence (duplicate, unknown and null keys, blank lines, numbers in
string columns, digits lost, underflow) is closed by the sums below. A dropped member only ever
*adds* colons, so a sum of zero over the piece means zero in each row.
"""

from __future__ import annotations

import io

import msgspec
import numpy as np
import polars as pl

from trueup.gates.read.numbers import EXACT, INT64, may_underflow
from trueup.gates.read.rows.lines import colons_of
from trueup.gates.read.rows.shape import Node, Row
from trueup.gates.read.rows.unfold import Schema, Unfolded, nested_schema, unfolded

_BLOCK = 1 << 18  # stays in the second-level cache
_NEWLINE, _COLON, _QUOTE, _OPEN, _CLOSE = 10, 58, 34, 123, 125


def _counts(text: bytes) -> tuple[int, int, int]:
    """How many newlines, colons and quotes."""
    raw = np.frombuffer(text, dtype=np.uint8)
    mask = np.empty(min(_BLOCK, len(raw)), dtype=np.bool_)
    totals = [0, 0, 0]
    for start in range(0, len(raw), _BLOCK):
        block = raw[start : start + _BLOCK]
        part = mask[: len(block)]
        for place, byte in enumerate((_NEWLINE, _COLON, _QUOTE)):
            totals[place] += int(np.count_nonzero(np.equal(block, byte, out=part)))
    return totals[0], totals[1], totals[2]


def _odd(text: bytes) -> bool:
    """Whether what is in the strings may differ from what is in the bytes."""
    return b"\\" in text or b"\r" in text or b"\0" in text


def tier_a(text: bytes, schema: Schema, root: Node | None = None) -> pl.DataFrame | None:
    """The typed rows of a piece of lines, or None if it is not proven that they are the text.

    With `root`, the places of nested rows, objects and lists become columns.
    """
    if not schema or not text.endswith(b"\n") or _odd(text):
        return None
    asked = schema if root is None else nested_schema(root, schema)
    if asked is None:
        return None
    try:
        frame = pl.read_ndjson(io.BytesIO(text), schema=asked)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    flat = Unfolded.of_flat(frame) if root is None else unfolded(frame, root, list(schema))
    return flat.frame if flat is not None and _is_proven(flat, text, schema) else None


def _is_proven(flat: Unfolded, text: bytes, schema: Schema) -> bool:
    frame = flat.frame
    lines, colons, quotes = _counts(text)
    strings = [key for key, kind in schema.items() if kind is pl.String]
    floats = [key for key, kind in schema.items() if kind is pl.Float64]
    if frame.height != lines:
        return False
    told = _strings(frame, strings)
    if told is None:
        return False
    in_strings, string_cells = told
    if colons - in_strings != flat.colons or quotes != 2 * flat.members + 2 * string_cells:
        return False
    wide = [key for key, kind in schema.items() if kind is pl.Int128]
    if wide and not frame.select(pl.all_horizontal(_fits(key) for key in wide)).item():
        return False  # each integer past 64 bits is to be named
    if not floats:
        return True
    largest, zero = frame.select(
        pl.max_horizontal(pl.col(floats).abs().max()).alias("largest"),
        pl.any_horizontal((pl.col(floats) == 0.0).any()).alias("zero"),
    ).row(0)
    if largest is not None and not largest < EXACT:
        return False
    return not (zero and may_underflow(text))


def _fits(key: str) -> pl.Expr:
    return pl.col(key).is_between(-INT64, INT64 - 1).all()


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
    return rows if colons == _counts(text)[1] else None
