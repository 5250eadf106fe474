"""The tier for rows with nulls: typed decoding that tells a null from a key that is not there.

A null is no value, so the fast tier's sums cannot tell it from a key that was lost. Here each
object is decoded into a type of its own, whose fields are unset, null or of the column's type;
unknown keys and other types are refused, and the colons of a key that stands twice do not add up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Any, Optional, Union

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from trueup.gates.read.rows.shape import Node
from trueup.gates.read.rows.unfold import Schema

_ESCAPED = re.compile(r'["\\\x00-\x1f]')  # in a key: no field can have this name
MOST = 2_000  # columns; types of more fields cost more to make than they save
_PLAIN: dict[type[pl.DataType], type] = {
    pl.Int64: int, pl.Float64: float, pl.String: str, pl.Boolean: bool
}  # fmt: skip


class _Unfit(Exception):
    """The text is not of the shape that is known, or of one that types can state."""


@dataclass(slots=True)
class Place:
    """A place in a row, with the type its values are decoded to."""

    node: Node
    kind: Any  # what the decoder is told, without null and unset
    colons: int = 1  # that the member is written with, its key's own included
    struct: type[msgspec.Struct] | None = None
    inside: list[Place] = field(default_factory=list)


@dataclass(slots=True)
class Typed:
    """Plain columns; the names that were null somewhere; the colons of all members."""

    columns: dict[str, pl.Series] = field(default_factory=dict)
    nulls: set[str] = field(default_factory=set)
    colons: int = 0


class TypedRows:
    """Decodes rows of one shape, as it is known now."""

    def __init__(self, root: Node, schema: Schema) -> None:
        """Make the types. Check `fits` before decoding."""
        self._schema = schema
        self._decoder: msgspec.json.Decoder[Any] | None = None
        if len(schema) > MOST:
            return
        try:
            self._root = self._object(root)
        except _Unfit:
            return
        self._decoder = msgspec.json.Decoder(self._root.struct)

    @property
    def fits(self) -> bool:
        """Whether types can state this shape."""
        return self._decoder is not None

    def _place(self, node: Node, key: str) -> Place:
        if node.clash:
            raise _Unfit
        if node.kind == "object":
            place = self._object(node)
        elif node.kind == "list":
            inside = [self._place(item, "") for item in node.items]
            kinds = tuple(Optional[one.kind] for one in inside)  # noqa: UP045  a value, no hint
            place = Place(node, GenericAlias(tuple, kinds), inside=inside)
        elif node.name not in self._schema:
            place = Place(node, None)
        else:
            kind = _PLAIN.get(self._schema[node.name])
            if kind is None:
                raise _Unfit
            place = Place(node, kind)
        place.colons = 1 + key.count(":")
        return place

    def _object(self, node: Node) -> Place:
        if any(_ESCAPED.search(key) for key in node.members):
            raise _Unfit
        inside = [self._place(child, key) for key, child in node.members.items()]
        fields = [
            (f"f{i}", Union[one.kind, None, UnsetType], UNSET)  # noqa: UP007  a value, no hint
            for i, one in enumerate(inside)
        ]
        struct = msgspec.defstruct(
            "Row", fields, rename={f"f{i}": key for i, key in enumerate(node.members)},
            forbid_unknown_fields=True, gc=False,
        )  # fmt: skip
        return Place(node, struct, struct=struct, inside=inside)

    def decode(self, text: bytes) -> tuple[int, Typed] | None:
        """How many rows, and their columns; None if some row is of another shape."""
        if self._decoder is None:
            return None
        try:
            rows = self._decoder.decode_lines(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        out = Typed()
        try:
            self._inside(self._root, rows, out)
        except (pl.exceptions.PolarsError, TypeError, OverflowError):
            return None  # an integer that its column cannot hold
        return len(rows), out

    def _inside(self, place: Place, cells: Sequence[Any], out: Typed) -> None:
        """The members of objects or the items of lists that are all there."""
        split: Callable[[Any], Iterable[Any]] = (
            msgspec.structs.astuple if place.struct is not None else iter
        )
        columns = list(zip(*map(split, cells), strict=True)) if cells else []
        for one, column in zip(place.inside, columns, strict=bool(cells)):
            unset = column.count(UNSET)
            if place.struct is not None:
                out.colons += (len(column) - unset) * one.colons
            if None in column:
                out.nulls.add(one.node.name)
            self._column(one, column, unset, out)

    def _column(self, place: Place, column: Sequence[Any], unset: int, out: Typed) -> None:
        if place.inside or place.node.kind in ("object", "list"):
            empty = place.struct() if place.struct is not None else (UNSET,) * len(place.inside)
            whole = [empty if cell is UNSET or cell is None else cell for cell in column]
            self._inside(place, whole, out)
        elif place.node.name in self._schema:
            cells = [None if cell is UNSET else cell for cell in column] if unset else column
            kind = self._schema[place.node.name]
            out.columns[place.node.name] = pl.Series(place.node.name, cells, kind, strict=True)
