"""Checks of memories that are written chunk by chunk: gates, update periods, tokens used and lost.

What is logged for a step is either its last call or the sum over its calls: `agg`. Both are right,
and what holds for one need not hold for the other, so a profile says which it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from operator import add

import polars as pl

from trueup.gates.telemetry.cadence import Cadence, expected
from trueup.gates.telemetry.params import (
    Number,
    asks,
    at_least,
    choice,
    counts,
    listed,
    period_of,
)
from trueup.gates.telemetry.past import Past
from trueup.gates.telemetry.probe import Check, Probe, View, number, records, where_present


def _records(view: View, *wanted: str) -> Iterator[tuple[str, list[str]]]:
    """Prefix and columns of each record that has all of these fields, as numbers."""
    for prefix, fields in records(view).items():
        columns = [fields[field] for field in wanted if field in fields]
        if len(columns) == len(wanted) and all(view.is_number(name) for name in columns):
            yield prefix, columns


def _open_gate(view: View) -> list[Probe]:
    threshold = view.config.get(view.param("threshold"))
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        view.state["reason"] = f"{view.param('threshold')} is no number"
        return []
    low = threshold - abs(threshold) * float(view.param("rel"))
    out = []
    for _, columns in _records(view, view.param("count"), view.param("value")):
        ok = (number(columns[0]) <= 0) | (number(columns[1]) >= low)
        out.append(Probe(columns[1], where_present(columns, ok), tuple(columns)))
    return out


def _chunked(view: View) -> list[Probe]:
    """tokens = period * (updates - flushes) + flushed, with one period for the whole run.

    Unless `periods` gives the period, the first row with full chunks only tells it, and later rows
    must agree. A call flushes at most once; a sum over calls at least so often that every flush
    stays below the period.
    """
    wanted = [view.param(name) for name in ("tokens", "updates", "flushed", "pending")]
    known: dict[str, float] = view.state.setdefault("periods", {})
    summed = view.rule.params.get("agg", "last") == "sum"
    out = []
    for prefix, columns in _records(view, *wanted):
        tokens, updates, flushed, pending = (number(name) for name in columns)
        full = updates - (flushed > 0).cast(pl.Float64)
        period = period_of(view, prefix) or known.get(prefix)
        if period is None:
            sure = (full > 0) & (flushed == 0) if summed else full > 0
            told = view.frame.select(((tokens - flushed) / full).filter(sure))
            seen = told.to_series().drop_nulls()
            if not len(seen):
                continue
            period = known[prefix] = float(seen[0])
        if period < 1 or period != math.floor(period):
            ok = (full <= 0) | ((tokens - flushed) / full != period)  # the first row is at fault
        elif summed:
            ok = _summed_calls(tokens, updates, flushed, period)
        else:
            whole = tokens == period * full + flushed
            ok = whole & (flushed < period) & (pending < period)
        out.append(Probe(columns[0], where_present(columns, ok), tuple(columns)))
    return out


def _summed_calls(tokens: pl.Expr, updates: pl.Expr, flushed: pl.Expr, period: float) -> pl.Expr:
    full = (tokens - flushed) / period
    flushes = updates - full
    least = (flushed / max(period - 1, 1)).ceil()
    return (full == full.floor()) & flushes.is_between(least, flushed)


def _chunk_bounds(view: View) -> list[Probe]:
    """Without a key for flushed tokens: an update takes 1 to `period` of them, a full call more."""
    summed = view.rule.params.get("agg", "last") == "sum"
    out = []
    for prefix, columns in _records(view, view.param("tokens"), view.param("updates")):
        tokens, updates = (number(name) for name in columns)
        period = period_of(view, prefix)
        ok = updates <= tokens
        if period is not None:
            ok &= tokens <= period * updates
            if not summed:  # only the last chunk of a call may be a partial one
                ok &= (updates <= 0) | (tokens > period * (updates - 1))
        out.append(Probe(columns[0], where_present(columns, ok), tuple(columns)))
    return out


def _length(view: View) -> pl.Expr | None:
    """Positions presented in a row: a number, or the row's own key that counts them."""
    length = view.param("length")
    if not isinstance(length, str):
        return pl.lit(float(length))
    return number(length) if view.is_number(length) else None


