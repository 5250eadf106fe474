"""What all telemetry of a run shows together, for rules that hold a checkpoint against it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from trueup.gates.documents.run import Column, Run


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps that telemetry covers, and how far apart its rows are."""

    first: int
    last: int
    interval: int


def steps_of(run: Run) -> Steps | None:
    """The steps of all tables that have any."""
    known = [
        (table.first_step, table.last_step, table.rows)
        for table in run.tables
        if table.first_step is not None and table.last_step is not None
    ]
    if not known:
        return None
    intervals = [math.ceil((last - first) / (rows - 1)) for first, last, rows in known if rows > 1]
    return Steps(
        min(first for first, _, _ in known),
        max(last for _, last, _ in known),
        max(1, *intervals) if intervals else 1,
    )


def columns_like(run: Run, pattern: str) -> list[tuple[str, Column]]:
    """The columns that hold a value and whose name matches in full."""
    match = re.compile(pattern, re.DOTALL).fullmatch
    return [
        (name, column)
        for table in run.tables
        for name, column in table.columns.items()
        if column.count and match(name)
    ]


def highest(columns: list[tuple[str, Column]]) -> float | None:
    """The largest value of several columns; None if none of them holds a number."""
    known = [column.high for _, column in columns if isinstance(column.high, int | float)]
    finite = [value for value in known if math.isfinite(value)]
    return max(finite, default=None)
