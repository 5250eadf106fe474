"""Single values of telemetry, taken in one pass over a log: last, min, max, mean, or at a step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.gates.findings import Where
from trueup.gates.profile.rules import Profile
from trueup.gates.read.limits import Fault, Limits

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a column and where it stands; or why there is none."""

    value: Any  # exact for numbers
    where: Where
    problem: str = ""


@dataclass(slots=True)
class _Watch:
    """What one column has shown so far."""

    name: str
    steps: frozenset[int]
    sums_up: bool  # whether a mean is wanted
    count: int = 0
    last: tuple[Any, Where] | None = None
    low: tuple[Any, Where] | None = None
    high: tuple[Any, Where] | None = None
    at: dict[int, list[tuple[Any, Where]]] = field(default_factory=dict)
    sums: dict[int, int] = field(default_factory=dict)  # decimal exponent -> sum of mantissas
    odd: str = ""  # the first value that is no finite number

    def take(self, steps: pl.Series, values: pl.Series) -> None:
        """The cells of one batch, in the order of the file; none of them is null."""
        if not values.len():
            return
        self.count += values.len()
        self.last = self._cell(steps, values, values.len() - 1)
        if self.steps:
            for index in steps.is_in(list(self.steps)).arg_true().to_list():
                self.at.setdefault(steps[index], []).append(self._cell(steps, values, index))
        plain = values.dtype.is_numeric()
        odd = (~values.is_finite()).arg_true() if plain else None
        if odd is None or odd.len():
            first = 0 if odd is None else odd[0]
            self.odd = self.odd or f"{values[first]!r} at step {steps[first]}"
        if odd is not None and not odd.len():
            self._summed(steps, values)

    def _cell(self, steps: pl.Series, values: pl.Series, index: int) -> tuple[Any, Where]:
        return values[index], Where(step=steps[index], key=self.name)

    def _summed(self, steps: pl.Series, values: pl.Series) -> None:
        """Least, largest and sum, all numbers being finite. Of equals the first counts."""
        low = self._cell(steps, values, values.arg_min() or 0)
        high = self._cell(steps, values, values.arg_max() or 0)
        self.low = low if self.low is None or low[0] < self.low[0] else self.low
        self.high = high if self.high is None or high[0] > self.high[0] else self.high
        if self.sums_up:
            for value in values.to_list():
                self._add(Decimal(repr(value)))

    def _add(self, value: Decimal) -> None:
        sign, digits, exponent = value.as_tuple()
        mantissa, places = int("".join(map(str, digits))), int(exponent)
        self.sums[places] = self.sums.get(places, 0) + (-mantissa if sign else mantissa)

    def answer(self, moment: str) -> Cell:
        """The value that a criterion asks for."""
        if not self.count:
            return Cell(None, Where(key=self.name), f"no row has a value of {self.name}")
        if moment.startswith("step:"):
            return self._step(int(moment.removeprefix("step:")))
        if moment == "last":
            assert self.last is not None
            return Cell(*self.last)
        if self.odd:
            return Cell(None, Where(key=self.name), f"{self.name} holds {self.odd}")
        if moment == "mean":
            sums = (Fraction(sum_) * Fraction(10) ** places for places, sum_ in self.sums.items())
            return Cell(sum(sums, Fraction(0)) / self.count, Where(key=self.name))
        chosen = self.low if moment == "min" else self.high
        assert chosen is not None
        return Cell(*chosen)

    def _step(self, step: int) -> Cell:
        found = self.at.get(step, [])
        if len(found) == 1:
            return Cell(*found[0])
        many = f"{len(found)} rows have" if found else "no row has"
        return Cell(
            None, Where(key=self.name, step=step), f"{many} a value of {self.name} at {step}"
        )


def read_columns(
    path: Path,
    name: str,
    wanted: Iterable[tuple[str, str]],
    profile: Profile,
    limits: Limits | None = None,
) -> tuple[dict[tuple[str, str], Cell], list[Fault]]:
    """The wanted (column, moment) pairs of a log, and the faults of its text.

    Raises `Unreadable` if no row can be read. Rows of the configuration do not count as steps.
    """
    from trueup.gates.read.tables import open_table

    pairs = list(dict.fromkeys(wanted))
    watches = {
        column: _Watch(column, frozenset(_steps(pairs, column)), (column, "mean") in pairs)
        for column, _ in pairs
    }
    faults: list[Fault] = []
    reader = open_table(
        path, name=name, report=faults.append, nullable=profile.nullable, step_key=profile.step,
        nesting=profile.nesting, limits=limits,
    )  # fmt: skip
    for batch in reader.batches():
        _take(batch.frame, watches, profile)
    return {(column, moment): watches[column].answer(moment) for column, moment in pairs}, faults


def _steps(pairs: list[tuple[str, str]], column: str) -> Iterable[int]:
    for one, moment in pairs:
        if one == column and moment.startswith("step:"):
            yield int(moment.removeprefix("step:"))


def _take(frame: pl.DataFrame, watches: dict[str, _Watch], profile: Profile) -> None:
    """The cells of the steps' rows; a step that is no whole number is no step."""
    step = profile.step
    if step not in frame.columns or not frame.schema[step].is_integer():
        return
    rows = frame.filter((frame[step] != profile.config_step) & frame[step].is_not_null())
    for column, watch in watches.items():
        if column in rows.columns:
            kept = rows.filter(rows[column].is_not_null())
            watch.take(kept[step], kept[column])
