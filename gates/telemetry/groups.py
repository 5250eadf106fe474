"""Groups of rows (`by`: a run, a fold): their names in words, and how many are remembered."""

from __future__ import annotations

from collections.abc import Container, Sized
from typing import Any, Protocol

import polars as pl

from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.probe import RunResult, View

MAX_PLACES = 100_000  # columns times groups that a file can make us remember


class _Places(Sized, Container[Any], Protocol):
    """What is remembered, by place."""


def in_words(view: View) -> pl.Expr:
    """`run_id a, fold 2`; empty where the rule names no groups."""
    names = [name for name in view.rule.params.get("by", ()) if view.has(name)]
    if not names:
        return pl.lit("")
    words = [pl.format(f"{name} {{}}", as_text(view, name)) for name in names]
    return pl.concat_str(words, separator=", ", ignore_nulls=True)


def as_text(view: View, name: str) -> pl.Expr:
    """A column as text. A whole number stays the same text where its column turns to floats."""
    column = pl.col(name)
    if view.schema[name] != pl.Float64:
        return column.cast(pl.String)
    whole = column.is_finite() & (column == column.floor()) & (column.abs() < 2.0**53)
    number = pl.when(whole).then(column).otherwise(0.0).cast(pl.Int64)
    return pl.when(whole).then(number.cast(pl.String)).otherwise(column.cast(pl.String))


def room(state: dict[str, Any], seen: _Places, place: Any) -> bool:
    """Whether one more place may be remembered. What finds no room is not passed in silence."""
    if place in seen or len(seen) < MAX_PLACES:
        return True
    state["crowded"] = True
    return False


def crowded(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    """That some columns or groups were not judged, if there was no room for them."""
    if not state.get("crowded"):
        return []
    key = rule.pattern or ", ".join(rule.keys)
    return [RunResult(key, None, f"more than {MAX_PLACES} columns times groups")]
