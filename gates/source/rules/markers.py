"""No placeholder markers: what they promise is either done or a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trueup.gates.source.comments import comments
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python", "markdown")
HINT = re.compile(rb"\b(?:TODO|FIXME|XXX|HACK)\b")
_FENCE = re.compile(rb"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(rb"`[^`\n]*`")


def check(unit: Unit) -> Iterator[Hit]:
    """Markers in comments, in docstrings, and in the text of documents outside code."""
    if unit.kind == "markdown":
        text = _FENCE.sub(_blank, unit.raw)
        text = _INLINE.sub(_blank, text)
        parts = [(0, text)]
    else:
        parts = list(comments(unit))
        if unit.kind == "python":
            parts += list(_docstrings(unit))
    for start, text in parts:
        for found in HINT.finditer(text):
            yield Hit("placeholder_marker", start + found.start(), found.group().decode())


def _blank(found: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n]", b" ", found.group())


def _docstrings(unit: Unit) -> Iterator[tuple[int, bytes]]:
    import ast

    holders = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(unit.tree) if unit.tree is not None else ():
        if isinstance(node, holders) and node.body and isinstance(node.body[0], ast.Expr):
            value = node.body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                start = unit.offset(value.lineno, value.col_offset)
                end = unit.offset(value.end_lineno or value.lineno, value.end_col_offset or 0)
                yield start, unit.raw[start:end]
