"""Checks that hold several keys of one row against each other."""

from __future__ import annotations

import math
from functools import reduce
from itertools import pairwise

import polars as pl

from trueup.gates.telemetry.probe import (
    Check,
    Probe,
    View,
    exact,
    number,
    records,
    where_present,
    wide,
)


def _all_numbers(view: View, names: list[str]) -> bool:
    return all(view.is_number(name) for name in names)


def _exp_of(view: View) -> list[Probe]:
    value, exponent = view.param("value"), view.param("exponent")
    if not _all_numbers(view, [value, exponent]):
        return []
    rel, clamp = float(view.param("rel")), float(view.param("clamp"))
    ratio = number(value) / number(exponent).exp()
    clamped = number(exponent) >= math.log(clamp)
    ok = pl.when(clamped).then(number(value) >= clamp * (1 - rel)).otherwise(
        (ratio - 1).abs() <= rel
    )  # fmt: skip
    return [Probe(value, where_present([value, exponent], ok), (value, exponent))]


def _product_of(view: View) -> list[Probe]:
    value, factors = view.param("value"), list(view.param("factors"))
    names = [value, *factors]
    if not _all_numbers(view, names):
        return []
    product = reduce(lambda left, right: left * right, (wide(view, name) for name in factors))
    ok = where_present(names, exact(view, value) == product)
    return [Probe(value, ok, tuple(names))]


def _sum_of(view: View) -> list[Probe]:
    value, terms = view.param("value"), list(view.param("terms"))
    optional = [n for n in view.rule.params.get("optional_terms", ()) if view.is_number(n)]
    names = [value, *terms]
    if not _all_numbers(view, names):
        return []
    parts = [wide(view, n) for n in terms] + [wide(view, n).fill_null(0) for n in optional]
    total = reduce(lambda left, right: left + right, parts)
    ok = where_present(names, exact(view, value) == total)
    return [Probe(value, ok, (*names, *optional))]


def _iff(view: View) -> list[Probe]:
    left, right = view.param("left"), view.param("right")
    if not (view.has(left) and view.has(right)):
        return []
    is_left = pl.col(left) == view.param("left_is")
    is_right = pl.col(right) == view.param("right_is")
    return [Probe(left, where_present([left, right], is_left == is_right), (left, right))]


def _record(view: View) -> list[Probe]:
    required = list(view.param("required"))
    out = []
    for prefix, fields in records(view).items():
        there = pl.any_horizontal([pl.col(name).is_not_null() for name in fields.values()])
        for field in required:
            name = f"{prefix}{field}"
            has = pl.col(name).is_not_null() if field in fields else pl.lit(False)
            shown = (name,) if field in fields else ()
            out.append(Probe(name, ~there | has, shown))
    return out


def _same(view: View) -> list[Probe]:
    wanted = list(view.param("fields"))
    out = []
    for fields in records(view).values():
        names = [fields[field] for field in wanted if field in fields]
        if not _all_numbers(view, names):
            continue
        for name in names[1:]:
            ok = where_present([names[0], name], exact(view, names[0]) == exact(view, name))
            out.append(Probe(name, ok, (names[0], name)))
    return out


def _zero_when_zero(view: View) -> list[Probe]:
    count, then = view.param("count"), list(view.param("then"))
    out = []
    for fields in records(view).values():
        for field in then:
            names = [fields[f] for f in (count, field) if f in fields]
            if len(names) == 2 and _all_numbers(view, names):
                ok = (number(names[0]) != 0) | (number(names[1]) == 0)
                out.append(Probe(names[1], where_present(names, ok), tuple(names)))
    return out


def _positive_while(view: View) -> list[Probe]:
    out = []
    for fields in records(view).values():
        names = [fields[f] for f in (view.param("value"), view.param("while")) if f in fields]
        if len(names) == 2 and _all_numbers(view, names):
            ok = (number(names[1]) <= 0) | (number(names[0]) > 0)
            out.append(Probe(names[0], where_present(names, ok), tuple(names)))
    return out


