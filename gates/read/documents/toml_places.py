"""Finds where the values of a TOML text stand; the text itself is judged by the TOML library."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

from trueup.gates.documents.model import Pointer
from trueup.gates.read.documents.places import Node

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_SPACE = re.compile(r"[ \t]*+")
_PART = re.compile(r"""([A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*(\.?)[ \t]*""")
# One piece of a value: a string (the long forms first), a comment, a bracket, other text.
_PIECE = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+|[\[{]|[\]}]|\n|[^"\'#\[\]{}\n]++|.',
    re.DOTALL,
)
_MAX_PARTS = 64  # of one dotted key


@dataclass(frozen=True, slots=True)
class Statement:
    """A table header or a key with its value."""

    keys: tuple[str, ...]
    at: int  # of the header's bracket, or of the value
    header: bool
    many: bool = False  # [[an array of tables]]


def statements(text: str) -> Iterator[Statement]:
    """The statements of a text in order, up to the first that cannot be made out."""
    pos = 0
    while True:
        pos = _end(_BLANK, text, pos)
        if pos >= len(text):
            return
        header = text[pos] == "["
        many = header and text.startswith("[[", pos)
        keys, end = _keys(text, pos + header + many)
        if not keys or (not header and text[end : end + 1] != "="):
            return
        at = pos if header else _end(_SPACE, text, end + 1)
        yield Statement(keys, at, header, many)
        pos = min(end + 1 + many, len(text)) if header else _after(text, at)


def _end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos


def _keys(text: str, pos: int) -> tuple[tuple[str, ...], int]:
    """The parts of a dotted key, and where it ends. No parts: it is none."""
    parts: list[str] = []
    pos = _end(_SPACE, text, pos)
    while len(parts) < _MAX_PARTS:
        found = _PART.match(text, pos)
        if found is None:
            break
        parts.append(_unquoted(found[1]))
        pos = found.end()
        if not found[2]:
            return tuple(parts), pos
    return (), pos


def _unquoted(part: str) -> str:
    if part[0] == "'":
        return part[1:-1]
    if part[0] != '"' or "\\" not in part:
        return part.strip('"')
    try:
        return str(tomllib.loads(f"k = {part}")["k"])
    except tomllib.TOMLDecodeError:
        return part


def _after(text: str, pos: int) -> int:
    """The end of a value: the line end outside all brackets and strings."""
    depth = 0
    while pos < len(text):
        found = _PIECE.match(text, pos)
        if found is None:
            return len(text)
        piece = found.group()
        if piece == "\n" and depth <= 0:
            return found.end()
        depth += (piece in "[{") - (piece in "]}") if len(piece) == 1 else 0
        pos = found.end()
    return len(text)


@dataclass(slots=True)
class Tree:
    """Offsets of tables and keys, in the shape of the document.

    Values inside arrays and inline tables have no place of their own: the nearest is that of the
    key that holds them.
    """

    root: dict[str, Node] = field(default_factory=dict)
    _table: dict[str, Node] | None = None

    def add(self, statement: Statement) -> None:
        """Put one statement where it belongs."""
        if statement.header:
            self._table = self._enter(self.root, statement.keys, statement)
            return
        table = self.root if self._table is None else self._table
        inner = self._enter(table, statement.keys[:-1], statement)
        inner[statement.keys[-1]] = statement.at

    def _enter(
        self, table: dict[str, Node], keys: tuple[str, ...], statement: Statement
    ) -> dict[str, Node]:
        for depth, key in enumerate(keys):
            many = statement.many and depth == len(keys) - 1
            node = table.get(key)
            if not isinstance(node, tuple):
                node = table[key] = (statement.at, [] if many else {})
            if isinstance(node[1], list):
                if many or not node[1]:
                    node[1].append((statement.at, {}))
                table = node[1][-1][1]
            else:
                table = node[1]
        return table

    def first(self, keys: tuple[str, ...]) -> int | None:
        """Where a key of the open table, or what stands in its place, was set before."""
        node: Node = (None, self.root if self._table is None else self._table)
        found = None
        for key in keys:
            if not isinstance(node, tuple) or not isinstance(node[1], dict) or key not in node[1]:
                break
            node = node[1][key]
            found = node[0] if isinstance(node, tuple) else node
        return found


def tree_of(text: str) -> Node:
    """The places of a text that is TOML."""
    tree = Tree()
    for statement in statements(text):
        tree.add(statement)
    return (0, tree.root)


@dataclass(frozen=True, slots=True)
class Twin:
    """A key that is set twice: the statement at fault, and where the key was set before."""

    pointer: Pointer
    second: int
    first: int | None


def twin(text: str, until: int) -> Twin | None:
    """The last statement that begins before `until`, against those before it."""
    tree, last = Tree(), None
    header: tuple[str, ...] = ()
    for statement in statements(text):
        if statement.at >= until:
            break
        if last is not None:
            tree.add(last)
            header = last.keys if last.header else header
        last = statement
    if last is None:
        return None
    if last.header:
        tree.add(Statement((), 0, True))
        return Twin(last.keys, last.at, tree.first(last.keys))
    return Twin((*header, *last.keys), last.at, tree.first(last.keys))
