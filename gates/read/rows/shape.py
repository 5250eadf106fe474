"""What is nested in the rows of a file: learned as rows come, and used to flatten them.

Each object and each list keeps the shape it was first seen with: an object does not become a
number, a list does not change its length, and no two paths have one name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.gates.findings import show
from trueup.gates.read.limits import Limits
from trueup.gates.read.nesting import Nesting

Row = dict[str, Any]
Kind = Literal["value", "object", "list"]
_WORDS = {"value": "a plain value", "object": "an object", "list": "a list"}


@dataclass(slots=True)
class Node:
    """One place in a row. `kind` is None while only nulls were seen there."""

    name: str
    path: tuple[str | int, ...] = ()
    kind: Kind | None = None
    family: str | None = None  # items of one list are of one type: their name without indices
    clash: bool = False  # another place has this name
    members: dict[str, Node] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ShapeFlaw:
    """What cannot be flattened, at one key of one row."""

    kind: str
    key: str
    got: str


class _TooMany(Exception):
    """The row has more places than a file may have."""


class Shape:
    """The tree of places of a file's rows."""

    def __init__(self, nesting: Nesting, limits: Limits) -> None:
        """Nothing is known yet."""
        self.nesting, self.limits = nesting, limits
        self.root = Node("", kind="object")
        self._leaves: dict[str, Node] = {}
        self._count = 0
        self._flaws: list[ShapeFlaw] = []

    def family(self, name: str) -> str | None:
        """What the items of one list share, for the column of this name."""
        node = self._leaves.get(name)
        return None if node is None else node.family

    def flatten(self, row: Row) -> tuple[Row | None, list[ShapeFlaw]]:
        """One row by the names of its columns; None if it has no such form."""
        self._flaws = []
        flat: Row = {}
        try:
            self._object(row, self.root, None, flat, 1)
        except _TooMany as error:
            got = f"{show(str(error))} after {self._count} other keys"
            self._flaws.append(ShapeFlaw("too_many_keys", str(error), got))
        return (None if self._flaws else flat), self._flaws

    def _object(self, value: Row, node: Node, name: str | None, flat: Row, depth: int) -> None:
        members = node.members
        for key, cell in value.items():
            child = members.get(key)
            if child is None:
                family = node.family and self.nesting.member(node.family, key)
                child = self._add(self.nesting.member(name, key), (*node.path, key), family)
                members[key] = child
            kind = type(cell)
            if child.kind == "value" and kind is not dict and kind is not list and not child.clash:
                flat[child.name] = cell
            else:
                self._cell(cell, child, flat, depth)

    def _cell(self, cell: Any, node: Node, flat: Row, depth: int) -> None:
        """A cell that is not known to be plain."""
        kind: Kind = "value"
        if isinstance(cell, dict | list):
            kind = "object" if isinstance(cell, dict) else "list"
            if depth >= self.limits.max_depth:
                got = f"more than {self.limits.max_depth} levels"
                self._flaws.append(ShapeFlaw("too_deep", node.name, got))
                return
        if cell is None:
            self._leaf(cell, node, flat)
        elif node.kind is not None and node.kind != kind:
            got = f"{_WORDS[kind]} where other rows have {_WORDS[node.kind]}"
            self._flaws.append(ShapeFlaw("mistyped", node.name, got))
        elif kind == "object":
            node.kind = kind
            self._object(cell, node, node.name, flat, depth + 1)
        elif kind == "list":
            self._list(cell, node, flat, depth + 1)
        else:
            node.kind = kind
            self._leaf(cell, node, flat)

    def _leaf(self, cell: Any, node: Node, flat: Row) -> None:
        known = self._leaves.setdefault(node.name, node)
        if known is not node:
            node.clash = True
            got = f"{show(cell)} at {_place(node)}, and another value at {_place(known)}"
            self._flaws.append(ShapeFlaw("key_clash", node.name, got))
        else:
            flat[node.name] = cell

    def _list(self, cells: list[Any], node: Node, flat: Row, depth: int) -> None:
        if len(cells) > self.nesting.max_items:
            self._flaws.append(ShapeFlaw("list_too_long", node.name, f"{len(cells)} items"))
            return
        if node.kind is None:
            family = f"{node.family or node.name}[]"
            node.items = [
                self._add(self.nesting.item(node.name, index), (*node.path, index), family)
                for index in range(len(cells))
            ]
            node.kind = "list"
        if len(cells) != len(node.items):
            got = f"{len(cells)} items where other rows have {len(node.items)}"
            self._flaws.append(ShapeFlaw("list_length", node.name, got))
            return
        for cell, item in zip(cells, node.items, strict=True):
            self._cell(cell, item, flat, depth)

    def _add(self, name: str, path: tuple[str | int, ...], family: str | None) -> Node:
        if self._count >= self.limits.max_keys:
            raise _TooMany(name)
        self._count += 1
        return Node(name, path, family=family)


Shown = tuple[Any, ...]


def shape_of(node: Node) -> Shown:
    """What is known of the places below a node, to be compared."""
    return (
        node.kind, node.clash, *((key, shape_of(one)) for key, one in node.members.items()),
        *map(shape_of, node.items),
    )  # fmt: skip


def _place(node: Node) -> str:
    return " > ".join(show(part) for part in node.path)
