"""Nested columns: the schema to parse them with, and the plain columns they become."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import polars as pl

from trueup.gates.read.rows.shape import Node

Schema = dict[str, type[pl.DataType]]  # of the plain columns


class _Unfit(Exception):
    """The rows are not of the shape that is known, or of one that a table engine can parse."""


@dataclass(slots=True)
class Unfolded:
    """Plain columns, and how their members were written: one colon and two quotes each.

    A key that holds colons itself adds them to its own.
    """

    frame: pl.DataFrame
    members: int = 0
    colons: int = 0

    @classmethod
    def of_flat(cls, frame: pl.DataFrame) -> Unfolded:
        """A table that has no nested column."""
        out = cls(frame)
        for name, nulls in zip(frame.columns, frame.null_count().row(0), strict=True):
            out.members += frame.height - nulls
            out.colons += (frame.height - nulls) * (1 + name.count(":"))
        return out


def nested_schema(root: Node, schema: Schema) -> dict[str, pl.DataType] | None:
    """What to parse rows of this shape with, or None if no schema says it."""
    out = {}
    try:
        for key, node in root.members.items():
            kind = _dtype([node], schema)
            if kind is not None:
                out[key] = kind
    except _Unfit:
        return None
    return out or None


def _dtype(nodes: list[Node], schema: Schema) -> pl.DataType | None:
    """One type for all these places; None if nothing but nulls was seen there."""
    kinds = {node.kind for node in nodes if node.kind is not None}
    if len(kinds) > 1:
        raise _Unfit
    if kinds == {"object"}:
        return _struct(nodes, schema)
    if kinds == {"list"}:
        items = list(chain.from_iterable(node.items for node in nodes))
        inner = _dtype(items, schema) if items else pl.Int64()
        return None if inner is None else pl.List(inner)
    types = {schema[node.name] for node in nodes if node.name in schema and not node.clash}
    if len(types) > 1:
        raise _Unfit
    return types.pop()() if types else None


def _struct(nodes: list[Node], schema: Schema) -> pl.DataType:
    members: dict[str, list[Node]] = {}
    for node in nodes:
        for key, child in node.members.items():
            members.setdefault(key, []).append(child)
    fields = ((key, _dtype(same, schema)) for key, same in members.items())
    return pl.Struct({key: kind for key, kind in fields if kind is not None})


@dataclass(slots=True)
class _Walk:
    """Follows parsed columns and the tree of places together."""

    members: int = 0
    colons: int = 0
    columns: dict[str, pl.Series] = field(default_factory=dict)

    def member(self, series: pl.Series, key: str, node: Node | None) -> None:
        """A column that was written with a key."""
        filled = len(series) - series.null_count()
        if node is None:
            if filled:
                raise _Unfit
            return
        self.members += filled
        self.colons += filled * (1 + key.count(":"))
        self.place(series, node)

    def place(self, series: pl.Series, node: Node) -> None:
        """A column of any kind."""
        if node.kind == "object":
            inner = series.struct.unnest()
            for key, part in zip(inner.columns, inner.get_columns(), strict=True):
                self.member(part, key, node.members.get(key))
        elif node.kind == "list":
            for item, part in zip(node.items, _items(series, len(node.items)), strict=True):
                if part.null_count() != series.null_count():
                    raise _Unfit  # a null in a list: no count would show it
                self.place(part, item)
        elif node.kind == "value" and not node.clash:
            self.columns[node.name] = series.alias(node.name)
        elif series.null_count() != len(series):
            raise _Unfit


def _items(series: pl.Series, length: int) -> Iterator[pl.Series]:
    """The columns of a list's items, if each list has as many."""
    if (series.list.len() != length).any():
        raise _Unfit
    if not length:
        return
    whole = series.alias("list").to_frame()
    parts = (pl.col("list").list.get(i, null_on_oob=True).alias(str(i)) for i in range(length))
    yield from whole.select(parts).get_columns()


def unfolded(frame: pl.DataFrame, root: Node, names: list[str]) -> Unfolded | None:
    """The plain columns of parsed rows, or None if their shape is not the one known."""
    walk = _Walk()
    try:
        for key, series in zip(frame.columns, frame.get_columns(), strict=True):
            walk.member(series, key, root.members.get(key))
    except _Unfit:
        return None
    if walk.columns.keys() != set(names):
        return None
    return Unfolded(pl.DataFrame([walk.columns[name] for name in names]), walk.members, walk.colons)
