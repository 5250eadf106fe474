"""The fast tiers: parse a whole piece at once, and prove by counting that nothing was lost.

Tier A lets polars parse and type with an explicit schema. What polars refuses by itself is held by
a test; what it lets pass in silence (duplicate, unknown and null keys, blank lines, numbers in
string columns, digits lost, underflow) is closed by the sums below. A dropped member only ever
*adds* colons, so a sum of zero over the piece means zero in each row.
"""

from __future__ import annotations

import io
from typing import Any

import msgspec
import numpy as np
import polars as pl

from trueup.gates.read.numbers import EXACT, may_underflow

_BLOCK = 1 << 18  # stays in the second-level cache
_NEWLINE, _COLON, _QUOTE, _OPEN, _CLOSE = 10, 58, 34, 123, 125

Schema = dict[str, type[pl.DataType]]


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


def tier_a(text: bytes, schema: Schema) -> pl.DataFrame | None:
    """The typed rows of a piece of lines, or None if it is not proven that they are the text."""
    if not schema or not text.endswith(b"\n") or _odd(text) or any(":" in key for key in schema):
        return None
    try:
        frame = pl.read_ndjson(io.BytesIO(text), schema=schema)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    return frame if _is_proven(frame, text, schema) else None


def _is_proven(frame: pl.DataFrame, text: bytes, schema: Schema) -> bool:
    lines, colons, quotes = _counts(text)
    strings = [key for key, kind in schema.items() if kind is pl.String]
    floats = [key for key, kind in schema.items() if kind is pl.Float64]
    if frame.height != lines:
        return False
    filled = frame.height * frame.width - sum(frame.null_count().row(0))
    in_strings, string_cells = _strings(frame, strings)
    if colons - in_strings != filled or quotes != 2 * filled + 2 * string_cells:
        return False
    if not floats:
        return True
    largest, zero = frame.select(
        pl.max_horizontal(pl.col(floats).abs().max()).alias("largest"),
        pl.any_horizontal((pl.col(floats) == 0.0).any()).alias("zero"),
    ).row(0)
    if largest is not None and not largest < EXACT:
        return False
    return not (zero and may_underflow(text))


def _strings(frame: pl.DataFrame, strings: list[str]) -> tuple[int, int]:
    """Colons inside string cells, and the number of such cells."""
    if not strings:
        return 0, 0
    cells = pl.col(strings)
    counted = frame.select(
        pl.sum_horizontal(cells.str.count_matches(":", literal=True).sum()).alias("colons"),
        pl.sum_horizontal(cells.is_not_null().sum()).alias("cells"),
    ).row(0)
    return int(counted[0]), int(counted[1])


def _one_per_line(text: bytes, rows: int) -> bool:
    """Whether each newline stands between `}` and `{`: one flat object a line."""
    raw = np.frombuffer(text, dtype=np.uint8)
    at = np.flatnonzero(raw == _NEWLINE)
    if rows != len(at) or rows == 0 or raw[0] != _OPEN:
        return False
    return bool((raw[at - 1] == _CLOSE).all()) and bool((raw[at[:-1] + 1] == _OPEN).all())


_DECODER = msgspec.json.Decoder()


def tier_b(text: bytes) -> list[dict[str, Any]] | None:
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
        if type(row) is not dict:
            return None
        colons += len(row)
        for key, cell in row.items():
            if type(cell) is str:
                colons += cell.count(":")
            elif type(cell) in (dict, list):
                return None
            if ":" in key:
                colons += key.count(":")
    return rows if colons == _counts(text)[1] else None
