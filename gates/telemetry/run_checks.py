"""Checks that only the whole run can answer: signals that are dead, and keys that never come."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import polars as pl

from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.groups import crowded, in_words, room
from trueup.gates.telemetry.params import BY, Number, asks, at_least, listed
from trueup.gates.telemetry.past import settled
from trueup.gates.telemetry.probe import Check, Probe, RunResult, View, records, where_present

Extremes = dict[tuple[str, str], tuple[Any, Any, int]]  # column, group -> least, largest, count


def _extremes(view: View) -> None:
    """Remember the least, the largest and the number of values of each column, in each group."""
    columns = [name for name in view.names if view.is_number(name)]
    if not columns:
        return
    seen: Extremes = view.state.setdefault("seen", {})
    for name, group, found in _in_groups(view, columns):
        place = (name, group)
        if found[2] and room(view.state, seen, place):
            seen[place] = _wider(seen.get(place), found)


def _in_groups(view: View, columns: list[str]) -> Iterator[tuple[str, str, tuple[Any, Any, int]]]:
    """Column, group, and least, largest and number of its values."""
    if not view.rule.params.get("by"):
        for name in columns:
            known = view.columns[name]
            yield name, "", (known.low, known.high, known.count)
        return
    asked = [
        *(pl.col(name).min().alias(f"{i}l") for i, name in enumerate(columns)),
        *(pl.col(name).max().alias(f"{i}h") for i, name in enumerate(columns)),
        *(pl.col(name).count().alias(f"{i}n") for i, name in enumerate(columns)),
    ]
    rows = view.frame.group_by(in_words(view).alias("group"), maintain_order=True).agg(asked)
    for row in rows.iter_rows(named=True):
        for i, name in enumerate(columns):
            yield name, row["group"], (row[f"{i}l"], row[f"{i}h"], row[f"{i}n"])


def _wider(before: tuple[Any, Any, int] | None, now: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
    if before is None:
        return now
    return min(before[0], now[0]), max(before[1], now[1]), before[2] + now[2]


def _enough(rule: Rule, state: dict[str, Any]) -> list[tuple[str, str, Any, Any, int]]:
    """Column, where, least, largest and count of what has the rows that the rule asks for."""
    seen: Extremes = state.get("seen", {})
    return [
        (name, f" ({group})" if group else "", low, high, count)
        for (name, group), (low, high, count) in seen.items()
        if count >= rule.params["min_rows"]
    ]


def _moves(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    found = [
        RunResult(name, low != high, f"{show(low)} in all {count} rows{where}")
        for name, where, low, high, count in _enough(rule, state)
    ]
    return [*found, *crowded(rule, state)]


def _ever_above(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    limit = rule.params.get("above", 0)
    found = [
        RunResult(name, high > limit, f"never above {show(high)} in {count} rows{where}")
        for name, where, _, high, count in _enough(rule, state)
    ]
    return [*found, *crowded(rule, state)]


def _any_nonzero(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    found = _enough(rule, state)
    if not found:
        return []
    alive = any(low != 0 or high != 0 for _, _, low, high, _ in found)
    got = f"exactly 0 in every row of {', '.join(sorted({name for name, *_ in found})[:5])}"
    return [RunResult(min(name for name, *_ in found), alive, got)]


def _note_presence(view: View) -> None:
    """Remember how many rows were read, and the first of the columns that hold what is asked."""
    view.state["rows"] = view.state.get("rows", 0) + view.frame.height
    above = view.rule.params.get("above")
    for name in view.names:
        if view.state.get("found") or not view.has(name):
            continue
        column = view.frame.get_column(name)
        high = column.max() if view.is_number(name) else None
        if above is None:
            there = bool(column.count())
        else:
            there = isinstance(high, int | float) and high > above
        if there:
            view.state["found"] = name


def _appears(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    rows = state.get("rows", 0)
    if rows < rule.params["min_rows"]:
        state["reason"] = f"fewer than {rule.params['min_rows']} rows"
        return []
    above = rule.params.get("above")
    what = "holds a value" if above is None else f"is ever above {show(above)}"
    asked = rule.pattern or ", ".join(rule.keys)
    key = rule.keys[0] if rule.keys else None
    got = f"no key that matches {asked} {what} in {rows} rows"
    return [RunResult(key or asked, "found" in state, got)]


def _note_keys(view: View) -> None:
    view.state["rows"] = view.state.get("rows", 0) + view.frame.height
    found: dict[str, None] = view.state.setdefault("found", {})
    for name in view.names:
        if view.has(name) or name in view.null_keys:  # a file has only so many keys
            found.setdefault(name)


def _forbidden(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    if not state.get("rows"):
        return []
    found = state["found"]
    if not found:
        return [RunResult(rule.pattern or ", ".join(rule.keys), True, "")]
    return [RunResult(name, False, "the key is there") for name in found]


def _crossings(view: View) -> None:
    view.state["threshold"] = view.config.get(view.param("threshold"))
    _extremes(view)


def _crosses(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    threshold = state.get("threshold")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        state["reason"] = f"{rule.params['threshold']} is no number"
        return []
    found = [
        RunResult(
            name, low < threshold <= high,
            f"{show(low)} to {show(high)} in {count} rows{where}, with a threshold of "
            f"{show(threshold)}",
        )
        for name, where, low, high, count in _enough(rule, state)
    ]  # fmt: skip
    return [*found, *crowded(rule, state)]


def _differences(view: View) -> None:
    """Count the rows of each record that hold both fields, and those in which they differ."""
    low, high = view.param("low"), view.param("high")
    seen: dict[str, list[int]] = view.state.setdefault("differ", {})
    for prefix, fields in records(view).items():
        if low in fields and high in fields:
            one, two = pl.col(fields[low]), pl.col(fields[high])
            counts = view.frame.select(
                (one.is_not_null() & two.is_not_null()).sum().alias("both"), (one != two).sum()
            ).row(0)
            entry = seen.setdefault(prefix, [0, 0])
            entry[0] += counts[0]
            entry[1] += counts[1]


def _spreads(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    low, high = rule.params["low"], rule.params["high"]
    return [
        RunResult(f"{prefix}{high}", other > 0, f"equal to {low} in all {both} rows")
        for prefix, (both, other) in state.get("differ", {}).items()
        if both >= rule.params["min_rows"]
    ]


def _note_falls(view: View) -> None:
    """Count the rows that hold all keys, and those in which one is not above the one before it."""
    columns = [name for name in view.names if view.is_number(name)]
    if len(columns) < len(view.names):
        return
    there = pl.all_horizontal([pl.col(name).is_not_null() for name in columns])
    falls = pl.any_horizontal([pl.col(b) <= pl.col(a) for a, b in pairwise(columns)])
    rows, falling = view.frame.select(there.sum().alias("rows"), (there & falls).sum()).row(0)
    view.state["rows"] = view.state.get("rows", 0) + rows
    view.state["falls"] = view.state.get("falls", 0) + falling


def _not_always_rising(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    rows = state.get("rows", 0)
    if rows < rule.params["min_rows"]:
        return []
    got = f"{' < '.join(rule.keys)} in all {rows} rows"
    return [RunResult(rule.keys[0], state["falls"] > 0, got)]


def _config_order(view: View) -> list[Probe]:
    """Late configuration rows are those of a resume: the row that declares it, and what follows."""
    name, config_step = view.names[0], view.param("config_step")
    if not view.is_number(name):
        return []
    resume = view.rule.params.get("resume")
    declares = pl.col(resume).is_not_null() if resume and view.has(resume) else pl.lit(False)
    is_config = (pl.col(name) == config_step).fill_null(False)
    rows = view.frame.select(
        is_config.alias("config"), (is_config & declares).alias("resume"),
        (~is_config).cum_sum().alias("block"),
    ).with_columns(pl.col("resume").cum_max().over("block"))  # fmt: skip
    config, excused, block = (rows.get_column(key) for key in ("config", "resume", "block"))
    excused |= (block == 0) & view.state.get("excused", False)
    ran = (block > 0) | view.state.get("ran", False)
    view.state["configs"] = view.state.get("configs", 0) + config.sum()
    view.state["ran"], view.state["excused"] = bool(ran[-1]), bool(excused[-1] and config[-1])
    return [Probe(name, where_present([name], settled(~(config & ran) | excused)), (name,))]


def _config_there(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    found = state.get("configs", 0) > 0
    return [RunResult(rule.keys[0], found, "no configuration row in the whole file")]


_ROWS = {"min_rows": (int,)}
_GROUPED = {**_ROWS, **BY}
_ASKED = asks(at_least(1, "min_rows"), listed("by"))
CHECKS = (
    Check(
        "moves", "cells", "not the same in all of at least `min_rows` rows",
        _GROUPED, ("by",), observe=_extremes, finish=_moves, problem=_ASKED,
    ),
    Check(
        "ever_positive", "cells", "above zero, or above `above`, in at least one of at least "
        "`min_rows` rows",
        {**_GROUPED, "above": Number}, ("by", "above"), observe=_extremes, finish=_ever_above,
        problem=_ASKED,
    ),
    Check(
        "any_nonzero", "cells", "of all the columns together, at least one value is not exactly 0",
        _ROWS, observe=_extremes, finish=_any_nonzero, problem=_ASKED,
    ),
    Check(
        "crosses", "cells", "sometimes below the `threshold` that the configuration holds, and "
        "sometimes not",
        {**_GROUPED, "threshold": (str,)}, ("by",), observe=_crossings, finish=_crosses,
        problem=_ASKED,
    ),
    Check(
        "spreads", "record", "the fields `low` and `high` differ in at least one of at least "
        "`min_rows` rows",
        {**_ROWS, "low": (str,), "high": (str,)}, observe=_differences, finish=_spreads,
        problem=_ASKED,
    ),
    Check(
        "appears", "cells", "at least one of the keys holds a value, or one above `above`, in at "
        "least one of at least `min_rows` rows",
        {**_ROWS, "above": Number}, ("above",), observe=_note_presence, finish=_appears,
        problem=_ASKED,
    ),
    Check(
        "forbidden", "cells", "none of the keys is ever written",
        observe=_note_keys, finish=_forbidden,
    ),
    Check(
        "not_always_rising", "cells", "in at least one of at least `min_rows` rows a key is not "
        "above the key before it in the list",
        _ROWS, observe=_note_falls, finish=_not_always_rising, problem=_ASKED,
    ),
    Check(
        "config_first", "cells", "rows with step `config_step` exist, and stand before all others; "
        "one that holds the key `resume` may come later, and others right after it",
        {"config_step": (int,), "resume": (str,)}, ("resume",),
        build=_config_order, finish=_config_there,
    ),
)  # fmt: skip
