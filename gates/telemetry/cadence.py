"""How often a level is updated, worked out from lengths, its period and the flush mode."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from trueup.gates.telemetry.params import setting, setting_number
from trueup.gates.telemetry.probe import View

FLUSH = ("drop", "flush_partial", "carry")


@dataclass(frozen=True, slots=True)
class Cadence:
    """What a profile says of a trainer's loop over chunks.

    `dense`: every position carries a signal. The ordinary next-token signal is zero in a call's
    last row, so that a remainder of exactly that row is nothing to flush. `cleared`: buffers are
    emptied before they are counted, so pending always reads 0. `call`: positions of one call; a
    step is one call where it is not given. `unfinished`: a last call of one position is never made,
    and leaves behind what it would have finished. `summed`: rows hold sums over a step's calls.
    """

    flush: str
    dense: bool = False
    cleared: bool = False
    call: float | None = None
    unfinished: bool = False
    summed: bool = False

    @classmethod
    def of(cls, view: View) -> Cadence | None:
        """From a rule's parameters; None if the flush mode is recorded nowhere."""
        params = view.rule.params
        flush = params["flush"] if params["flush"] in FLUSH else setting(view, "flush")
        if isinstance(flush, bool):
            flush = "flush_partial" if flush else "drop"
        if flush not in FLUSH:
            view.state.setdefault("reason", f"{flush!r} is no flush mode")
            return None
        call = setting_number(view, "call") if "call" in params else None
        if "call" in params and call is None:
            return None
        dense = setting(view, "dense") is True if "dense" in params else False
        return cls(
            flush, dense, params.get("cleared", False), call, params.get("unfinished", False),
            params.get("agg", "last") == "sum",
        )  # fmt: skip

    def says_nothing(self, length: pl.Expr) -> pl.Expr:
        """Where the counts depend on what the last call would have done."""
        if not self.unfinished or self.call is None:
            return pl.lit(False)
        return length - (length / self.call).floor() * self.call == 1


@dataclass(frozen=True, slots=True)
class Counts:
    """What a row must hold."""

    updates: pl.Expr
    pending: pl.Expr
    flushed: pl.Expr

    def times(self, count: pl.Expr) -> Counts:
        """Of so many equal calls together."""
        return Counts(self.updates * count, self.pending * count, self.flushed * count)

    def plus(self, other: Counts) -> Counts:
        """Of both together."""
        return Counts(
            self.updates + other.updates, self.pending + other.pending, self.flushed + other.flushed
        )

    def where(self, condition: pl.Expr, other: Counts) -> Counts:
        """These where the condition holds, else the others."""

        def either(one: pl.Expr, two: pl.Expr) -> pl.Expr:
            return pl.when(condition).then(one).otherwise(two)

        return Counts(
            either(self.updates, other.updates),
            either(self.pending, other.pending),
            either(self.flushed, other.flushed),
        )


def expected(shape: Cadence, length: pl.Expr, period: float, carried: pl.Expr) -> Counts:
    """The counts of a row in which `length` positions were presented, with no gate in the way."""
    if shape.call is None or (shape.flush == "carry" and shape.summed):
        return one_call(shape, length, period, carried)
    calls = (length / shape.call).floor()
    rest = length - calls * shape.call
    if shape.flush == "carry":
        last = pl.when(rest > 0).then(rest).otherwise(shape.call)
        every = one_call(shape, length, period, carried)
        earlier = one_call(shape, length - last, period, carried)
        return Counts(every.updates - earlier.updates, every.pending, every.flushed)
    whole = one_call(shape, pl.lit(shape.call), period, carried)
    part = one_call(shape, rest, period, carried)
    if shape.summed:
        return whole.times(calls).plus(part)
    return part.where(rest > 0, whole)


def one_call(shape: Cadence, length: pl.Expr, period: float, carried: pl.Expr) -> Counts:
    """The counts of one call."""
    total = length + carried
    full = (total / period).floor()
    rest = total - full * period
    none = total * 0.0
    silent = pl.lit(0.0) if shape.dense else (length > 0).cast(pl.Float64)  # rows without a signal
    if period == 1:
        full = full - silent  # a chunk of the silent row alone is masked, and changes nothing
    if shape.flush == "flush_partial":
        flushed = pl.when(rest > silent).then(rest).otherwise(none)
        return Counts(full + (flushed > 0).cast(pl.Float64), none, flushed)
    return Counts(full, none if shape.cleared else rest, none)
