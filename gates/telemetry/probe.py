"""What a check is made of: its registration, what it is given, and what it gives back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from trueup.gates.documents.run import Column
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.scopes import Rows

INTEGERS = (pl.Int64, pl.Int128)
NUMERIC = (*INTEGERS, pl.Float64)
_WIDEST = 2**127


Quick = Callable[[Mapping[str, Column], int], bool]  # the columns of a batch, and its rows


@dataclass(frozen=True, slots=True)
class Probe:
    """One condition on every row. `ok` is true, false, or null for undetermined."""

    key: str
    ok: pl.Expr
    shown: tuple[str, ...]  # the columns whose values a message shows
    quick: Quick | None = None  # true only if `ok` is: told from what is known of the columns


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a check over the whole run found at one key, after the last row."""

    key: str
    ok: bool | None  # None: it cannot be told
    got: str
    step: int | None = None  # where it was first seen, if a row can be named


class View:
    """The rows a rule reads in one batch, and what it remembers of earlier ones."""

    __slots__ = ("_rows", "_state", "config", "looked", "names", "null_keys", "rule", "schema")

    def __init__(
        self,
        rows: Rows,
        rule: Rule,
        names: list[str],
        config: dict[str, Any],
        state: dict[str, Any],
        schema: dict[str, pl.DataType],
        null_keys: frozenset[str] = frozenset(),
    ) -> None:
        """`null_keys` were written as null so far, perhaps with no column yet."""
        self._rows, self._state = rows, state
        self.rule, self.names, self.config = rule, names, config
        self.schema = schema  # of the frame, which would build it anew at each question
        self.null_keys = null_keys
        self.looked = False  # at rows or memory; what a check says without looking stays true

    @property
    def frame(self) -> pl.DataFrame:
        """The rows of this batch."""
        self.looked = True
        return self._rows.frame

    @property
    def state(self) -> dict[str, Any]:
        """What the rule remembers from batch to batch."""
        self.looked = True
        return self._state

    @property
    def columns(self) -> dict[str, Column]:
        """Count, least and largest value of each column in this batch, shared by all rules."""
        self.looked = True
        return self._rows.columns

    def has(self, name: str) -> bool:
        """Whether the table has this column (so far)."""
        return name in self.schema

    def is_number(self, name: str) -> bool:
        """Whether the column holds numbers."""
        return self.has(name) and self.schema[name] in NUMERIC

    def param(self, name: str) -> Any:
        """A parameter of the rule; the profile's loader has seen to it that it is there."""
        return self.rule.params[name]


Build = Callable[[View], list[Probe]]
Observe = Callable[[View], None]
Finish = Callable[[Rule, dict[str, Any]], list[RunResult]]
Problem = Callable[[Mapping[str, Any]], str]  # what is wrong with parameters; empty if nothing is


@dataclass(frozen=True, slots=True)
class Check:
    """A check by name. `params` maps parameters to their types; `optional` may be left out."""

    name: str
    target: Literal["cells", "row", "record"]
    summary: str
    params: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    build: Build | None = None
    observe: Observe | None = None
    finish: Finish | None = None
    problem: Problem | None = None  # asked when a profile is loaded, after the types
    group: str = ""  # the named group that a rule's pattern must have; `field` for records


def number(name: str) -> pl.Expr:
    """A numeric column in which NaN is unknown, not larger than everything."""
    return pl.col(name).cast(pl.Float64).fill_nan(None)


def exact(view: View, name: str) -> pl.Expr:
    """A numeric column for a comparison: past 2^53 an integer is not rounded to a double."""
    return pl.col(name) if view.schema[name] in INTEGERS else number(name)


def wide(view: View, name: str) -> pl.Expr:
    """A numeric column for sums and products: integers that do not wrap at 64 bits."""
    return exact(view, name).cast(pl.Int128) if view.schema[name] in INTEGERS else number(name)


def bound(value: int | float) -> pl.Expr:
    """A number of the profile to compare a column with; whole ones stay exact."""
    if isinstance(value, float) and not (abs(value) < _WIDEST and value.is_integer()):
        return pl.lit(value)
    if abs(value) >= _WIDEST:
        return pl.lit(math.inf if value > 0 else -math.inf)  # no column reaches it
    whole = int(value)
    return pl.lit(whole, dtype=pl.Int64 if -(2**63) <= whole < 2**63 else pl.Int128)


def where_present(names: list[str], ok: pl.Expr) -> pl.Expr:
    """`ok` on rows that have all these keys; other rows are not this check's matter."""
    return pl.any_horizontal([*(pl.col(name).is_null() for name in names), ok])


def records(view: View) -> dict[str, dict[str, str]]:
    """Columns grouped by record: prefix -> field -> column name.

    The rule's pattern names the last part of a key with the group `field`.
    """
    match = re.compile(view.rule.pattern or "", re.DOTALL).fullmatch
    out: dict[str, dict[str, str]] = {}
    for name in view.names:
        found = match(name)
        if found is not None and found.group("field") is not None and view.has(name):
            out.setdefault(name[: found.start("field")], {})[found.group("field")] = name
    return out
