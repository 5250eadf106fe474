"""Checks of one column at a time, row by row."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from trueup.gates.telemetry.probe import Check, Probe, View, number, where_present


def _each(view: View, ok: Callable[[str], pl.Expr]) -> list[Probe]:
    return [Probe(name, ok(name), (name,)) for name in view.names if view.has(name)]


def _numbers(view: View, ok: Callable[[str], pl.Expr]) -> list[Probe]:
    """The condition on numbers; a cell that is no number leaves it undetermined."""
    unknown = pl.lit(None, dtype=pl.Boolean)
    return _each(view, lambda n: where_present([n], ok(n) if view.is_number(n) else unknown))


def _present(view: View) -> list[Probe]:
    return [
        Probe(name, pl.col(name).is_not_null(), (name,))
        if view.has(name)
        else Probe(name, pl.lit(False), ())
        for name in view.names
    ]


def _finite(view: View) -> list[Probe]:
    """Columns of numbers only: what is no number is the matter of `number`."""
    return [
        Probe(name, where_present([name], pl.col(name).is_finite()), (name,))
        for name in view.names
        if view.is_number(name)
    ]


def _number(view: View) -> list[Probe]:
    return _each(view, lambda n: pl.lit(True) if view.is_number(n) else pl.col(n).is_null())


def _integer(view: View) -> list[Probe]:
    def whole(name: str) -> pl.Expr:
        if view.schema[name] == pl.Int64:
            return pl.lit(True)
        if not view.is_number(name):
            return pl.col(name).is_null()
        return where_present([name], number(name) == number(name).floor())

    return _each(view, whole)


def _at_least(view: View) -> list[Probe]:
    low = float(view.param("min"))
    return _numbers(view, lambda n: number(n) >= low)


def _between(view: View) -> list[Probe]:
    low, high = float(view.param("min")), float(view.param("max"))
    return _numbers(view, lambda n: number(n).is_between(low, high))


def _one_of(view: View) -> list[Probe]:
    values = view.param("values")

    def among(name: str) -> pl.Expr:
        kind = str if view.schema[name] == pl.String else (int, float)
        fitting = [value for value in values if isinstance(value, kind)]
        return where_present([name], pl.col(name).is_in(fitting) if fitting else pl.lit(False))

    return _each(view, among)


def _increasing(view: View) -> list[Probe]:
    name = view.names[0]
    if not view.is_number(name):
        return []
    before = pl.col(name).shift(1).forward_fill()
    last = view.state.get("last")
    if last is not None:
        before = before.fill_null(last)
    known = view.frame.get_column(name).drop_nulls()
    if len(known):
        view.state["last"] = known[-1]
    rises = pl.when(before.is_null()).then(True).otherwise(number(name) > before)
    return [Probe(name, where_present([name], rises), (name,))]


_BOUND = (int, float)
CHECKS = (
    Check("present", "cells", "the key is there in every row", build=_present),
    Check("finite", "cells", "no NaN and no infinity", build=_finite),
    Check("number", "cells", "a number; not a string, not a boolean", build=_number),
    Check("integer", "cells", "a whole number", build=_integer),
    Check("at_least", "cells", "not below `min`", {"min": _BOUND}, build=_at_least),
    Check(
        "between", "cells", "within [`min`, `max`]",
        {"min": _BOUND, "max": _BOUND}, build=_between,
    ),
    Check("one_of", "cells", "one of `values`", {"values": (list,)}, build=_one_of),
    Check("increasing", "cells", "larger than in the row before", build=_increasing),
)  # fmt: skip
