"""Checks for columns that are the same to the last bit and should not be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.params import at_least
from trueup.gates.telemetry.probe import Check, RunResult, View

Bits = np.ndarray[Any, np.dtype[np.uint64]]
_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)  # two mixes: 128 bits in all
_WORD = 1 << 64


@dataclass(slots=True)
class _Print:
    """A column as a number: which rows hold a value, and which value."""

    count: int = 0
    rows: int = 0
    first: int = 0
    second: int = 0
    low: float = np.inf
    high: float = -np.inf

    def take(self, column: pl.Series) -> None:
        """More rows."""
        values = column.cast(pl.Float64)
        there = values.is_not_null().to_numpy()
        known = values.drop_nulls().to_numpy() + 0.0  # -0.0 is 0.0
        places = (np.flatnonzero(there) + self.rows).astype(np.uint64)
        self.rows += len(column)
        if not len(known):
            return
        bits = np.ascontiguousarray(known).view(np.uint64)
        self.count += len(known)
        self.first = (self.first + _mixed(bits, places, _ODD[0])) % _WORD
        self.second = (self.second + _mixed(bits, places, _ODD[1])) % _WORD
        self.low, self.high = min(self.low, known.min()), max(self.high, known.max())


def _mixed(bits: Bits, places: Bits, odd: int) -> int:
    """A sum over rows that depends on every bit and on its row; 64-bit words wrap around."""
    word = (bits ^ (places * np.uint64(odd))) * np.uint64(odd)
    word ^= word >> np.uint64(29)
    word *= np.uint64(odd)
    word ^= word >> np.uint64(32)
    return int(np.add.reduce(word))


def _note_prints(view: View) -> None:
    prints: dict[str, _Print] = view.state.setdefault("prints", {})
    rows = view.state.get("rows", 0)
    for name in (name for name in view.names if view.is_number(name)):
        prints.setdefault(name, _Print(rows=rows)).take(view.frame.get_column(name))
    view.state["rows"] = rows + view.frame.height
    for known in prints.values():
        known.rows = view.state["rows"]


def _distinct(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    """Columns that never move are left out: that they are equal says nothing more of them."""
    same: dict[tuple[int, int, int], list[str]] = {}
    enough = False
    for name, one in state.get("prints", {}).items():
        if one.count >= rule.params["min_rows"]:
            enough = True
            if one.low != one.high:
                same.setdefault((one.count, one.first, one.second), []).append(name)
    if not enough:
        return []
    return [
        RunResult(name, not others, f"the same as {', '.join(others[:5])} in every row")
        for name, *others in same.values()
    ] or [RunResult(rule.pattern or rule.keys[0], True, "")]


@dataclass(slots=True)
class _Pair:
    """How often one column was held against the last value of another, and equalled it."""

    compared: int = 0
    equal: int = 0


def _sides(view: View) -> dict[str, list[str]]:
    """Columns that share all of their name but the group `side`."""
    match = re.compile(view.rule.pattern or "", re.DOTALL).fullmatch
    out: dict[str, list[str]] = {}
    for name in (name for name in view.names if view.is_number(name)):
        found = match(name)
        if found is None:
            continue
        side = found.span("side")
        base = name if found.group("side") is None else name[: side[0]] + name[side[1] :]
        out.setdefault(base, []).append(name)
    return out


def _filled(view: View, name: str, last: dict[str, float]) -> pl.Series:
    """The column with its last value where it has none."""
    series = view.frame.get_column(name).cast(pl.Float64).forward_fill()
    return series.fill_null(last[name]) if name in last else series


def _note_pairs(view: View) -> None:
    pairs: dict[tuple[str, str], _Pair] = view.state.setdefault("pairs", {})
    last: dict[str, float] = view.state.setdefault("last", {})
    for columns in _sides(view).values():
        filled = {name: _filled(view, name, last) for name in columns}
        for one, two in combinations(sorted(columns), 2):
            for this, other in ((one, two), (two, one)):
                there = view.frame.get_column(this).is_not_null() & filled[other].is_not_null()
                entry = pairs.setdefault((this, other), _Pair())
                entry.compared += int(there.sum())
                equal = filled[this].filter(there) == filled[other].filter(there)
                entry.equal += int(equal.sum())
        for name, series in filled.items():
            known = series.drop_nulls()
            if len(known):
                last[name] = known[-1]


def _apart(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    out: dict[str, RunResult] = {}
    for (this, other), pair in state.get("pairs", {}).items():
        if pair.compared >= rule.params["min_rows"]:
            copied = pair.equal == pair.compared
            got = f"the same as {other} to the last bit, in all {pair.compared} rows"
            if this not in out or copied:
                out[this] = RunResult(this, not copied, got)
    if not out:
        state["reason"] = f"no two columns to compare in {rule.params['min_rows']} rows"
    return list(out.values())


CHECKS = (
    Check(
        "distinct", "cells", "no column is an exact copy of another, over at least `min_rows` "
        "values; columns that never move are left out",
        {"min_rows": (int,)}, observe=_note_prints, finish=_distinct,
        problem=at_least(2, "min_rows"),
    ),
    Check(
        "apart", "cells", "of columns whose names differ in the group (?P<side>...) alone, none "
        "repeats the last value of another in each of at least `min_rows` rows",
        {"min_rows": (int,)}, observe=_note_pairs, finish=_apart,
        problem=at_least(2, "min_rows"), group="side",
    ),
)  # fmt: skip
