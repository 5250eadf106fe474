"""The parsers of CUDA and Rust, and queries of their trees."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any


class TooSlow(Exception):
    """A file whose tree takes too long to be searched: text made of brackets alone, say."""


_WIDEST = 10_000  # pieces of one error: the search takes the square of it


def parsed(kind: str, text: bytes) -> Any:
    """The root of a text's tree. Raises `TooSlow` where it would take too long to be searched."""
    root = _parser(kind).parse(text).root_node
    if any(node.child_count > _WIDEST for node in errors(root)):
        raise TooSlow
    return root


def errors(root: Any) -> Iterator[Any]:
    """The outermost nodes of what the parser could not make out."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR":
            yield node
        elif node.has_error:
            waiting.extend(node.children)


def matches_in(kind: str, root: Any, pattern: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Matches of a query in a tree: the byte its first capture begins at, and its captures."""
    from tree_sitter import QueryCursor

    for _, captures in QueryCursor(_query(kind, pattern)).matches(root):
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
