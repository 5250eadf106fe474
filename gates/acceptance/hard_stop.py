"""The regression hard stop, recomputed: 2N errors of one metric in a row end a run.

The series of evaluations says when the stop had to fire; the termination record says when it did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from trueup.gates.acceptance.config import HardStop, Watched
from trueup.gates.acceptance.exact import Number, parameter
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.paths import follow, parse_path

State = Literal["ok", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Firing:
    """The evaluation at which the counter of a metric reached its limit."""

    metric: str
    value: Number
    band: str
    consecutive: int
    epoch: int | None
    fold: int | None
    row: int  # of all rows of the series, from 0
    source: Input


@dataclass(slots=True)
class Counter:
    """Errors of one metric in a row."""

    watched: Watched
    count: int = 0


@dataclass(slots=True)
class Replay:
    """What a series leads to."""

    rows: int = 0
    broken: int = 0
    fired: list[Firing] = field(default_factory=list)  # at the first evaluation that had to stop
    warnings: list[Firing] = field(default_factory=list)
    after: int = 0  # evaluations after the stop


def replay(rows: list[Input], asked: HardStop) -> Replay:
    """Go through the evaluations as the run had to."""
    found = Replay()
    counters = [Counter(watched) for watched in asked.metric]
    before: tuple[int | None, int | None] | None = None
    for index, source in enumerate(rows):
        found.rows += 1
        here = (_whole(source, "fold"), _whole(source, "epoch"))
        if before is not None and _is_boundary(before, here, asked):
            for counter in counters:
                counter.count = 0
        before = here
        if found.fired:
            found.after += 1
            continue
        _row(source, index, here, counters, asked, found)
    return found


def _row(
    source: Input, index: int, here: tuple[int | None, int | None], counters: list[Counter],
    asked: HardStop, found: Replay,
) -> None:  # fmt: skip
    """One evaluation: each metric has a counter of its own."""
    for counter in counters:
        value = value_of(source, counter.watched)
        if value.flaw == "missing" and asked.missing == "skip":
            continue
        state, band = classify(value, counter.watched)
        if state == "error":
            counter.count += 1
        elif state == "ok" or asked.warn_resets:
            counter.count = 0
        if state != "error" or counter.count not in (asked.n_consec, 2 * asked.n_consec):
            continue
        firing = Firing(counter.watched.name, value, band, counter.count, here[1], here[0], index,
                        source)  # fmt: skip
        if counter.count == asked.n_consec:
            found.warnings.append(firing)
        else:
            found.fired.append(firing)


def _is_boundary(
    before: tuple[int | None, int | None], here: tuple[int | None, int | None], asked: HardStop
) -> bool:
    if asked.reset_at == "never":
        return False
    return before[0] != here[0] or (asked.reset_at == "epoch" and before[1] != here[1])


def value_of(source: Input, watched: Watched) -> Number:
    """The metric of one evaluation."""
    path = watched.path or _quoted(watched.name)
    hit = next(follow(source.data, parse_path(path)))
    return source.number(hit.pointer)


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def classify(value: Number, watched: Watched) -> tuple[State, str]:
    """The band a value lies in. What is no number is an error."""
    if value.exact is None:
        return "error", "not a number"
    for state, below, above in (
        ("error", watched.error_below, watched.error_above),
        ("warn", watched.warn_below, watched.warn_above),
    ):
        if below is not None and value.exact < parameter(below):
            return state, f"below {below}"  # type: ignore[return-value]
        if above is not None and value.exact > parameter(above):
            return state, f"above {above}"  # type: ignore[return-value]
    return "ok", "ok"


def _whole(source: Input, key: str) -> int | None:
    value = source.data.get(key) if isinstance(source.data, dict) else None
    return value if type(value) is int else None


def same_number(said: Number, real: Number) -> bool:
    """Whether a record repeats a metric's value; what is no number is recorded as null."""
    if real.exact is None:
        return said.exact is None
    return said.exact is not None and Fraction(said.exact) == real.exact
