"""Parameters of checks: what more than their types is asked of them, and where they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from trueup.gates.telemetry.probe import NUMERIC, Problem, View

Number = (int, float)
BY = {"by": (list,)}  # may be left out, as may the two below
RESUME = {"resume": (str,), "config_step": (int,)}


def asks(*each: Problem) -> Problem:
    """The first problem that any of them finds."""

    def problem(params: Mapping[str, Any]) -> str:
        return next((text for one in each if (text := one(params))), "")

    return problem


def _of(
    params: Mapping[str, Any], names: tuple[str, ...], ok: Callable[[Any], bool], said: str
) -> str:
    for name in names:
        if name in params and not ok(params[name]):
            return f"{name} is {params[name]!r}, expected {said}"
    return ""


def at_least(low: float, *names: str) -> Problem:
    """Numbers not below `low`; a text in their place names a key, and is not asked."""
    return lambda params: _of(
        params, names, lambda v: isinstance(v, str) or v >= low, f"a number of {low} or more"
    )


def listed(*keys: str) -> Problem:
    """Lists of one or more names."""

    def ok(value: Any) -> bool:
        return bool(value) and all(isinstance(one, str) and one for one in value)

    return lambda params: _of(params, keys, ok, "a list of names")


def choice(key: str, *values: str) -> Problem:
    """One of these words."""
    return lambda params: _of(params, (key,), lambda v: v in values, f"one of {', '.join(values)}")


def rising(low: str, high: str) -> Problem:
    """Two bounds in order."""

    def problem(params: Mapping[str, Any]) -> str:
        if low in params and high in params and not params[low] <= params[high]:
            return f"{low} {params[low]!r} is above {high} {params[high]!r}"
        return ""

    return problem


def counts(key: str) -> Problem:
    """A table of names with whole numbers of 1 or more; a number or a text is as good."""

    def ok(value: Any) -> bool:
        if not isinstance(value, dict):
            return isinstance(value, str) or value >= 1
        return bool(value) and all(type(one) is int and one >= 1 for one in value.values())

    return lambda params: _of(params, (key,), ok, "whole numbers of 1 or more")


def setting(view: View, name: str, **parts: str) -> Any:
    """A parameter's value. A text names the key of the configuration rows that holds it.

    `parts` fill the places of the text: `model.{level}.period`. None if it is recorded nowhere.
    """
    value = view.rule.params.get(name)
    if not isinstance(value, str):
        return value
    key = value
    for part, text in parts.items():
        key = key.replace(f"{{{part}}}", text)
    if key not in view.config:
        view.state["reason"] = f"{key} is not recorded"
    return view.config.get(key)


def setting_number(view: View, name: str, **parts: str) -> float | None:
    """A parameter that is a number, or names the key that holds one."""
    value = setting(view, name, **parts)
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return value if usable else None


def has_value(view: View, key: str, value: Any) -> pl.Expr:
    """Rows in which a column holds this value. One of another type holds it nowhere."""
    if not view.has(key):
        return pl.lit(False)
    kind = view.schema[key]
    if isinstance(value, bool):
        fits = kind == pl.Boolean
    elif isinstance(value, str):
        fits = kind == pl.String
    else:
        fits = kind in NUMERIC
    return (pl.col(key) == value).fill_null(False) if fits else pl.lit(False)


def level_of(prefix: str) -> str:
    """The level of a record: the last part of what its keys share."""
    return prefix.rstrip(".").rsplit(".", 1)[-1]


def period_of(view: View, prefix: str) -> int | None:
    """A level's update period in tokens, by `periods`: a table, one number, or a key's name."""
    periods, level = view.rule.params.get("periods"), level_of(prefix)
    if isinstance(periods, dict):
        value = periods.get(level)
    else:
        value = setting_number(view, "periods", level=level)
    return int(value) if value is not None and value >= 1 and value == int(value) else None