def _ordered(view: View) -> list[Probe]:
    wanted, rel = list(view.param("fields")), float(view.param("rel"))
    out = []
    for fields in records(view).values():
        names = [fields[field] for field in wanted if field in fields]
        if len(names) != len(wanted) or not _all_numbers(view, names):
            continue
        slack = rel * pl.max_horizontal([number(name).abs() for name in names])
        pairs = pairwise(names)
        ok = pl.all_horizontal([number(a) <= number(b) + slack for a, b in pairs])
        out.append(Probe(names[0], where_present(names, ok), tuple(names)))
    return out


def _open_gate(view: View) -> list[Probe]:
    threshold = view.config.get(view.param("threshold"))
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        return []
    low = threshold - abs(threshold) * float(view.param("rel"))
    out = []
    for fields in records(view).values():
        names = [fields[f] for f in (view.param("count"), view.param("value")) if f in fields]
        if len(names) == 2 and _all_numbers(view, names):
            ok = (number(names[0]) <= 0) | (number(names[1]) >= low)
            out.append(Probe(names[1], where_present(names, ok), tuple(names)))
    return out


def _chunked(view: View) -> list[Probe]:
    """tokens = period * (updates - [flushed > 0]) + flushed, with one period for the whole run.

    The period is not in the log: the first row with a full chunk tells it, later rows must agree.
    """
    wanted = [view.param(name) for name in ("tokens", "updates", "flushed", "pending")]
    periods: dict[str, float] = view.state.setdefault("periods", {})
    out = []
    for prefix, fields in records(view).items():
        names = [fields[field] for field in wanted if field in fields]
        if len(names) < len(wanted) or not _all_numbers(view, names):
            continue
        tokens, updates, flushed, pending = (number(name) for name in names)
        full = updates - (flushed > 0).cast(pl.Float64)
        if prefix not in periods:
            told = view.frame.select(((tokens - flushed) / full).filter(full > 0)).to_series()
            told = told.drop_nulls()
            if not len(told):
                continue
            periods[prefix] = float(told[0])
        period = periods[prefix]
        if period < 1 or period != math.floor(period):
            ok = (full <= 0) | ((tokens - flushed) / full != period)  # the first row is at fault
        else:
            whole = tokens == period * full + flushed
            ok = whole & (flushed < period) & (pending < period)
        out.append(Probe(names[0], where_present(names, ok), tuple(names)))
    return out


_KEYS = {"value": (str,)}
CHECKS = (
    Check(
        "exp_of", "row", "`value` is exp of `exponent`, within `rel`, or clamped at `clamp`",
        {**_KEYS, "exponent": (str,), "rel": (int, float), "clamp": (int, float)}, build=_exp_of,
    ),
    Check(
        "product_of", "row", "`value` is the product of `factors`",
        {**_KEYS, "factors": (list,)}, build=_product_of,
    ),
    Check(
        "sum_of", "row", "`value` is the sum of `terms` and of the `optional_terms` that are there",
        {**_KEYS, "terms": (list,), "optional_terms": (list,)}, ("optional_terms",), build=_sum_of,
    ),
    Check(
        "iff", "row", "`left` is `left_is` exactly when `right` is `right_is`",
        {"left": (str,), "right": (str,), "left_is": (str, bool), "right_is": (str, bool)},
        build=_iff,
    ),
    Check(
        "record", "record", "a record that is there has all `required` fields",
        {"required": (list,)}, build=_record,
    ),
    Check(
        "same", "record", "all `fields` that are there are equal",
        {"fields": (list,)}, build=_same,
    ),
    Check(
        "zero_when_zero", "record", "where `count` is 0, the fields of `then` are 0",
        {"count": (str,), "then": (list,)}, build=_zero_when_zero,
    ),
    Check(
        "positive_while", "record", "where the field `while` is positive, `value` is positive",
        {**_KEYS, "while": (str,)}, build=_positive_while,
    ),
    Check(
        "ordered", "record", "the `fields` do not decrease, within `rel`",
        {"fields": (list,), "rel": (int, float)}, build=_ordered,
    ),
    Check(
        "open_gate", "record", "where `count` is positive, `value` reaches the `threshold`",
        {**_KEYS, "count": (str,), "threshold": (str,), "rel": (int, float)}, build=_open_gate,
    ),
    Check(
        "chunked", "record", "tokens, updates, flushed and pending fit one update period",
        {name: (str,) for name in ("tokens", "updates", "flushed", "pending")}, build=_chunked,
    ),
)  # fmt: skip
