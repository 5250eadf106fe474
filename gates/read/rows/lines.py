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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from trueup.gates.findings import show
from trueup.gates.read.limits import Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.numbers import flaw_of_float, is_too_long, may_underflow
from trueup.gates.read.rows.scanner import Flaw, scan
from trueup.gates.read.rows.shape import Row

PLAIN = frozenset({"non_finite_literal", "overflow", "underflow"})  # the value is not in doubt


class _Flawed(float):
    """A float that carries what was wrong with its literal."""

    kind = ""
    text = ""


@dataclass(frozen=True, slots=True)
class _Twice:
    """What stands at a key that stands twice."""

    got: str


def _flawed(value: float, kind: str, text: str) -> _Flawed:
    out = _Flawed(value)
    out.kind, out.text = kind, text
    return out


class RowReader:
    """Reads single rows, and remembers how often it had to look closely."""

    def __init__(self, limits: Limits, nesting: Nesting) -> None:
        """Start with a full allowance of exact positions."""
        self.limits, self.nesting = limits, nesting
        self._msgspec = msgspec.json.Decoder()
        self._json = json.JSONDecoder(
            object_pairs_hook=self._pairs,
            parse_constant=lambda text: _flawed(float(text), "non_finite_literal", text),
            parse_float=self._float,
            parse_int=self._int,
        )
        self._located: Counter[tuple[str, str | None]] = Counter()

    def read(self, row: bytes) -> tuple[Row | None, list[Flaw]]:
        """The row (None if withheld) and its flaws."""
        if not row.strip(b" \t\r"):
            return None, [Flaw("blank", "a blank line", 0)]
        if len(row) > self.limits.max_row:
            return None, [Flaw("row_too_long", f"{len(row)} bytes", 0)]
        if row.count(b"{") + row.count(b"[") > self.limits.max_depth:
            flaws = self._scan(row)
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
        if may_underflow(row) or colons_of(value, self.nesting.flatten) != row.count(b":"):
            return None
        return value

    def _closely(self, row: bytes) -> tuple[Row | None, list[Flaw]]:
        """The slow way: every pair is seen, and the scanner gives the bytes."""
        try:
            value: Any = self._json.decode(row.decode("utf-8"))
        except (ValueError, RecursionError):
            return None, self._scan(row) or [Flaw("syntax", show(row[:60]), 0)]
        seen = self._seen(value) if isinstance(value, dict) else []
        if seen and all(self._used_up(flaw) for flaw in seen):
            return (_plain(value) if _deliverable(seen) else None), seen
        if isinstance(value, dict) and not seen and b"\\u" not in row and b"\r" not in row:
            return value, []
        flaws = self._scan(row)
        if not isinstance(value, dict):
            return None, flaws or [Flaw("not_object", show(value), 0)]
        for flaw in flaws:
            self._located[flaw.kind, flaw.key] += 1
        return (_plain(value) if _deliverable(flaws) else None), flaws

    def _scan(self, row: bytes) -> list[Flaw]:
        return scan(row, self.limits, self.nesting).flaws

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
            if key in row:
                first = row[key].got if isinstance(row[key], _Twice) else show(row[key])
                row[key] = _Twice(f"{first}, then {show(value)}")
            else:
                row[key] = value
        return row

    def _seen(self, value: Any, name: str | None = None) -> list[Flaw]:
        """What the decoder marked, with the name of its place."""
        flaws: list[Flaw] = []
        cells: Iterable[tuple[Any, Any]]
        if isinstance(value, dict):
            join: Callable[[str | None, Any], str] = self.nesting.member
            cells = value.items()
        else:
            join, cells = self.nesting.item, enumerate(value)
        for key, cell in cells:
            kind = type(cell)
            if kind not in (_Flawed, _Twice, dict, list):
                continue
            place = join(name, key)
            if kind is _Flawed:
                flaws.append(Flaw(cell.kind, cell.text, None, place))
            elif kind is _Twice:
                flaws.append(Flaw("duplicate_key", cell.got, None, place))
            else:
                flaws += self._seen(cell, place)
        return flaws


def colons_of(row: Row, deep: bool) -> int | None:
    """How many colons a row is written with; None if there are objects or lists in it.

    With `deep`, those inside objects and lists are counted as well.
    """
    colons = len(row)
    for key, cell in row.items():
        kind = type(cell)
        if kind is str:
            colons += cell.count(":")
        elif kind is dict or kind is list:
            if not deep:
                return None
            colons += _colons_inside(cell)
        if ":" in key:
            colons += key.count(":")
    return colons


def _colons_inside(value: Any) -> int:
    if isinstance(value, dict):
        return colons_of(value, True) or 0
    if isinstance(value, list):
        return sum(_colons_inside(cell) for cell in value)
    return value.count(":") if isinstance(value, str) else 0


def _deliverable(flaws: list[Flaw]) -> bool:
    return all(flaw.kind in PLAIN for flaw in flaws)


def _plain(value: Any) -> Any:
    """The value without the decoder's marks."""
    if isinstance(value, dict):
        return {key: _plain(cell) for key, cell in value.items()}
    if isinstance(value, list):
        return [_plain(cell) for cell in value]
    return float(value) if isinstance(value, _Flawed) else value


def step_of(row: Row | None, raw: bytes, key: str, nesting: Nesting) -> int | None:
    """The step of a row, from its text if the row itself could not be read."""
    if row is not None and (key in row or not any(type(c) is dict for c in row.values())):
        value = row.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    last = key.rsplit(nesting.separator, 1)[-1] if nesting.flatten else key
    found = re.findall(b'"' + re.escape(last.encode()) + rb'"\s*:\s*(-?[0-9]{1,18})(?![\w.])', raw)
    return int(found[0]) if len(found) == 1 else None
