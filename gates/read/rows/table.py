"""The columns of a file as they are learned: names, types, first sight; and typed frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from trueup.gates.findings import show
from trueup.gates.read.limits import Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.numbers import exact_as_float, fits_int64, fits_int128, is_huge
from trueup.gates.read.rows.shape import Row, Shape

DTYPES: dict[str, type[pl.DataType]] = {
    "int": pl.Int64,
    "wide": pl.Int128,  # once an integer past 64 bits was seen
    "float": pl.Float64,
    "str": pl.String,
    "bool": pl.Boolean,
}
_GROUP = {int: "number", float: "number", str: "str", bool: "bool"}
_WORD = {int: "a number", float: "a number", str: "a string", bool: "a boolean"}


@dataclass(slots=True)
class Column:
    """What is known of one key. `kind` is None while only nulls were seen."""

    name: str
    first_row: int
    kind: str | None = None
    family: str | None = None  # the items of one list have one type


@dataclass(frozen=True, slots=True)
class CellFlaw:
    """A value that is correct JSON and yet not fit for its column."""

    index: int
    kind: str
    key: str | None
    got: str
    withheld: bool


class Table:
    """Grows as rows come; never forgets a type, and changes only from int to wide to float."""

    def __init__(
        self, limits: Limits, nullable: Iterable[str] = (), nesting: Nesting | None = None
    ) -> None:
        """`nullable` are anchored patterns of the keys that may be null."""
        self.limits = limits
        self.shape = Shape(nesting or Nesting(), limits)
        self.columns: dict[str, Column] = {}
        self.null_keys: set[str] = set()  # written as null somewhere: a frame cannot tell
        self._nullable = [re.compile(pattern) for pattern in nullable]
        self._late = 0
        self._fractions: set[str] = set()  # families of which some item is a float

    @property
    def late(self) -> int:
        """How many keys were first seen late."""
        return self._late

    def schema(self) -> dict[str, type[pl.DataType]]:
        """The columns whose type is known."""
        return {c.name: DTYPES[c.kind] for c in self.columns.values() if c.kind is not None}

    def flatten(self, rows: Sequence[Row | None]) -> tuple[list[Row | None], list[CellFlaw]]:
        """The rows by the names of their columns, where the profile asks for it."""
        if not self.shape.nesting.flatten:
            return list(rows), []
        flaws: list[CellFlaw] = []
        out: list[Row | None] = []
        for index, row in enumerate(rows):
            flat, found = self.shape.flatten(row) if row is not None else (None, [])
            out.append(flat)
            flaws += [CellFlaw(index, flaw.kind, flaw.key, flaw.got, True) for flaw in found]
        return out, flaws

    def type(
        self, rows: Sequence[Row | None], numbers: Sequence[int]
    ) -> tuple[list[int], list[CellFlaw]]:
        """Learn from the rows. Returns the indices of those to hand on, and the flaws found."""
        flaws: list[CellFlaw] = []
        kept = self._admit(rows, numbers, flaws)
        cells: dict[str, list[tuple[int, Any]]] = {}
        for index in kept:
            for name, value in (rows[index] or {}).items():
                cells.setdefault(name, []).append((index, value))
        self._note_fractions(cells)
        for name, column in cells.items():
            self._type(self.columns[name], column, numbers, flaws)
        bad = {flaw.index for flaw in flaws if flaw.withheld}
        return [index for index in kept if index not in bad], flaws

    def frames(
        self, rows: Sequence[Row | None], kept: list[int]
    ) -> Iterator[tuple[pl.DataFrame, list[int]]]:
        """The rows to hand on as typed frames, none of them with too many cells."""
        schema = self.schema()
        if not schema:
            return  # rows without a single value: no frame can hold them
        height = max(1, self.limits.max_cells // max(1, len(schema)))
        for low in range(0, len(kept), height):
            part = kept[low : low + height]
            cells: dict[str, list[Any]] = {}
            for place, index in enumerate(part):
                for name, value in (rows[index] or {}).items():
                    if name not in cells:
                        cells[name] = [None] * len(part)
                    cells[name][place] = value
            series = [
                _series(name, kind, cells[name])
                if name in cells
                else pl.Series(name, [], dtype=kind).extend_constant(None, len(part))
                for name, kind in schema.items()
            ]
            yield pl.DataFrame(series, height=len(part)), part

    def _admit(
        self, rows: Sequence[Row | None], numbers: Sequence[int], flaws: list[CellFlaw]
    ) -> list[int]:
        """Register new keys; withhold a row whose keys would pass the limit."""
        kept = []
        known: set[tuple[str, ...]] = set()
        for index, row in enumerate(rows):
            if row is None:
                continue
            shape = tuple(row)
            if shape not in known:
                new = [key for key in shape if key not in self.columns]
                unusable = next((key for key in new if is_unusable(key)), None)
                if unusable is not None:
                    flaws.append(CellFlaw(index, "unusable_key", unusable, show(unusable), True))
                    continue
                if len(self.columns) + len(new) > self.limits.max_keys:
                    got = f"{show(new[0])} after {len(self.columns)} other keys"
                    flaws.append(CellFlaw(index, "too_many_keys", None, got, True))
                    continue
                self._register(new, index, numbers[index], flaws)
                known.add(shape)
            kept.append(index)
        return kept

    def _register(self, new: list[str], index: int, row: int, flaws: list[CellFlaw]) -> None:
        for key in new:
            self.columns[key] = Column(key, row, family=self.shape.family(key))
            if row > self.limits.late_after:
                self._late += 1
                flaws.append(CellFlaw(index, "late_key", key, f"first seen in row {row}", False))

    def _type(
        self,
        column: Column,
        cells: list[tuple[int, Any]],
        numbers: Sequence[int],
        flaws: list[CellFlaw],
    ) -> None:
        """Settle the type of a column, and flag the cells that do not have it."""
        types = {type(value) for _, value in cells}
        if type(None) in types:
            self.null_keys.add(column.name)
            self._nulls(column.name, cells, flaws)
        types.discard(type(None))
        if not types:
            return
        group = _GROUP.get(_of_kind(column.kind)) if column.kind else _majority(cells)
        if group is None or any(_GROUP.get(t) != group for t in types):
            _mistyped(column.name, cells, group, flaws)
        if group == "number":
            self._number(column, cells, numbers, flaws)
        elif group is not None:
            column.kind = group

    def _note_fractions(self, cells: dict[str, list[tuple[int, Any]]]) -> None:
        """A list in which one item is a float is a list of floats."""
        for name, column in cells.items():
            family = self.columns[name].family
            if family is not None and any(type(value) is float for _, value in column):
                self._fractions.add(family)

    def may_be_null(self, name: str) -> bool:
        """Whether the profile allows nulls there."""
        return any(pattern.search(name) for pattern in self._nullable)

    def _nulls(self, name: str, cells: list[tuple[int, Any]], flaws: list[CellFlaw]) -> None:
        if self.may_be_null(name):
            return
        flaws.extend(
            CellFlaw(index, "null", name, "null", False) for index, cell in cells if cell is None
        )

    def _number(
        self,
        column: Column,
        cells: list[tuple[int, Any]],
        numbers: Sequence[int],
        flaws: list[CellFlaw],
    ) -> None:
        fractions = column.family in self._fractions or any(
            type(cell) is float for _, cell in cells
        )
        if column.kind == "float" or fractions:
            column.kind = "float"
        elif column.kind is None:
            column.kind = "int"
        for index, cell in cells:
            if type(cell) is not int:
                continue
            if is_huge(cell, self.limits.max_digits):
                got = f"about {cell.bit_length() * 3 // 10} digits"
                flaws.append(CellFlaw(index, "number_too_long", column.name, got, True))
            elif column.kind != "float" and not fits_int64(cell):
                flaws.append(
                    CellFlaw(index, "int64", column.name, show(cell), not fits_int128(cell))
                )
                column.kind = "wide"
            elif column.kind == "float" and not exact_as_float(cell):
                flaws.append(CellFlaw(index, "lost_digits", column.name, show(cell), True))


def _series(name: str, kind: type[pl.DataType], cells: list[Any]) -> pl.Series:
    if kind is pl.Float64:
        cells = [None if cell is None else float(cell) for cell in cells]
    return pl.Series(name, cells, dtype=kind, strict=True)


def is_unusable(key: str) -> bool:
    """Whether a table engine would take this name for a pattern, or give the column another."""
    return key in ("", "*") or "\0" in key or (key.startswith("^") and key.endswith("$"))


def _of_kind(kind: str | None) -> type:
    return {"int": int, "wide": int, "str": str, "bool": bool}.get(kind or "float", float)


def _majority(cells: list[tuple[int, Any]]) -> str | None:
    """The type most cells of a new column have; numbers win a tie."""
    counts = {"number": 0, "str": 0, "bool": 0}
    for _, cell in cells:
        group = _GROUP.get(type(cell))
        if group is not None:
            counts[group] += 1
    best = max(counts, key=lambda group: counts[group])
    return best if counts[best] else None


def _mistyped(
    name: str, cells: list[tuple[int, Any]], group: str | None, flaws: list[CellFlaw]
) -> None:
    want = {"number": "numbers", "str": "strings", "bool": "booleans"}.get(group or "", "")
    for index, cell in cells:
        kind = type(cell)
        if cell is None or (group is not None and _GROUP.get(kind) == group):
            continue
        if kind in (dict, list):
            word = "an object" if kind is dict else "a list"
            flaws.append(CellFlaw(index, "nested", name, word, True))
        else:
            got = f"{_WORD[kind]} {show(cell)} in a column of {want}"
            flaws.append(CellFlaw(index, "mistyped", name, got, True))
