"""Checks within one record: the keys that share all of their names but the last part."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import polars as pl

from trueup.gates.telemetry.closeness import close
from trueup.gates.telemetry.params import Number, at_least, counts, listed, rising
from trueup.gates.telemetry.probe import (
    Check,
    Probe,
    View,
    exact,
    number,
    records,
    where_present,
)


def _all_numbers(view: View, columns: list[str]) -> bool:
    return all(view.is_number(name) for name in columns)


def _unless_nan(columns: list[str], ok: pl.Expr) -> pl.Expr:
    """Sums over columns pass over what is unknown: with a NaN among them nothing can be said."""
    known = [number(name).is_not_null() | pl.col(name).is_null() for name in columns]
    return pl.when(pl.all_horizontal(known)).then(ok).otherwise(None)


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
        slack = pl.when(slack.is_finite()).then(slack).otherwise(0.0)
        pairs = pairwise(names)
        ok = pl.all_horizontal([number(a) <= number(b) + slack for a, b in pairs])
        out.append(Probe(names[0], where_present(names, ok), tuple(names)))
    return out


def _zero_together(view: View) -> list[Probe]:
    wanted = list(view.param("fields"))
    out = []
    for fields in records(view).values():
        columns = [fields[field] for field in wanted if field in fields]
        if len(columns) == len(wanted) and _all_numbers(view, columns):
            zeros = pl.sum_horizontal([(number(n) == 0).cast(pl.Int64) for n in columns])
            known = pl.all_horizontal([number(n).is_not_null() for n in columns])
            ok = pl.when(known).then(zeros.is_in([0, len(columns)])).otherwise(None)
            out.append(Probe(columns[0], where_present(columns, ok), tuple(columns)))
    return out


def _not_above(view: View) -> list[Probe]:
    out = []
    for fields in records(view).values():
        pair = [fields[f] for f in (view.param("value"), view.param("limit")) if f in fields]
        if len(pair) == 2 and _all_numbers(view, pair):
            ok = exact(view, pair[0]) <= exact(view, pair[1])
            out.append(Probe(pair[0], where_present(pair, ok), tuple(pair)))
    return out


def _ratio_of(view: View) -> list[Probe]:
    """The quotient, or nothing where the denominator is 0: neither 0 nor infinity."""
    rel = float(view.param("rel"))
    out = []
    for fields in records(view).values():
        wanted = [fields.get(view.param(f)) for f in ("value", "numerator", "denominator")]
        value, above, below = wanted
        if value is None or above is None or below is None:
            continue
        triple = [value, above, below]
        if not _all_numbers(view, triple):
            continue
        near = close(number(value), number(above) / number(below), rel)
        ok = pl.when(number(below) == 0).then(pl.col(value).is_null()).otherwise(
            where_present([value], near)
        )  # fmt: skip
        out.append(Probe(value, where_present([above, below], ok), (above, below, value)))
    return out


def _ratio_within(view: View) -> list[Probe]:
    low, high = float(view.param("min")), float(view.param("max"))
    out = []
    for fields in records(view).values():
        pair = [fields[f] for f in (view.param("numerator"), view.param("denominator"))
                if f in fields]  # fmt: skip
        if len(pair) == 2 and _all_numbers(view, pair):
            above, below = number(pair[0]), number(pair[1])
            ok = (below <= 0) | (above <= 0) | (above / below).is_between(low, high)
            out.append(Probe(pair[0], where_present(pair, ok), tuple(pair)))
    return out


def _length(view: View) -> list[Probe]:
    """Each list that is there has its items 0, 1, ... and no others."""
    wanted = view.param("length")
    out = []
    for prefix, fields in records(view).items():
        length = _length_of(prefix, wanted)
        if length is None:
            continue
        there = pl.any_horizontal([pl.col(name).is_not_null() for name in fields.values()])
        right = [str(index) for index in range(length)]
        every = [
            pl.col(fields[index]).is_not_null() if index in fields else pl.lit(False)
            for index in right
        ]
        extra = [pl.col(name).is_null() for index, name in fields.items() if index not in right]
        ok = ~there | pl.all_horizontal([*every, *extra])
        out.append(Probe(prefix.rstrip("[."), ok, tuple(fields.values())))
    return out


def _length_of(prefix: str, wanted: int | Mapping[str, int]) -> int | None:
    """One length for all lists, or one for each by its name."""
    if isinstance(wanted, int):
        return wanted
    return wanted.get(prefix.rstrip("[.").rsplit(".", 1)[-1])


def _parts_of_whole(view: View) -> list[Probe]:
    """Shares of 1, or percentages rounded to whole ones: each may be off by half a percent."""
    out = []
    for prefix, fields in records(view).items():
        columns = list(fields.values())
        if not _all_numbers(view, columns):
            continue
        there = pl.any_horizontal([pl.col(name).is_not_null() for name in columns])
        total = pl.sum_horizontal([number(name).fill_null(0.0) for name in columns])
        shares = (total - 1).abs() <= float(view.param("abs"))
        percent = (total - 100).abs() <= float(view.param("percent")) * len(columns)
        positive = pl.all_horizontal([(number(name) >= 0).fill_null(True) for name in columns])
        ok = ~there | _unless_nan(columns, positive & (shares | percent))
        out.append(Probe(prefix.rstrip("[."), ok, tuple(columns)))
    return out


def _spread_out(view: View) -> list[Probe]:
    """The entropy of the shares is not below a part of what an even choice has."""
    out = []
    for prefix, fields in records(view).items():
        columns = list(fields.values())
        if len(columns) < 2 or not _all_numbers(view, columns):
            continue
        total = pl.sum_horizontal([number(name) for name in columns])
        parts = [number(name) / total for name in columns]
        terms = [pl.when(p > 0).then(-p * p.log()).otherwise(0.0) for p in parts]
        even = pl.lit(float(len(columns))).log()
        entropy = pl.sum_horizontal(terms) >= float(view.param("min_entropy")) * even
        largest = pl.max_horizontal(parts) <= float(view.param("max_share"))
        ok = _unless_nan(columns, pl.when(total > 0).then(entropy & largest).otherwise(None))
        ok = where_present(columns, ok)
        out.append(Probe(prefix.rstrip("[."), ok, tuple(columns)))
    return out


def _mean_of(view: View) -> list[Probe]:
    mean, slack = float(view.param("mean")), float(view.param("abs"))
    out = []
    for prefix, fields in records(view).items():
        columns = list(fields.values())
        if _all_numbers(view, columns):
            average = pl.mean_horizontal([number(name) for name in columns])
            ok = _unless_nan(columns, (average - mean).abs() <= slack)
            ok = where_present(columns, ok)
            out.append(Probe(prefix.rstrip("[."), ok, tuple(columns)))
    return out


_KEYS = {"value": (str,)}
CHECKS = (
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
        "zero_together", "record", "the `fields` are all 0, or none of them is",
        {"fields": (list,)}, build=_zero_together, problem=listed("fields"),
    ),
    Check(
        "not_above", "record", "the field `value` is not above the field `limit`",
        {**_KEYS, "limit": (str,)}, build=_not_above,
    ),
    Check(
        "ratio_of", "record", "`value` is `numerator` / `denominator`, within `rel`, and absent "
        "where the denominator is 0",
        {**_KEYS, "numerator": (str,), "denominator": (str,), "rel": Number}, build=_ratio_of,
        problem=at_least(0, "rel"),
    ),
    Check(
        "ratio_within", "record", "`numerator` / `denominator` within [`min`, `max`], where both "
        "are positive",
        {"numerator": (str,), "denominator": (str,), "min": Number, "max": Number},
        build=_ratio_within, problem=rising("min", "max"),
    ),
    Check(
        "length", "record", "a list has `length` items: one number, or one for each list by name",
        {"length": (int, dict)}, build=_length, problem=counts("length"),
    ),
    Check(
        "parts_of_whole", "record", "the fields are shares that sum to 1, within `abs`, or "
        "percentages that sum to 100, within `percent` for each",
        {"abs": Number, "percent": Number}, build=_parts_of_whole,
        problem=at_least(0, "abs", "percent"),
    ),
    Check(
        "spread_out", "record", "shares with an entropy of at least `min_entropy` of an even "
        "choice's, none above `max_share`",
        {"min_entropy": Number, "max_share": Number}, build=_spread_out,
        problem=at_least(0, "min_entropy", "max_share"),
    ),
    Check(
        "mean_of", "record", "the fields have the mean `mean`, within `abs`",
        {"mean": Number, "abs": Number}, build=_mean_of, problem=at_least(0, "abs"),
    ),
)  # fmt: skip
