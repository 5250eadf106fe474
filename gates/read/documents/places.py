"""Where each value of a document stands: a tree of offsets beside the tree of values."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from trueup.gates.documents.model import Pointer

# A node is the offset of a value; of an object or a list, the offset and its children.
Node = Any


class Lines:
    """Turns offsets of one text into lines and bytes. Offsets count the units of the text."""

    def __init__(self, text: str | bytes, shift: int = 0) -> None:
        """`shift`: bytes before the text, such as a byte order mark."""
        self._shift = shift
        if isinstance(text, bytes):
            self._starts = [0, *(found.end() for found in re.finditer(b"\n", text))]
            self._bytes: list[int] | None = None
            return
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        if text.isascii():
            self._bytes = None
        else:
            widths = (len(char.encode("utf-8", "surrogatepass")) for char in text)
            self._bytes = [0, *itertools.accumulate(widths)]

    def line(self, at: int) -> int:
        """The line that holds an offset, from 1."""
        return bisect_right(self._starts, at)

    def start(self, line: int) -> int:
        """The offset of a line's first character."""
        return self._starts[min(line, len(self._starts)) - 1]

    def byte(self, at: int) -> int:
        """The offset in bytes from the start of the file."""
        return self._shift + (at if self._bytes is None else self._bytes[at])


class Places(Mapping[Pointer, tuple[int, int]]):
    """Pointer to line and byte. Walks a tree, so that a large document costs little."""

    def __init__(self, tree: Node, lines: Lines) -> None:
        """`tree` has the shape of the document."""
        self._tree, self._lines = tree, lines

    def offset(self, pointer: Pointer) -> int | None:
        """Where a value begins, in units of the text."""
        node = self._tree
        for part in pointer:
            if not isinstance(node, tuple):
                return None
            children = node[1]
            if isinstance(children, dict):
                node = children.get(part)
            elif isinstance(part, int) and 0 <= part < len(children):
                node = children[part]
            else:
                return None
            if node is None:
                return None
        at: int | None = node[0] if isinstance(node, tuple) else node
        return at

    def __getitem__(self, pointer: Pointer) -> tuple[int, int]:
        """Line and byte of a value."""
        at = self.offset(pointer)
        if at is None:
            raise KeyError(pointer)
        return self._lines.line(at), self._lines.byte(at)

    def __iter__(self) -> Iterator[Pointer]:
        """Every pointer of the document, outer ones first."""
        waiting: list[tuple[Pointer, Node]] = [((), self._tree)]
        while waiting:
            pointer, node = waiting.pop()
            if node is None:
                continue
            yield pointer
            if isinstance(node, tuple):
                children = node[1]
                pairs = children.items() if isinstance(children, dict) else enumerate(children)
                waiting.extend(((*pointer, part), child) for part, child in pairs)

    def __len__(self) -> int:
        """How many values have a place."""
        return sum(1 for _ in self)
