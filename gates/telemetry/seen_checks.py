"""Checks of totals over a run against what was presented to it."""

from __future__ import annotations

from typing import Any

from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.params import Number, asks, at_least
from trueup.gates.telemetry.probe import Check, RunResult, View, records, wide


def _totals(view: View) -> None:
    """Sum what each record used and what its rows presented, over the same rows."""
    batch, seen = view.param("batch"), view.param("seen")
    if not (view.is_number(batch) and view.is_number(seen)):
        view.state.setdefault("reason", f"{batch} and {seen} are not logged")
        return
    totals: dict[str, list[Any]] = view.state.setdefault("totals", {})
    presented = view.frame.select(
        wide(view, seen).sum().alias("seen"), wide(view, batch).sum().alias("rows")
    ).row(0)
    state = view.state
    state["seen"] = state.get("seen", 0) + presented[0]
    state["overlap"] = state.get("overlap", 0) + presented[1] * view.rule.params.get("overlap", 0)
    for prefix, fields in records(view).items():
        name = fields.get(view.param("tokens"))
        if name is None or not view.is_number(name):
            continue
        used = view.frame.select((wide(view, name) * wide(view, batch)).sum()).item()
        entry = totals.setdefault(prefix, [0])
        entry[0] += used


def _within_seen(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    out = []
    high = state.get("seen", 0) + state.get("overlap", 0)
    low = state.get("seen", 0) * rule.params.get("share", 0.0)
    for prefix, (used,) in state.get("totals", {}).items():
        got = f"{show(used)} tokens used of {show(state['seen'])} seen in the same rows"
        out.append(RunResult(f"{prefix}{rule.params['tokens']}", low <= used <= high, got))
    return out


CHECKS = (
    Check(
        "within_seen", "record", "over the run, `tokens` times `batch` is not above `seen`, plus "
        "`overlap` positions a row, and not below its `share`",
        {"tokens": (str,), "batch": (str,), "seen": (str,), "overlap": (int,), "share": Number},
        ("overlap", "share"), observe=_totals, finish=_within_seen,
        problem=asks(at_least(0, "overlap", "share")),
    ),
)  # fmt: skip
