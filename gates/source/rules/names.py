"""Layouts are never carried over, and retired names never come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = None
_CARRIES = re.compile(r"(?:migrate|upgrade)_isv\w*")
_HINT = re.compile(rb"(?:migrate|upgrade)_isv")
_DEFINED = {
    "rust": "(function_item name: (identifier) @name)",
    "cuda": "(function_declarator declarator: [(identifier) (field_identifier) "
    "(qualified_identifier)] @name)",
}


def check(unit: Unit) -> Iterator[Hit]:
    """Functions that carry an old bus over to a new layout, and retired names in code."""
    if _HINT.search(unit.raw):
        yield from _carried(unit)
    for name in unit.config.retired:
        if name.encode() in unit.raw:
            yield from _retired(unit, name)


def _carried(unit: Unit) -> Iterator[Hit]:
    if unit.kind == "python":
        for node in ast.walk(unit.tree) if unit.tree is not None else ():
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if _CARRIES.fullmatch(node.name):
                at = unit.offset(node.lineno, node.col_offset)
                yield Hit("layout_carried_over", at, f"def {node.name}")
        return
    for at, found in unit.matches(_DEFINED[unit.kind]):
        name = unit.text(found["name"]).rpartition("::")[2]
        if _CARRIES.fullmatch(name):
            yield Hit("layout_carried_over", at, name)


def _retired(unit: Unit, name: str) -> Iterator[Hit]:
    """Identifiers and strings; what a comment tells of the past is not code."""
    word = re.compile(rb"(?<![A-Za-z0-9_])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9_])")
    for found in word.finditer(unit.raw):
        if not _in_comment(unit, found.start()):
            yield Hit("retired_name", found.start(), name)


def _in_comment(unit: Unit, at: int) -> bool:
    if unit.kind == "python":
        from trueup.gates.source.comments import comments

        return any(start <= at < start + len(text) for start, text in comments(unit))
    node = unit.root.descendant_for_byte_range(at, at + 1)
    return node is not None and "comment" in node.type
