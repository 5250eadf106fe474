"""Checks of monitors that count how often a value changed, and of values stuck at zero."""

from __future__ import annotations

from typing import Any

import polars as pl

from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.groups import crowded, in_words, room
from trueup.gates.telemetry.params import BY, Number, asks, at_least, listed
from trueup.gates.telemetry.past import Past
from trueup.gates.telemetry.probe import (
    Check,
    Probe,
    RunResult,
    View,
    number,
    records,
    where_present,
)


def _counted(view: View, *fields: str) -> list[tuple[str, list[str]]]:
    out = []
    for prefix, found in records(view).items():
        columns = [found[field] for field in fields if field in found]
        if len(columns) == len(fields) and all(view.is_number(name) for name in columns):
            out.append((prefix, columns))
    return out


def _fires(rate: str, count: str) -> pl.Expr:
    """How many of the observations fired: the first has no predecessor and cannot."""
    return number(rate) * pl.max_horizontal(number(count) - 1, pl.lit(1.0))


def _rate_of(view: View) -> list[Probe]:
    """rate = fires / max(1, n - 1), so rate times that is a whole number from 0 to n - 1."""
    slack = float(view.param("rel"))
    out = []
    for _, columns in _counted(view, view.param("rate"), view.param("count")):
        fires, most = _fires(*columns), pl.max_horizontal(number(columns[1]) - 1, pl.lit(0.0))
        near = (fires - fires.round()).abs() <= slack * pl.max_horizontal(fires.abs(), pl.lit(1.0))
        ok = near & (fires.round() >= 0) & (fires.round() <= most)
        out.append(Probe(columns[0], where_present(columns, ok), tuple(columns)))
    return out


def _rate_follows(view: View) -> list[Probe]:
    """Between two rows the fires grow by one where a change was seen, and else not.

    Where several observations lie between two rows they grow by at least one if the value is
    another one, and by no more than there were observations.
    """
    rel, slack = float(view.rule.params.get("rtol", 0.0)), float(view.rule.params.get("atol", 0.0))
    out = []
    for _, columns in _counted(view, *(view.param(f) for f in ("value", "rate", "count"))):
        value, rate, count = columns
        past = Past(view, [count, value, rate])
        seen = number(count) - past.before(count)
        apart = (number(value) - past.before(value)).abs()
        size = pl.max_horizontal(number(value).abs(), past.before(value).abs())
        near = apart.is_finite() & (apart <= rel * size + slack)
        changed = (number(value) != past.before(value)) & ~near
        was = past.before(rate) * pl.max_horizontal(past.before(count) - 1, pl.lit(1.0))
        grown = (_fires(rate, count) - was).round()
        least = changed.cast(pl.Float64)
        ok = (
            pl.when(seen.is_null() | (seen < 0)).then(True)
            .when(seen == 0).then((grown == 0) & ~changed)
            .when(seen == 1).then(grown == least)
            .otherwise(grown.is_between(least, seen))
        )  # fmt: skip
        ok = past.settle(where_present(columns, ok))
        out.append(Probe(rate, ok, (value, rate, count)))
    return out


def _last_rates(view: View) -> None:
    """The rate and the count that each group of each record ends with."""
    seen: dict[tuple[str, str], tuple[float, float]] = view.state.setdefault("rates", {})
    told = in_words(view)
    for _, columns in _counted(view, view.param("rate"), view.param("count")):
        rate, count = columns
        ends = (
            view.frame.select(
                told.alias("group"), number(rate).alias("r"), number(count).alias("n")
            )
            .drop_nulls(["r", "n"])
            .group_by("group", maintain_order=True)
            .agg(pl.col("r").last(), pl.col("n").last())
        )
        for group, last, n in ends.iter_rows():
            if room(view.state, seen, (rate, group)):
                seen[rate, group] = (last, n)


