"""Checks that only the whole run can answer."""

from __future__ import annotations

from typing import Any

import polars as pl

from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.probe import Check, Probe, RunResult, View, where_present


def _extremes(view: View) -> None:
    """Remember the least, the largest and the number of values of each column."""
    names = [name for name in view.names if view.is_number(name)]
    if not names:
        return
    row = view.frame.select(
        *(pl.col(name).min().alias(f"{i}l") for i, name in enumerate(names)),
        *(pl.col(name).max().alias(f"{i}h") for i, name in enumerate(names)),
        *(pl.col(name).count().alias(f"{i}n") for i, name in enumerate(names)),
    ).row(0, named=True)
    seen: dict[str, tuple[Any, Any, int]] = view.state.setdefault("seen", {})
    for i, name in enumerate(names):
        low, high, count = row[f"{i}l"], row[f"{i}h"], row[f"{i}n"]
        if count and name in seen:
            before = seen[name]
            low, high, count = min(low, before[0]), max(high, before[1]), count + before[2]
        if count:
            seen[name] = (low, high, count)


def _moves(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    return [
        RunResult(name, low != high, f"{show(low)} in all {count} rows")
        for name, (low, high, count) in state.get("seen", {}).items()
        if count >= rule.params["min_rows"]
    ]


def _ever_positive(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    return [
        RunResult(name, high > 0, f"never above {show(high)} in {count} rows")
        for name, (_, high, count) in state.get("seen", {}).items()
        if count >= rule.params["min_rows"]
    ]


def _config_order(view: View) -> list[Probe]:
    name, config_step = view.names[0], view.param("config_step")
    if not view.is_number(name):
        return []
    is_config = pl.col(name) == config_step
    other = (~is_config).fill_null(True)
    after = other.cast(pl.Int8).cum_max().shift(1).fill_null(int(view.state.get("ran", False))) > 0
    counts = view.frame.select(is_config.sum().alias("c"), other.any().alias("o")).row(0)
    view.state["configs"] = view.state.get("configs", 0) + counts[0]
    view.state["ran"] = view.state.get("ran", False) or counts[1]
    return [Probe(name, where_present([name], ~(is_config & after)), (name,))]


def _config_there(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    found = state.get("configs", 0) > 0
    return [RunResult(rule.keys[0], found, "no configuration row in the whole file")]


_ROWS = {"min_rows": (int,)}
CHECKS = (
    Check(
        "moves", "cells", "not the same in all of at least `min_rows` rows",
        _ROWS, observe=_extremes, finish=_moves,
    ),
    Check(
        "ever_positive", "cells", "above zero in at least one of at least `min_rows` rows",
        _ROWS, observe=_extremes, finish=_ever_positive,
    ),
    Check(
        "config_first", "cells", "rows with step `config_step` exist, and stand before all others",
        {"config_step": (int,)}, build=_config_order, finish=_config_there,
    ),
)  # fmt: skip
