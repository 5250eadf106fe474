"""Checks of one column at a time, row by row."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from trueup.gates.documents.run import Column
from trueup.gates.telemetry.params import rising
from trueup.gates.telemetry.probe import (
    INTEGERS,
    Check,
    Probe,
    Quick,
    View,
    bound,
    exact,
    number,
    where_present,
)


def _each(view: View, ok: Callable[[str], pl.Expr]) -> list[Probe]:
    return [Probe(name, ok(name), (name,)) for name in view.names if view.has(name)]


def _numbers(
    view: View,
    ok: Callable[[str], pl.Expr],
    quick: Callable[[str], Quick | None] = lambda name: None,
) -> list[Probe]:
    """The condition on numbers; a cell that is no number leaves it undetermined."""
    unknown = pl.lit(None, dtype=pl.Boolean)
    return [
        Probe(name, where_present([name], ok(name)), (name,), quick(name))
        if view.is_number(name)
        else Probe(name, where_present([name], unknown), (name,))
        for name in view.names
        if view.has(name)
    ]


def _within(name: str, low: float = -math.inf, high: float = math.inf) -> Quick:
    """Whether all numbers of a column are finite and between two bounds."""

    def holds(columns: Mapping[str, Column], height: int) -> bool:
        one = columns[name]
        return not one.count or (one.finite and low <= one.low and one.high <= high)

    return holds


def _all_there(name: str) -> Quick:
    return lambda columns, height: columns[name].count == height


def _present(view: View) -> list[Probe]:
    return [
        Probe(name, pl.col(name).is_not_null(), (name,), _all_there(name))
        if view.has(name)
        else Probe(name, pl.lit(False), ())
        for name in view.names
    ]


def _finite(view: View) -> list[Probe]:
    """Columns of numbers only: what is no number is the matter of `number`."""
    return [
        Probe(name, where_present([name], pl.col(name).is_finite()), (name,), _within(name))
        for name in view.names
        if view.is_number(name)
    ]


def _number(view: View) -> list[Probe]:
    return _each(view, lambda n: pl.lit(True) if view.is_number(n) else pl.col(n).is_null())


def _integer(view: View) -> list[Probe]:
    def whole(name: str) -> pl.Expr:
        if view.schema[name] in INTEGERS:
            return pl.lit(True)
        if not view.is_number(name):
            return pl.col(name).is_null()
        return where_present([name], number(name) == number(name).floor())

    return _each(view, whole)


def _at_least(view: View) -> list[Probe]:
    least = view.param("min")
    low = bound(least)
    return _numbers(view, lambda n: exact(view, n) >= low, lambda n: _within(n, low=least))


def _between(view: View) -> list[Probe]:
    least, most = view.param("min"), view.param("max")
    low, high = bound(least), bound(most)
    return _numbers(
        view, lambda n: exact(view, n).is_between(low, high), lambda n: _within(n, least, most)
    )


def _one_of(view: View) -> list[Probe]:
    values = view.param("values")

    def among(name: str) -> pl.Expr:
        if view.is_number(name):
            numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
            equal = [exact(view, name) == bound(value) for value in numbers]
        else:
            kind = str if view.schema[name] == pl.String else bool
            equal = [pl.col(name) == value for value in values if isinstance(value, kind)]
        return where_present([name], pl.any_horizontal(equal) if equal else pl.lit(False))

    return _each(view, among)


def _none_of(view: View) -> list[Probe]:
    return [Probe(p.key, ~p.ok | pl.col(p.key).is_null(), p.shown) for p in _one_of(view)]


def _at_most(view: View) -> list[Probe]:
    most = view.param("max")
    high = bound(most)
    return _numbers(view, lambda n: exact(view, n) <= high, lambda n: _within(n, high=most))


def _nonzero(view: View) -> list[Probe]:
    return _numbers(view, lambda n: number(n) != 0.0)


def _boolean(view: View) -> list[Probe]:
    return _each(view, lambda n: pl.lit(True) if _is(view, n, pl.Boolean) else pl.col(n).is_null())


def _text(view: View) -> list[Probe]:
    return _each(view, lambda n: pl.lit(True) if _is(view, n, pl.String) else pl.col(n).is_null())


def _is(view: View, name: str, kind: type[pl.DataType]) -> bool:
    return view.schema[name] == kind


def _matches(view: View) -> list[Probe]:
    """Distinct texts are few, so each is held against the pattern once, by Python's own rules."""
    match = re.compile(view.param("regex")).fullmatch

    def fits(name: str) -> pl.Expr:
        if not _is(view, name, pl.String):
            return pl.col(name).is_null()
        texts = view.frame.get_column(name).drop_nulls().unique()
        return where_present([name], pl.col(name).is_in([text for text in texts if match(text)]))

    return _each(view, fits)


def _unset(view: View) -> list[Probe]:
    def empty(name: str) -> pl.Expr:
        said = pl.col(name).is_not_null()
        return ~(said & (pl.col(name) != "")) if _is(view, name, pl.String) else ~said

    return _each(view, empty)


def _reasoned(view: View) -> list[Probe]:
    """A value, or the reason why there is none; one that is never written needs it as well."""
    out = []
    for name in view.names:
        reason = f"{view.param('reasons')}{name}"
        said = pl.lit(False)
        if view.has(reason) and _is(view, reason, pl.String):
            said = (pl.col(reason) != "").fill_null(False)
        there = pl.col(name).is_not_null() if view.has(name) else pl.lit(False)
        shown = tuple(key for key in (name, reason) if view.has(key))
        out.append(Probe(name, there | said, shown))
    return out


_BOUND = (int, float)


def _compiles(params: Mapping[str, Any]) -> str:
    try:
        re.compile(params["regex"])
    except re.error as error:
        return f"regex {params['regex']!r}: {error}"
    return ""


CHECKS = (
    Check("present", "cells", "the key is there in every row", build=_present),
    Check("finite", "cells", "no NaN and no infinity", build=_finite),
    Check("number", "cells", "a number; not a string, not a boolean", build=_number),
    Check("integer", "cells", "a whole number", build=_integer),
    Check("boolean", "cells", "true or false; not a number, not a string", build=_boolean),
    Check("text", "cells", "a string", build=_text),
    Check("nonzero", "cells", "not exactly 0", build=_nonzero),
    Check("at_least", "cells", "not below `min`", {"min": _BOUND}, build=_at_least),
    Check("at_most", "cells", "not above `max`", {"max": _BOUND}, build=_at_most),
    Check(
        "between", "cells", "within [`min`, `max`]",
        {"min": _BOUND, "max": _BOUND}, build=_between, problem=rising("min", "max"),
    ),
    Check("one_of", "cells", "one of `values`", {"values": (list,)}, build=_one_of),
    Check("none_of", "cells", "none of `values`", {"values": (list,)}, build=_none_of),
    Check(
        "matches", "cells", "a string that `regex` matches in full",
        {"regex": (str,)}, build=_matches, problem=_compiles,
    ),
    Check("unset", "cells", "absent, null or an empty string", build=_unset),
    Check(
        "reasoned", "cells", "a value, or the reason why there is none under the same name after "
        "`reasons`",
        {"reasons": (str,)}, build=_reasoned,
    ),
)  # fmt: skip
