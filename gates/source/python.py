"""Python's own tree, walked without recursion, each node with the byte it begins at."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from trueup.gates.source.unit import Unit

# Before 3.12 what stands inside an f-string has no place of its own that could be trusted.
_INNER_PLACES = sys.version_info >= (3, 12)
_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def walk(unit: Unit) -> list[tuple[ast.AST, int]]:
    """Every node after the one around it, and where it begins; in an f-string, where that begins.

    The list is made once for a file, and belongs to it.
    """
    if unit.nodes is None:
        unit.nodes = list(_walked(unit))
    return unit.nodes


def _walked(unit: Unit) -> Iterator[tuple[ast.AST, int]]:
    waiting: list[tuple[ast.AST, int, bool]] = [(unit.tree, 0, False)] if unit.tree else []
    while waiting:
        node, at, held = waiting.pop()
        line = getattr(node, "lineno", None)
        if line is not None and not held:
            at = unit.offset(line, getattr(node, "col_offset", 0))
        yield node, at
        held = held or (isinstance(node, ast.JoinedStr) and not _INNER_PLACES)
        waiting.extend((child, at, held) for child in ast.iter_child_nodes(node))


def docstrings(unit: Unit) -> Iterator[tuple[int, bytes]]:
    """Where each docstring begins, and its text with the quotes."""
    for node, _ in walk(unit):
        if isinstance(node, _DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                start = unit.offset(value.lineno, value.col_offset)
                end = unit.offset(value.end_lineno or value.lineno, value.end_col_offset or 0)
                yield start, unit.raw[start:end]


def last_name(node: ast.AST | None) -> str:
    """`c` of `a.b.c`; nothing for what is no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dotted_name(node: ast.AST | None) -> str:
    """`a.b.c`; nothing for what is no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def told(node: ast.AST, limit: int = 60) -> str:
    """A node as source on one line, cut short."""
    try:
        text = ast.unparse(node)
    except RecursionError:
        text = f"{type(node).__name__.lower()} too deep to be shown"
    return " ".join(text.split())[:limit]
