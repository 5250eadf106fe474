"""Layouts are never carried over, and retired names never come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueup.gates.source.config import matches
from trueup.gates.source.python import walk
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = None
_CARRIES = re.compile(rb"\b(?:migrate|upgrade)_isv\w*")
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias)


def check(unit: Unit) -> Iterator[Hit]:
    """Functions that carry an old bus over to a new layout, and retired names in code."""
    if _CARRIES.search(unit.raw):
        yield from _carried(unit)
    if matches(unit.relative, unit.config.table("names").get("paths", ("**",))):
        for name in unit.config.retired:
            if name.encode() in unit.raw:
                yield from _retired(unit, name)


def _carried(unit: Unit) -> Iterator[Hit]:
    """The name of such a function wherever code has it: declared, called, passed on."""
    if unit.kind != "python":
        for found in _CARRIES.finditer(unit.code):
            yield Hit("layout_carried_over", found.start(), found.group().decode())
        return
    for node, at in walk(unit):
        name = getattr(node, "name", "") if isinstance(node, _NAMED) else ""
        name = getattr(node, "attr", getattr(node, "id", name))
        if isinstance(name, str) and _CARRIES.fullmatch(name.encode()):
            yield Hit("layout_carried_over", at, name)


def _retired(unit: Unit, name: str) -> Iterator[Hit]:
    """Identifiers and strings; what a comment or a docstring tells of the past is not code."""
    word = re.compile(rb"(?<![A-Za-z0-9_])" + re.escape(name.encode()) + rb"(?![A-Za-z0-9_])")
    for found in word.finditer(unit.uncommented):
        yield Hit("retired_name", found.start(), name)
