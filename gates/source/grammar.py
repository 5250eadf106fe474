"""The parsers of CUDA and Rust, and queries of their trees."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any


def parsed(kind: str, text: bytes) -> Any:
    """The root of a text's tree."""
    return _parser(kind).parse(text).root_node


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
