"""One file of source: its text, its syntax tree, and places in it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal

from trueup.gates.source.config import Config

Kind = Literal["cuda", "rust", "python", "markdown"]
SUFFIXES: dict[str, Kind] = {
    ".cu": "cuda", ".cuh": "cuda", ".rs": "rust", ".py": "python", ".md": "markdown",
}  # fmt: skip
_OPEN, _CLOSE = b"void _(){\n", b"\n;}"  # around the body of a macro, so that it can be parsed


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found: a kind of the catalogue, where it begins (in bytes), what is there."""

    kind: str
    at: int
    got: str


@dataclass(eq=False)
class Unit:
    """A file that is judged by itself. `relative` is its path from the root of the settings."""

    name: str
    relative: str
    kind: Kind
    raw: bytes
    config: Config

    @cached_property
    def root(self) -> Any:
        """The root of the tree-sitter tree (CUDA and Rust)."""
        return _parser(self.kind).parse(self.raw).root_node

    @cached_property
    def tree(self) -> ast.Module | None:
        """The Python tree; None where the text is not Python."""
        try:
            return ast.parse(self.raw)
        except (SyntaxError, ValueError, RecursionError):
            return None

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        at = self.raw.find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.raw.find(b"\n", at + 1)
        return starts

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a byte, both from 1; columns count characters."""
        import bisect

        line = bisect.bisect_right(self._starts, at)
        start = self._starts[line - 1]
        return line, len(self.raw[start:at].decode("utf-8", "replace")) + 1

    def offset(self, line: int, column: int) -> int:
        """The byte of a line (from 1) and a column in bytes (from 0), as Python's tree has them."""
        return self._starts[line - 1] + column

    def text(self, node: Any) -> str:
        """The text of a node."""
        found: bytes = node.text
        return found.decode("utf-8", "replace")

    def matches(self, pattern: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Matches of a query: the byte that its first capture begins at, and its captures.

        In CUDA the bodies of macros are searched as well.
        """
        yield from self._in(self.root, pattern, 0)
        if self.kind == "cuda" and b"#" in self.raw:
            for body, start in self._macros:
                yield from self._in(body, pattern, start)

    def _in(self, root: Any, pattern: str, shift: int) -> Iterator[tuple[int, dict[str, Any]]]:
        from tree_sitter import QueryCursor

        for _, captures in QueryCursor(_query(self.kind, pattern)).matches(root):
            first = {name: nodes[0] for name, nodes in captures.items()}
            at = min(node.start_byte for node in first.values())
            yield at + shift, first

    @cached_property
    def _macros(self) -> list[tuple[Any, int]]:
        """Trees of the bodies of macros, and what to add to a byte in them."""
        bodies = []
        for at, found in self._in(self.root, "(preproc_arg) @body", 0):
            text = found["body"].text
            parsed = _parser("cuda").parse(_OPEN + _plain(text) + _CLOSE)
            bodies.append((parsed.root_node, at - len(_OPEN)))
        return bodies

    def in_code(self, at: int) -> bool:
        """Whether a byte stands in neither a comment nor a string (CUDA and Rust)."""
        node = self.root.descendant_for_byte_range(at, at + 1)
        while node is not None:
            if "comment" in node.type or "string" in node.type or node.type == "char_literal":
                return False
            node = node.parent
        return True


def _plain(body: bytes) -> bytes:
    """A macro's body on one line, its length kept."""
    return body.replace(b"\\\r\n", b"   ").replace(b"\\\n", b"  ")


@functools.cache
def _language(kind: str) -> Any:
    import importlib

    from tree_sitter import Language

    return Language(importlib.import_module(f"tree_sitter_{kind}").language())


@functools.cache
def _parser(kind: str) -> Any:
    from tree_sitter import Parser

    return Parser(_language(kind))


@functools.cache
def _query(kind: str, pattern: str) -> Any:
    from tree_sitter import Query

    return Query(_language(kind), pattern)


def kind_of(name: str) -> Kind | None:
    """The language of a file by its name."""
    return SUFFIXES.get(PurePosixPath(name).suffix.lower())
