"""One row at a time: take it if it is clean, else name its flaws. The last of the three tiers.

A row whose value is plain in spite of a flaw (a NaN token, a number that overflows) is handed on
with that value, so that the rules see it too. A row that could be read in two ways (a duplicate
key, a broken token) is withheld from them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any

import msgspec

from trueup.gates.findings import show
from trueup.gates.read.limits import Limits
from trueup.gates.read.numbers import flaw_of_float, is_too_long, may_underflow
from trueup.gates.read.rows.scanner import Flaw, scan

Row = dict[str, Any]
PLAIN = frozenset({"non_finite_literal", "overflow", "underflow"})  # the value is not in doubt


class _Flawed(float):
    """A float that carries what was wrong with its literal."""

    kind = ""
    text = ""


def _flawed(value: float, kind: str, text: str) -> _Flawed:
    out = _Flawed(value)
    out.kind, out.text = kind, text
    return out


class RowReader:
    """Reads single rows, and remembers how often it had to look closely."""

    def __init__(self, limits: Limits) -> None:
        """Start with a full allowance of exact positions."""
        self.limits = limits
        self._msgspec = msgspec.json.Decoder()
        self._json = json.JSONDecoder(
            object_pairs_hook=self._pairs,
            parse_constant=lambda text: _flawed(float(text), "non_finite_literal", text),
            parse_float=self._float,
            parse_int=self._int,
        )
        self._flaws: list[Flaw] = []
        self._located: Counter[tuple[str, str | None]] = Counter()

    def read(self, row: bytes) -> tuple[Row | None, list[Flaw]]:
        """The row (None if withheld) and its flaws."""
        if not row.strip(b" \t\r"):
            return None, [Flaw("blank", "a blank line", 0)]
        if len(row) > self.limits.max_row:
            return None, [Flaw("row_too_long", f"{len(row)} bytes", 0)]
        if row.count(b"{") + row.count(b"[") > self.limits.max_depth:
            flaws = scan(row, self.limits).flaws
            if flaws:
                return None, flaws
        clean = self._clean(row)
        return (clean, []) if clean is not None else self._closely(row)

    def _clean(self, row: bytes) -> Row | None:
        """The row, if a fast parse and a count of its colons prove it."""
        if b"\\u" in row or b"\r" in row[:-1]:  # \u may hide a colon, or half a character
            return None
        try:
            value = self._msgspec.decode(row)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        if not isinstance(value, dict):
            return None
        colons = len(value)
        for key, cell in value.items():
            colons += key.count(":")
            if isinstance(cell, str):
                colons += cell.count(":")
            elif isinstance(cell, dict | list) or (cell == 0 and may_underflow(row)):
                return None
        return value if colons == row.count(b":") else None

    def _closely(self, row: bytes) -> tuple[Row | None, list[Flaw]]:
        """The slow way: every pair is seen, and the scanner gives the bytes."""
        self._flaws = []
        try:
            value: Any = self._json.decode(row.decode("utf-8"))
        except (ValueError, RecursionError):
            return None, scan(row, self.limits).flaws or [Flaw("syntax", show(row[:60]), 0)]
        seen = self._flaws
        if isinstance(value, dict) and seen and all(self._used_up(flaw) for flaw in seen):
            return (_plain(value) if _deliverable(seen) else None), seen
        if isinstance(value, dict) and not seen and b"\\u" not in row and b"\r" not in row:
            return value, []
        flaws = scan(row, self.limits).flaws
        if not isinstance(value, dict):
            return None, flaws or [Flaw("not_object", show(value), 0)]
        for flaw in flaws:
            self._located[flaw.kind, flaw.key] += 1
        return (_plain(value) if _deliverable(flaws) else None), flaws

    def _used_up(self, flaw: Flaw) -> bool:
        return self._located[flaw.kind, flaw.key] >= self.limits.located

    def _float(self, text: str) -> float:
        value = float(text)
        kind = flaw_of_float(text, value)
        return value if kind is None else _flawed(value, kind, text)

    def _int(self, text: str) -> int | float:
        if is_too_long(text, self.limits.max_digits):
            return _flawed(math.inf, "number_too_long", f"{len(text)} characters")
        return int(text)

    def _pairs(self, pairs: list[tuple[str, Any]]) -> Row:
        row: Row = {}
        for key, value in pairs:
            if isinstance(value, _Flawed):
                self._flaws.append(Flaw(value.kind, value.text, None, key))
            if key in row:
                got = f"{show(row[key])}, then {show(value)}"
                self._flaws.append(Flaw("duplicate_key", got, None, key))
            else:
                row[key] = value
        return row


def _deliverable(flaws: list[Flaw]) -> bool:
    return all(flaw.kind in PLAIN for flaw in flaws)


def _plain(row: Row) -> Row:
    return {key: float(v) if isinstance(v, _Flawed) else v for key, v in row.items()}


def step_of(row: Row | None, raw: bytes, key: str) -> int | None:
    """The step of a row, from its text if the row itself could not be read."""
    if row is not None:
        value = row.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    found = re.findall(b'"' + re.escape(key.encode()) + rb'"\s*:\s*(-?[0-9]{1,18})(?![\w.])', raw)
    return int(found[0]) if len(found) == 1 else None
