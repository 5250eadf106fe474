"""Checks of what a run says of itself once: its configuration, warnings, keys and its end.

These look at all rows of their scope together. A value that one row says and a later row says
otherwise is remembered as both.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.groups import crowded, in_words, room
from trueup.gates.telemetry.params import BY, asks, counts, listed
from trueup.gates.telemetry.probe import Check, RunResult, View

MAX_SAID = 1_000  # distinct values of one key that are remembered, besides those asked for
_VALUE = (str, bool, int)


def _same(value: Any, wanted: Any) -> bool:
    """Equal, and a truth value only to a truth value."""
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def _note(view: View, *keys: str) -> None:
    """Remember the distinct values of these keys, and those that the rule asks for in any case."""
    params = view.rule.params
    said: dict[str, list[Any]] = view.state.setdefault("said", {})
    for key in keys:
        values = said.setdefault(key, [])
        if not view.has(key):
            continue
        for value in view.frame.get_column(key).drop_nulls().unique(maintain_order=True):
            asked = any(_same(value, one) for one in (params["is"], *params.get("among", ())))
            known = any(_same(value, one) for one in values)
            if not known and (asked or len(values) < MAX_SAID):
                values.append(value)


def _note_implication(view: View) -> None:
    _note(view, view.param("key"), view.param("then"))


def _implies(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    key, wanted, then = (rule.params[name] for name in ("key", "is", "then"))
    said: dict[str, list[Any]] = state.get("said", {})
    if not any(_same(value, wanted) for value in said.get(key, [])):
        state["reason"] = f"{key} is never {show(wanted)}"
        return []
    values = said.get(then, [])
    if not values:
        state["reason"] = f"{then} is not recorded"
        return []
    other = [value for value in values if not any(_same(value, ok) for ok in rule.params["among"])]
    got = f"{then} is {', '.join(show(value) for value in other)} and {key} is {show(wanted)}"
    return [RunResult(then, not other, got)]


def _note_told(view: View) -> None:
    _note(view, view.param("key"))
    high: dict[str, float] = view.state.setdefault("high", {})
    for name in (name for name in view.names if view.is_number(name)):
        value = view.frame.get_column(name).abs().max()
        if isinstance(value, int | float):
            high[name] = max(value, high.get(name, 0))


def _zero_when_told(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    key, wanted = rule.params["key"], rule.params["is"]
    if not any(_same(value, wanted) for value in state.get("said", {}).get(key, [])):
        state["reason"] = f"{key} is never {show(wanted)}"
        return []
    high: dict[str, float] = state.get("high", {})
    if not high:
        return [RunResult(rule.pattern or ", ".join(rule.keys), True, "")]
    return [
        RunResult(name, value == 0, f"as large as {show(value)}, and {key} is {show(wanted)}")
        for name, value in high.items()
    ]


def _note_values(view: View) -> None:
    """Count the values of the key in each group; rows of a group that never says it count too."""
    key = view.names[0]
    value = pl.col(key).is_not_null() if view.has(key) else pl.lit(False)
    seen: dict[str, int] = view.state.setdefault("groups", {})
    rows = view.frame.select(
        in_words(view).alias("group"), value.alias("said"), pl.int_range(pl.len())
    )
    if view.rule.params.get("by"):
        rows = rows.filter(pl.col("group") != "")  # a row that says nothing of its group
    counted = rows.group_by("group", maintain_order=True)
    for group, count in counted.agg(pl.col("said").sum()).iter_rows():
        if room(view.state, seen, group):
            seen[group] = seen.get(group, 0) + count


def _once(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    key = rule.keys[0]
    groups: dict[str, int] = state.get("groups", {})
    if not any(groups.values()):
        state["reason"] = f"{key} is not recorded"
        return []
    return [
        *(
            RunResult(key, count == 1, f"{count} times{f' in {group}' if group else ''}")
            for group, count in groups.items()
        ),
        *crowded(rule, state),
    ]


def _note_names(view: View) -> None:
    found: dict[str, None] = view.state.setdefault("names", {})
    for name in view.names:
        if view.has(name) or name in view.null_keys:  # a file has only so many keys
            found.setdefault(name)


def _keys_are(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    """The keys under a prefix are the declared ones, lists with all their items."""
    prefix, declared = rule.params["prefix"], rule.params["names"]
    wanted: list[str] = []
    for name, length in declared.items():
        whole = f"{prefix}{name}"
        wanted += [whole] if length == 1 else [f"{whole}[{index}]" for index in range(length)]
    found: dict[str, None] = state.get("names", {})
    missing = [RunResult(key, False, "never logged") for key in wanted if key not in found]
    if not rule.params.get("only", False):
        return missing or [RunResult(prefix, True, "")]
    extra = [key for key in found if key not in set(wanted)]
    return [
        *missing,
        *(RunResult(key, False, "logged, and not declared") for key in extra),
    ] or [RunResult(prefix, True, "")]


def _prefixed(params: Any) -> str:
    return "" if params["prefix"] else "prefix is empty"


CHECKS = (
    Check(
        "implies", "cells", "once `key` was `is`, `then` is always one of `among`",
        {"key": (str,), "is": _VALUE, "then": (str,), "among": (list,)},
        observe=_note_implication, finish=_implies,
        problem=lambda params: "" if params["among"] else "among is empty",
    ),
    Check(
        "zero_when_told", "cells", "where a row of the run has `is` under `key`, the columns are "
        "0 or absent in all rows",
        {"key": (str,), "is": _VALUE}, observe=_note_told, finish=_zero_when_told,
    ),
    Check(
        "once", "cells", "the key is written in exactly one row, or in one of each group",
        BY, tuple(BY), observe=_note_values, finish=_once, problem=listed("by"),
    ),
    Check(
        "keys_are", "cells", "the keys after `prefix` are `names`, each with the length of its "
        "list or 1; `only`: and no others",
        {"prefix": (str,), "names": (dict,), "only": (bool,)}, ("only",),
        observe=_note_names, finish=_keys_are, problem=asks(_prefixed, counts("names")),
    ),
)  # fmt: skip
