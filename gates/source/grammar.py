"""The parsers of CUDA and Rust, and queries of their trees."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any


def parsed(kind: str, text: bytes) -> Any:
    """The root of a text's tree."""
    return _parser(kind).parse(text).root_node


class TooSlow(Exception):
    """A file whose tree takes too long to be searched: text made of brackets alone, say."""


@dataclass(slots=True)
class Budget:
    """Seconds of processor time that the queries of one file may take."""

    left: float = 20.0

    def matches(self, kind: str, root: Any, pattern: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Matches of a query in a tree: the byte its first capture begins at, and its captures.

        Raises `TooSlow` once the budget is spent.
        """
        from tree_sitter import QueryCursor

        start = process_time()
        found = QueryCursor(_query(kind, pattern)).matches(  # type: ignore[call-arg]
            root, progress_callback=lambda _: process_time() - start > self.left
        )
        self.left -= process_time() - start
        if self.left < 0:
            raise TooSlow
        for _, captures in found:
            first = {name: nodes[0] for name, nodes in captures.items()}
            yield min(node.start_byte for node in first.values()), first


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
