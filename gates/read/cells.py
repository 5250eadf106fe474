"""Reports the cells of a batch that are not fit: the first of them by place, the rest by number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from trueup.gates.read.limits import Fault
from trueup.gates.read.rows.engine import Ints

_EXAMPLES = 5  # of one fault in one batch; the others are counted


@dataclass(frozen=True, slots=True)
class Places:
    """Where the rows of a batch stand: their numbers, lines (0: none), and steps."""

    numbers: Ints
    lines: Ints | None
    steps: pl.Series | None
    report: Callable[[Fault], None]

    def cells(
        self, kind: str, key: str | None, which: pl.Series, shown: Callable[[int], str]
    ) -> None:
        """A fault for each of the first cells, and one for all others, placed at the last."""
        places = which.arg_true().to_list()
        last = places[-1:] if len(places) > _EXAMPLES else []
        for at in [*places[:_EXAMPLES], *last]:
            count = len(places) - _EXAMPLES if [at] == last else 1
            line = None if self.lines is None else int(self.lines[at]) or None
            row = int(self.numbers[at])
            self.report(Fault(kind, shown(at), line, None, row, self._step(at), key, count))

    def _step(self, at: int) -> int | None:
        step = None if self.steps is None else self.steps[at]
        return step if isinstance(step, int) and not isinstance(step, bool) else None
