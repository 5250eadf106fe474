"""Eq. 30-31 over a stream: which tokens update which level, when, and what happens to the rest.

Every level keeps the tokens it has seen since its last update (inputs, error signals, active
flags). A call is processed in segments that end at the next update of any level, so that no token
is evaluated at stale parameters; splitting a stream into calls of any lengths then changes
nothing (Q31.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.reference.errors import BadInputs
from trueup.reference.symbols import F64

Phase = Literal["end", "start"]
Flush = Literal["drop", "flush_partial", "carry"]
Reduce = Literal["sum", "mean"]
ErrorTerm = Callable[[F64, F64, F64], F64]
"""f(theta, input, error signal) of one token, of the shape of theta: its gradient, for GD."""
Segment = tuple[Sequence[F64], Sequence[F64], NDArray[np.bool_]]
"""Of some neighbouring tokens: each level's inputs, each level's error signals, active flags."""


@dataclass
class Counters:
    """Whole numbers, exactly equal on every rank: what became of a level's tokens."""

    updates: int = 0
    consumed: int = 0
    """Tokens of chunks that were applied."""
    flushed: int = 0
    """Those of them that came in a final, partial update."""
    masked: int = 0
    """Tokens of chunks without an active one: popped, no update."""
    gated: int = 0
    """Tokens of chunks that a closed gate blocked: popped and lost."""
    dropped: int = 0
    """Tokens of remainders that were discarded."""


@dataclass
class StreamLevel:
    """One level: its parameters, its error term, its period in tokens, and what it keeps."""

    theta: F64
    error_term: ErrorTerm
    period: int
    eta: float
    beta: float = 0.0
    """Momentum of its optimiser: m' = beta m + sum, theta' = theta - eta m'."""
    momentum: F64 = field(init=False)
    counters: Counters = field(default_factory=Counters, init=False)
    inputs: list[F64] = field(default_factory=list, init=False)
    errors: list[F64] = field(default_factory=list, init=False)
    active: list[bool] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Start from rest; refuse a period that is no chunk."""
        if self.period < 1:
            raise BadInputs(
                "a period is at least one token", where="StreamLevel", got=str(self.period)
            )
        self.theta = np.array(self.theta, dtype=np.float64)
        self.momentum = np.zeros_like(self.theta)

    @property
    def pending(self) -> int:
        """Tokens that wait for the next update."""
        return len(self.active)

    def keep(self, inputs: F64, errors: F64, active: NDArray[np.bool_]) -> None:
        """Append a segment's tokens."""
        self.inputs += list(inputs)
        self.errors += list(errors)
        self.active += [bool(flag) for flag in active]

    def pop(self) -> tuple[list[F64], list[F64], list[bool]]:
        """Take all that is kept."""
        popped = self.inputs, self.errors, self.active
        self.inputs, self.errors, self.active = [], [], []
        return popped


class CmsStream:
    """The levels of a continuum memory system, updated as their tokens come.

    Paper: Nested Learning (NeurIPS 2025), Eq. 31 with the range corrected, and the streaming
    contract that an implementation needs beside it.

    phase   ``end``: level l updates after tokens C, 2C, ... (1-based); ``start``: after tokens
            0, C, 2C, ... (0-based), each over the tokens since the update before.
    flush   what ``finish`` does with a remainder: ``drop``, ``flush_partial`` (one more update if
            any of its tokens is active) or ``carry`` (keep it for the next call).
    reduce  ``sum`` over a chunk's active tokens, or ``mean``, over their number, at least 1.
    gate    called with the level's place and a chunk's error signals; False blocks the update.
    """

    def __init__(
        self,
        levels: Sequence[StreamLevel],
        *,
        phase: Phase = "end",
        flush: Flush = "drop",
        reduce: Reduce = "sum",
        gate: Callable[[int, F64], bool] | None = None,
    ) -> None:
        """Take the levels, the fastest first, with their parameters as they are."""
        if not levels:
            raise BadInputs("no levels", where="CmsStream", expected="one or more")
        self.levels = tuple(levels)
        self.phase, self.flush, self.reduce, self.gate = phase, flush, reduce, gate
        self.tokens = 0
        self._first = [phase == "start"] * len(levels)

    def due(self, place: int) -> int:
        """Give how many more tokens a level needs for its next update."""
        level = self.levels[place]
        return (1 if self._first[place] else level.period) - level.pending

    def until_update(self) -> int:
        """Give how many tokens may still be processed at the present parameters."""
        return min(self.due(place) for place in range(len(self.levels)))

    def process(self, tokens: int, evaluate: Callable[[int, int], Segment]) -> None:
        """Process a call of so many tokens in segments that end at the next update of any level.

        ``evaluate(start, stop)`` runs the model on the call's tokens of that range, at the
        parameters as they are, and gives every level's inputs, error signals and active flags.
        """
        start = 0
        while start < tokens:
            stop = min(tokens, start + self.until_update())
            self.append(evaluate(start, stop))
            start = stop

    def append(self, segment: Segment) -> None:
        """Keep a segment's tokens in every level, and update the levels that are due.

        Raises BadInputs for a segment that reaches beyond the next update: its later tokens were
        evaluated at parameters that are not theirs.
        """
        inputs, errors, active = segment
        count = len(active)
        lengths = {len(rows) for rows in (*inputs, *errors)}
        if lengths != {count} or not len(inputs) == len(errors) == len(self.levels):
            raise BadInputs(
                "a segment holds each level's inputs and errors, a row for each token",
                where="CmsStream.append",
                got=f"{len(inputs)} and {len(errors)} levels, rows {sorted(lengths)}",
                expected=f"{len(self.levels)} levels, {count} rows each",
            )
        if count > self.until_update():
            raise BadInputs(
                "the segment reaches beyond the next update",
                where="CmsStream.append",
                got=f"{count} tokens",
                expected=f"{self.until_update()} or fewer",
                fix="use process, which cuts a call into segments",
            )
        self.tokens += count
        for level, rows, signals in zip(self.levels, inputs, errors, strict=True):
            level.keep(rows, signals, active)
        for place in range(len(self.levels)):
            if self.due(place) == 0:
                self._first[place] = False
                self._update(place, flushed=False)

    def finish(self) -> None:
        """End the call or the sequence: treat what is pending as ``flush`` says."""
        for place, level in enumerate(self.levels):
            if self.flush == "flush_partial" and level.pending:
                self._update(place, flushed=True)
            elif self.flush == "drop":
                level.counters.dropped += level.pending
                level.pop()

    def _update(self, place: int, *, flushed: bool) -> None:
        level = self.levels[place]
        inputs, errors, active = level.pop()
        counters = level.counters
        if not any(active):  # no state changes, momentum included
            counters.masked += len(active)
            return
        if self.gate is not None and not self.gate(place, np.array(errors)):
            counters.gated += len(active)
            return
        terms = [
            level.error_term(level.theta, x, delta)
            for x, delta, flag in zip(inputs, errors, active, strict=True)
            if flag
        ]
        total = np.sum(np.array(terms), axis=0)
        if self.reduce == "mean":
            total = total / len(terms)
        level.momentum = level.beta * level.momentum + total
        level.theta = level.theta - level.eta * level.momentum
        counters.updates += 1
        counters.consumed += len(active)
        counters.flushed += len(active) if flushed else 0
