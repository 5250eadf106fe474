"""Checks of what is missing between rows, and of rows that a resumed run writes a second time."""

from __future__ import annotations

from typing import Any

import polars as pl

from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.closeness import close
from trueup.gates.telemetry.groups import as_text
from trueup.gates.telemetry.params import (
    BY,
    RESUME,
    Number,
    asks,
    at_least,
    listed,
    setting_number,
)
from trueup.gates.telemetry.past import Past
from trueup.gates.telemetry.probe import Check, RunResult, View

MAX_DISTANCES = 10_000  # distinct ones that are remembered
KEPT = 200_000  # rows that a resumed run can be compared with


def _distances(view: View) -> None:
    """How far apart rows are: each distance with its count and the row where it was first seen."""
    name = view.names[0]
    if not view.is_number(name):
        return
    past = Past(view, [name])
    value = past.value(name).cast(pl.Float64)
    since = past.before(name).cast(pl.Float64).fill_null(past.declared)
    seen = past.frame.select((value - since).alias("distance"), since.alias("from")).filter(
        pl.col("distance") > 0
    )
    past.advance()
    view.state["interval"] = setting_number(view, "interval")
    known: dict[float, list[float]] = view.state.setdefault("distances", {})
    counted = seen.group_by("distance", maintain_order=True).agg(
        pl.len().alias("count"), pl.col("from").first()
    )
    for distance, count, start in counted.iter_rows():
        if distance in known:
            known[distance][0] += count
        elif len(known) < MAX_DISTANCES:
            known[distance] = [count, start]


def _plain(value: float) -> str:
    return show(int(value) if value == int(value) else value)


def _regular(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    known: dict[float, list[float]] = state.get("distances", {})
    if not known:
        state["reason"] = "fewer than two rows"
        return []
    least = rule.params.get("min_rows", 1)
    if state.get("interval") is None and sum(count for count, _ in known.values()) < least:
        state["reason"] = f"no interval, and fewer than {least} distances"
        return []
    usual = max(known, key=lambda distance: (known[distance][0], -distance))
    interval = state.get("interval") or usual
    wide = sorted(
        (start, distance, count)
        for distance, (count, start) in known.items()
        if distance > interval
    )
    if not wide:
        return [RunResult(rule.keys[0], True, "")]
    start, distance, _ = wide[0]
    total = int(sum(count for _, _, count in wide))
    got = (
        f"from {_plain(start)} to {_plain(start + distance)}, with rows every "
        f"{_plain(interval)}; {total} gap{'s' if total > 1 else ''} in all"
    )
    return [RunResult(rule.keys[0], False, got, int(start))]


def _repeats(view: View) -> None:
    """Compare the rows of a resumed segment with those of the same step before it."""
    step = view.param("step")
    if not view.is_number(step):
        return
    past = Past(view, [step])
    metrics = [name for name in view.names if view.is_number(name) and name != step]
    groups = [name for name in view.rule.params.get("by", ()) if view.has(name)]
    rows = past.frame.select(
        past.value(step).cast(pl.Float64).alias("step"),
        (past.declared.is_not_null() & (past.value(step) <= past.furthest)).alias("again"),
        *(pl.col(name).cast(pl.Float64).alias(f"m:{name}") for name in metrics),
        *(as_text(view, name).alias(f"by:{name}") for name in groups),
    ).filter(pl.col("step").is_not_null())  # fmt: skip
    past.advance()
    before: pl.DataFrame | None = view.state.get("rows")
    every = rows if before is None else pl.concat([before, rows], how="diagonal_relaxed")
    gone = view.state.get("gone", 0)  # rows that are no longer kept
    if rows.get_column("again").fill_null(False).any():
        numbered = every.with_row_index("at", offset=gone).with_columns(pl.col("at").cast(pl.Int64))
        new = gone + every.height - rows.height
        _compare(view, numbered, new, ["step", *(f"by:{n}" for n in groups)])
    view.state["rows"] = every.tail(KEPT)
    view.state["gone"] = gone + max(0, every.height - KEPT)


def _compare(view: View, every: pl.DataFrame, new: int, same: list[str]) -> None:
    """Hold the repeated rows from `new` on against the last earlier row of the same step."""
    metrics = [name for name in every.columns if name.startswith("m:")]
    pairs = every.with_columns(
        pl.col("at").shift(1).over(same).alias("earlier"),
        *(pl.col(name).shift(1).over(same).alias(f"was {name}") for name in metrics),
    ).filter((pl.col("at") >= new) & pl.col("again"))
    near = (pl.col("at") - pl.col("earlier") <= KEPT).fill_null(False)
    lost = pairs.filter(~near & (pl.col("at") >= KEPT)).height
    view.state["lost"] = view.state.get("lost", 0) + lost
    pairs = pairs.filter(near)
    rel = float(view.rule.params.get("rel", 0.0))
    found: dict[str, list[Any]] = view.state.setdefault("found", {})
    for name in metrics:
        one, two = pl.col(f"was {name}"), pl.col(name)
        both = pairs.filter(one.is_not_null() & two.is_not_null())
        other = both.filter(~close(one, two, rel))
        entry = found.setdefault(name[2:], [0, 0, None])
        entry[0] += both.height
        entry[1] += other.height
        if other.height and entry[2] is None:
            row = other.row(0, named=True)
            entry[2] = (row["step"], row[f"was {name}"], row[name])


def _agrees(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    found: dict[str, list[Any]] = state.get("found", {})
    out = []
    for name, (both, other, first) in found.items():
        if other:
            step, one, two = first
            got = (
                f"{show(one)} and, after the resume, {show(two)} at step {int(step)}; "
                f"{other} of {both} repeated steps differ"
            )
            out.append(RunResult(name, False, got, int(step)))
        elif both:
            out.append(RunResult(name, True, ""))
    if state.get("lost"):
        got = f"{state['lost']} repeated rows lie more than {KEPT} rows back"
        out.append(RunResult(rule.params["step"], None, got))
    if not out:
        state.setdefault("reason", "no step is repeated after a resume")
    return out


CHECKS = (
    Check(
        "regular", "cells", "no distance between rows is larger than `interval`; where none is "
        "given, than the usual one of at least `min_rows`",
        {"interval": (int, str), "min_rows": (int,), **BY, **RESUME},
        ("interval", "min_rows", *BY, *RESUME),
        observe=_distances, finish=_regular,
        problem=asks(listed("by"), at_least(1, "interval", "min_rows")),
    ),
    Check(
        "repeats_agree", "cells", "steps that a resumed run does again have the same values as "
        "before, within `rel`",
        {"step": (str,), "resume": (str,), "rel": Number, "config_step": (int,), **BY},
        ("rel", "config_step", *BY), observe=_repeats, finish=_agrees,
        problem=asks(listed("by"), at_least(0, "rel")),
    ),
)  # fmt: skip