def _cadence(view: View) -> list[Probe]:
    fields = [f for f in ("updates", "pending", "flushed") if f in view.rule.params]
    length, shape = _length(view), Cadence.of(view)
    if length is None or shape is None:
        return []
    out = []
    for prefix, columns in _records(view, *(view.param(field) for field in fields)):
        period = period_of(view, prefix)
        if period is None:
            view.state.setdefault("reason", f"no update period is known for {prefix.rstrip('.')}")
            continue
        carried = _before(view, prefix, columns[1:2]) if shape.flush == "carry" else pl.lit(0.0)
        want = expected(shape, length, float(period), carried)
        got = dict(zip(fields, (number(name) for name in columns), strict=True))
        if _gated(view):
            ok = got["updates"] <= want.updates
        else:
            ok = pl.all_horizontal([got[field] == getattr(want, field) for field in fields])
        ok |= shape.says_nothing(length)
        shown = (*columns, *_length_key(view))
        out.append(Probe(columns[0], where_present(list(shown), ok), shown))
    return out


def _gated(view: View) -> bool:
    """Whether a gate may be in the way: unless the threshold is recorded as null."""
    key = view.rule.params.get("threshold")
    return key is not None and view.config.get(key, 0) is not None


def _length_key(view: View) -> tuple[str, ...]:
    key = view.param("length")
    return (key,) if isinstance(key, str) and view.has(key) else ()


def _before(view: View, prefix: str, columns: list[str]) -> pl.Expr:
    """What a level held back at the end of the row before; 0 at the start."""
    if not columns:
        return pl.lit(0.0)
    past = Past(view, columns)
    before = past.before(columns[0]).cast(pl.Float64).fill_null(0.0)
    past.advance()
    return before


def _conserved(view: View) -> list[Probe]:
    """Positions come in, and are used, held back or lost: nothing else can happen to them."""
    skipped = list(view.param("skipped"))
    length = _length(view)
    if length is None:
        return []
    out = []
    for prefix, columns in _records(view, view.param("tokens"), view.param("pending"), *skipped):
        tokens, pending = number(columns[0]), number(columns[1])
        carry = view.rule.params.get("carry", False)
        before = _before(view, prefix, columns[1:2]) if carry else pl.lit(0.0)
        lost = reduce(add, (number(name) for name in columns[2:]))
        open_ = length + before - tokens - pending - lost
        ok = open_ == 0
        if view.rule.params.get("cleared", False):
            period = period_of(view, prefix)
            ok = (open_ >= 0) & (open_ < (period if period is not None else length))
        shown = (*columns, *_length_key(view))
        out.append(Probe(columns[0], where_present(list(shown), ok), shown))
    return out


_TEXT = (str,)
_AGG = {"agg": _TEXT}
_PERIODS = {"periods": (dict, int, str)}
CHECKS = (
    Check(
        "open_gate", "record", "where `count` is positive, `value` reaches the `threshold`",
        {"value": _TEXT, "count": _TEXT, "threshold": _TEXT, "rel": Number}, build=_open_gate,
        problem=at_least(0, "rel"),
    ),
    Check(
        "chunked", "record", "tokens, updates, flushed and pending fit one update period, in one "
        "call (`agg = \"last\"`) or summed over calls (`\"sum\"`)",
        {**{name: _TEXT for name in ("tokens", "updates", "flushed", "pending")},
         **_AGG, **_PERIODS}, ("agg", "periods"), build=_chunked,
        problem=asks(choice("agg", "last", "sum"), counts("periods")),
    ),
    Check(
        "chunk_bounds", "record", "an update takes 1 to `periods` tokens, and in one call all but "
        "the last take the whole period",
        {"tokens": _TEXT, "updates": _TEXT, **_AGG, **_PERIODS}, ("agg", "periods"),
        build=_chunk_bounds, problem=asks(choice("agg", "last", "sum"), counts("periods")),
    ),
    Check(
        "cadence", "record", "updates, pending and flushed are what the length, the period and the "
        "flush mode make them; with a `threshold`, updates are not more",
        {"updates": _TEXT, "pending": _TEXT, "flushed": _TEXT, "length": (str, int),
         "threshold": _TEXT, "flush": _TEXT, "dense": (bool, str), "cleared": (bool,),
         "unfinished": (bool,), "call": (int, str), **_AGG, **_PERIODS},
        ("pending", "flushed", "threshold", "dense", "cleared", "unfinished", "call", "agg"),
        build=_cadence,
        problem=asks(choice("agg", "last", "sum"), counts("periods"), at_least(1, "call")),
    ),
    Check(
        "conserved", "record", "`length` and what was pending before (`carry`) is `tokens`, "
        "`pending` and the fields of `skipped`; with `cleared`, less than a period may be missing",
        {"tokens": _TEXT, "pending": _TEXT, "skipped": (list,), "length": (str, int),
         "carry": (bool,), "cleared": (bool,), **_PERIODS},
        ("carry", "cleared", "periods"), build=_conserved,
        problem=asks(listed("skipped"), counts("periods")),
    ),
)  # fmt: skip
