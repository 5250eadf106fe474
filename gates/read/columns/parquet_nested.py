"""Columns of structs and lists as columns of plain values, by the profile's declared rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from trueup.gates.read.limits import Limits
from trueup.gates.read.nesting import Nesting


@dataclass(frozen=True, slots=True)
class RowFlaw:
    """Rows of which a nested cell has not the form of the others; they are withheld."""

    kind: str
    key: str
    rows: pl.Series  # of booleans
    got: str

    def words(self, _: int) -> str:
        """The same for each of the rows."""
        return self.got


@dataclass(slots=True)
class Unfolder:
    """Each list keeps the length it was first seen with, as in other forms of tables."""

    nesting: Nesting
    limits: Limits
    flaws: list[RowFlaw] = field(default_factory=list)  # of the last batch
    _lengths: dict[str, int] = field(default_factory=dict)

    def leaves(self, frame: pl.DataFrame) -> Iterator[tuple[str, pl.Series]]:
        """The plain columns of a batch by name; what cannot be unfolded is left as it is."""
        self.flaws = []
        for name in frame.columns:
            yield from self._open(name, frame.get_column(name), 1)

    def _open(self, name: str, cells: pl.Series, depth: int) -> Iterator[tuple[str, pl.Series]]:
        kind = cells.dtype
        if not self.nesting.flatten or depth > self.limits.max_depth:
            yield name, cells
        elif isinstance(kind, pl.Struct):
            for member in kind.fields:
                inner = cells.struct.field(member.name)
                yield from self._open(self.nesting.member(name, member.name), inner, depth + 1)
        elif isinstance(kind, pl.List | pl.Array):
            yield from self._items(name, cells, depth)
        else:
            yield name, cells

    def _items(self, name: str, cells: pl.Series, depth: int) -> Iterator[tuple[str, pl.Series]]:
        lists = cells.arr.to_list() if isinstance(cells.dtype, pl.Array) else cells
        sizes = lists.list.len()
        known = sizes.drop_nulls()
        if not len(known):
            return
        length = self._lengths.setdefault(name, int(known[0]))
        long = (sizes > self.nesting.max_items).fill_null(False)
        if long.any():
            got = f"more than {self.nesting.max_items} items"
            self.flaws.append(RowFlaw("list_too_long", name, long, got))
        other = ((sizes != length) & ~long).fill_null(False)
        if other.any():
            got = f"another number of items than {length}, which other rows have"
            self.flaws.append(RowFlaw("list_length", name, other, got))
        for index in range(min(length, self.nesting.max_items)):
            item = lists.list.get(index, null_on_oob=True)
            yield from self._open(self.nesting.item(name, index), item, depth + 1)
