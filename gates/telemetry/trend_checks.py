"""Checks of where a metric is going: a loss that ends above its start, and jumps on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.params import Number, asks, at_least
from trueup.gates.telemetry.probe import Check, Probe, RunResult, View, number, where_present


@dataclass(slots=True)
class _Windows:
    """Means of windows of so many rows: the first, the worst after the warm-up, and the last."""

    size: int
    warmup: int
    rows: int = 0  # finite values seen
    start: float | None = None
    worst: tuple[float, int] | None = None  # mean, and the row where its window begins
    tail: np.ndarray[Any, np.dtype[np.float64]] = field(default_factory=lambda: np.empty(0))

    def take(self, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        """More rows. Windows overlap: one ends in each row, so a fall at the end is seen too."""
        joined = np.concatenate([self.tail, values])
        first = self.rows - len(self.tail)  # the row at which `joined` begins
        self.rows += len(values)
        if len(joined) >= self.size:
            sums = np.convolve(joined, np.ones(self.size), mode="valid") / self.size
            if self.start is None:
                self.start = float(sums[0])
            begins = first + np.arange(len(sums))
            late = sums[begins >= max(self.warmup, self.size)]
            if len(late):
                at = int(np.argmax(late))
                mean = float(late[at])
                row = int(begins[begins >= max(self.warmup, self.size)][at])
                if self.worst is None or mean > self.worst[0]:
                    self.worst = (mean, row)
        self.tail = joined[len(joined) - min(len(joined), self.size - 1) :]


def _note_means(view: View) -> None:
    windows: dict[str, _Windows] = view.state.setdefault("windows", {})
    for name in (name for name in view.names if view.is_number(name)):
        seen = view.frame.get_column(name).cast(pl.Float64).drop_nulls().to_numpy()
        if name not in windows:
            windows[name] = _Windows(view.param("window"), view.param("warmup"))
        windows[name].take(seen[np.isfinite(seen)])


def _below_start(rule: Rule, state: dict[str, Any]) -> list[RunResult]:
    out = []
    size = rule.params["window"]
    for name, windows in state.get("windows", {}).items():
        if windows.start is None or windows.worst is None:
            state["reason"] = f"fewer than {max(rule.params['warmup'], size) + size} rows"
            continue
        mean, row = windows.worst
        got = (
            f"a mean of {show(mean)} over rows {row + 1} to {row + size}, "
            f"{show(windows.start)} over the first {size}"
        )
        out.append(RunResult(name, mean <= windows.start, got))
    return out


def _no_spike(view: View) -> list[Probe]:
    """Not more than `factor` times the mean of the window before. Rows are counted as they come."""
    size, factor = view.param("window"), float(view.param("factor"))
    tails: dict[str, pl.Series] = view.state.setdefault("tails", {})
    out = []
    for name in (name for name in view.names if view.is_number(name)):
        here = view.frame.select(number(name).alias("x")).to_series()
        finite = here.is_finite().fill_null(False)
        known, places = here.filter(finite), finite.arg_true()
        before = tails.get(name, pl.Series("x", [], dtype=pl.Float64))
        joined = pl.concat([before, known])
        means = joined.rolling_mean(size, min_samples=size).shift(1).slice(len(before))
        high = (known > means * factor) & (means > 0)
        bad = places.filter(high.fill_null(False)).to_list()
        tails[name] = joined.tail(size)
        ok = ~pl.int_range(pl.len()).is_in(bad) if bad else pl.lit(True)
        out.append(Probe(name, where_present([name], ok), (name,)))
    return out


def _above_one(params: Any) -> str:
    factor = params["factor"]
    return "" if factor > 1 and math.isfinite(factor) else f"factor is {factor!r}, expected above 1"


_COUNT = (int,)
CHECKS = (
    Check(
        "below_start", "cells", "after `warmup` rows, no mean of `window` rows is above that of "
        "the first ones",
        {"window": _COUNT, "warmup": _COUNT}, observe=_note_means, finish=_below_start,
        problem=asks(at_least(1, "window"), at_least(0, "warmup")),
    ),
    Check(
        "no_spike", "cells", "not above `factor` times the mean of the `window` rows before",
        {"window": _COUNT, "factor": Number}, build=_no_spike,
        problem=asks(at_least(1, "window"), _above_one),
    ),
)  # fmt: skip