def _ends_within(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    least, low, high = (rule.params.get(name) for name in ("min_count", "above", "below"))
    out = []
    for (name, group), (last, n) in state.get("rates", {}).items():
        if n >= least:
            where = f" ({group})" if group else ""
            ok = (low is None or last > low) and (high is None or last < high)
            out.append(RunResult(name, ok, f"{show(last)} after {show(n)} observations{where}"))
    if not out:
        state["reason"] = f"fewer than {least} observations"
    return [*out, *crowded(rule, state)]


def _epochs(view: View) -> None:
    """For each column, group and epoch: whether every value was exactly 0, and the loss was not."""
    epoch = view.param("epoch")
    if not view.is_number(epoch):
        return
    loss = view.rule.params.get("loss")
    alive = number(loss) != 0 if loss is not None and view.is_number(loss) else pl.lit(True)
    columns = [name for name in view.names if view.is_number(name)]
    rows = view.frame.select(
        in_words(view).alias("group"), pl.col(epoch).alias("epoch"),
        alive.fill_null(True).alias("alive"),
        *(number(name).alias(f"v{i}") for i, name in enumerate(columns)),
    )  # fmt: skip
    ends = rows.group_by("group", "epoch", maintain_order=True).agg(
        *(pl.col(f"v{i}").count().alias(f"n{i}") for i in range(len(columns))),
        *(
            ((pl.col(f"v{i}") != 0) | ~pl.col("alive")).any(ignore_nulls=True).alias(f"o{i}")
            for i in range(len(columns))
        ),
    )
    for row in ends.iter_rows(named=True):
        for i, name in enumerate(columns):
            if row[f"n{i}"]:
                _take(view.state, (name, row["group"]), row["epoch"], not row[f"o{i}"])


def _take(state: dict[str, Any], place: tuple[str, str], epoch: float, dead: bool) -> None:
    """Follow the length of the present streak; an epoch may go on in the next batch."""
    seen: dict[tuple[str, str], list[Any]] = state.setdefault("streaks", {})
    if not room(state, seen, place):
        return
    entry = seen.setdefault(place, [None, 0, False, 0, None, None])
    last, streak, was_dead, longest, start, longest_start = entry
    if epoch == last:
        streak, dead = streak - was_dead, dead and was_dead
    if not dead:
        start = None
    elif start is None:
        start = epoch
    streak = streak + 1 if dead else 0
    if streak > longest:
        longest, longest_start = streak, start
    entry[:] = [epoch, streak, dead, longest, start, longest_start]


def _no_zero_streak(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    out = []
    for (name, group), (*_, longest, _, start) in state.get("streaks", {}).items():
        where = f" ({group})" if group else ""
        got = f"exactly 0 in {longest} consecutive epochs from epoch {show(start)} on{where}"
        out.append(RunResult(name, longest < rule.params["epochs"], got))
    return [*out, *crowded(rule, state)]


_TEXT = (str,)
CHECKS = (
    Check(
        "rate_of", "record", "`rate` times `count` - 1 is a whole number from 0 to `count` - 1, "
        "within `rel`",
        {"rate": _TEXT, "count": _TEXT, "rel": Number}, build=_rate_of, problem=at_least(0, "rel"),
    ),
    Check(
        "rate_follows", "record", "`rate` times `count` - 1 grows by one exactly where `value` "
        "changed, by more than `rtol` and `atol`",
        {"value": _TEXT, "rate": _TEXT, "count": _TEXT, "rtol": Number, "atol": Number, **BY},
        ("rtol", "atol", *BY), build=_rate_follows,
        problem=asks(listed("by"), at_least(0, "rtol", "atol")),
    ),
    Check(
        "ends_within", "record", "after at least `min_count` of `count`, the last `rate` of each "
        "group is above `above` and below `below`",
        {"rate": _TEXT, "count": _TEXT, "min_count": (int,), "above": Number, "below": Number,
         **BY}, ("above", "below", *BY), observe=_last_rates, finish=_ends_within,
        problem=asks(listed("by"), at_least(1, "min_count")),
    ),
    Check(
        "no_zero_streak", "cells", "not exactly 0 throughout `epochs` consecutive values of "
        "`epoch`, while `loss`, if it is logged, is not 0",
        {"epochs": (int,), "epoch": _TEXT, "loss": _TEXT, **BY}, ("loss", *BY),
        observe=_epochs, finish=_no_zero_streak, problem=asks(listed("by"), at_least(1, "epochs")),
    ),
)  # fmt: skip
