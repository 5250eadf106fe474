"""One file of source: its text, its syntax tree, and places in it."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal

from trueup.gates.source.config import Config
from trueup.gates.source.grammar import matches_in, parsed

# text: a file of the build that names kernel files, and is read as it is
Kind = Literal["cuda", "rust", "python", "markdown", "text"]
SUFFIXES: dict[str, Kind] = {
    ".cu": "cuda", ".cuh": "cuda", ".rs": "rust", ".py": "python", ".md": "markdown",
}  # fmt: skip
_OPEN, _CLOSE = b"void _(){\n", b"\n;}"  # around the body of a macro, so that it can be parsed
_COMMENTS = {"cuda": "(comment) @c", "rust": "[(line_comment) (block_comment)] @c"}
_LITERALS = {
    "cuda": "[(string_literal) (raw_string_literal) (char_literal) (system_lib_string)] @s",
    "rust": "[(string_literal) (raw_string_literal) (char_literal)] @s",
}
_SAID = "(preproc_call directive: (_) @d argument: (preproc_arg) @said)"  # of #error, #warning
_ENDS = re.compile(rb"\r\n|\r|\n")  # of lines, as Python counts them


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
    raw: bytes  # UTF-8 without a mark in front
    config: Config
    partners: dict[int, int] | None = None  # of brackets, once they were asked for
    nodes: list[tuple[ast.AST, int]] | None = None  # of the Python tree, once it was walked
    _column: tuple[int, int, int] = (0, 0, 1)  # the last place asked for: line start, byte, column

    @cached_property
    def root(self) -> Any:
        """The root of the tree-sitter tree (CUDA and Rust)."""
        return parsed(self.kind, self.raw)

    @cached_property
    def code(self) -> bytes:
        """The text with comments and literals blanked, byte for byte (CUDA and Rust).

        What the parser could not make out is there as well, which no query of the tree would find.
        """
        return blanked(self.uncommented, self._spans(_LITERALS[self.kind]))

    @cached_property
    def uncommented(self) -> bytes:
        """The text with comments blanked; in Python, docstrings are comments too."""
        if self.kind in _COMMENTS:
            spans = [*self._spans(_COMMENTS[self.kind]), *self._said()]
        else:
            from trueup.gates.source.comments import comments
            from trueup.gates.source.python import docstrings

            found = [*comments(self), *(docstrings(self) if self.kind == "python" else ())]
            spans = [(at, at + len(text)) for at, text in found]
        return blanked(self.raw, spans)

    def _spans(self, pattern: str) -> list[tuple[int, int]]:
        return [
            (at, at + len(node.text))
            for at, found in self.matches(pattern)
            for node in found.values()
        ]

    def _said(self) -> Iterator[tuple[int, int]]:
        """What #error and #warning say, which is no code."""
        if self.kind == "cuda" and b"#" in self.raw:
            for _, found in matches_in(self.kind, self.root, _SAID):
                if found["d"].text.lstrip(b"# \t") in (b"error", b"warning"):
                    yield found["said"].start_byte, found["said"].end_byte

    @cached_property
    def _starts(self) -> list[int]:
        if self.kind == "python":
            return [0, *(found.end() for found in _ENDS.finditer(self.raw))]
        return [0, *(found.end() for found in re.finditer(b"\n", self.raw))]

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a byte, both from 1; columns count characters."""
        line = bisect_right(self._starts, at)
        start = self._starts[line - 1]
        last = self._column
        if last[0] == start and last[1] <= at:  # on from there: a line may be the whole file
            column = last[2] + _characters(self.raw[last[1] : at])
        else:
            column = 1 + _characters(self.raw[start:at])
        self._column = (start, at, column)
        return line, column

    def offset(self, line: int, column: int) -> int:
        """The byte of a line (from 1) and a column in bytes (from 0), as Python's tree has them."""
        return min(self._starts[min(line, len(self._starts)) - 1] + column, len(self.raw))

    @property
    def lines(self) -> int:
        """How many lines there are; a last one without an end counts."""
        return len(self._starts) - (not self.raw or self._starts[-1] == len(self.raw))

    def text(self, node: Any) -> str:
        """The text of a node."""
        found: bytes = node.text
        return found.decode("utf-8", "replace")

    def matches(self, pattern: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Matches of a query: the byte that its first capture begins at, and its captures.

        In CUDA the bodies of macros are searched as well.
        """
        yield from matches_in(self.kind, self.root, pattern)
        if self.kind == "cuda" and b"#" in self.raw:
            for body, start in self._macros:
                for at, found in matches_in(self.kind, body, pattern):
                    yield at + start, found

    @cached_property
    def _macros(self) -> list[tuple[Any, int]]:
        """Trees of the bodies of macros, and what to add to a byte in them."""
        bodies = []
        for at, found in matches_in(self.kind, self.root, "(preproc_arg) @body"):
            text = _OPEN + _on_one_line(found["body"].text) + _CLOSE
            bodies.append((parsed("cuda", text), at - len(_OPEN)))
        return bodies

    @cached_property
    def tree(self) -> ast.Module | None:
        """The Python tree; None where the text is not Python, or too deep to be parsed."""
        import warnings

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd escapes, which are not ours to tell
                return ast.parse(self.raw.decode("utf-8"))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _characters(text: bytes) -> int:
    return len(text.decode("utf-8", "replace"))


def blanked(text: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """A text with some parts as blanks of the same length, their line ends kept."""
    out = bytearray(text)
    for start, end in spans:
        out[start:end] = re.sub(rb"[^\r\n]", b" ", text[start:end])
    return bytes(out)


def _on_one_line(body: bytes) -> bytes:
    """A macro's body as code on one line, without the signs of macros, its length kept."""
    return body.replace(b"\\\r\n", b"   ").replace(b"\\\n", b"  ").replace(b"#", b" ")


def kind_of(name: str) -> Kind | None:
    """The language of a file by its name."""
    return SUFFIXES.get(PurePosixPath(name).suffix.lower())
