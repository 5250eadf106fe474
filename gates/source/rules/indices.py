"""No bare numbers as indices into the bus: a slot moves, and the number stays."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueup.gates.source.python import last_name, told, walk
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = re.compile(rb"\[|\+|\(\s*\d")
_NUMBER = rb"\d[\w']*+"
# Numbers alone, whatever is done with them: 49, 40 + 9, 50..58.
_NUMBERS = rb"[\s(+-]*+" + _NUMBER + rb"(?:[\s()+*/.=-]++" + _NUMBER + rb")*+[\s).=]*+"
_WAYS = rb"(?:add|offset|wrapping_add|get|get_mut|get_unchecked|get_unchecked_mut|at|nth)"
_BEFORE = re.compile(rb"(?:\b[A-Za-z_]\w*\s*(?:\.|->|::)\s*)+\Z")


def check(unit: Unit) -> Iterator[Hit]:
    """Numbers as indices into declared arrays: in brackets, added to a pointer, asked for."""
    names: list[str] = unit.config.table("indices").get("names", ["isv"])
    if not any(name.encode() in unit.raw for name in names):
        return
    if unit.kind == "python":
        yield from _python(unit, names)
        return
    word = "|".join(re.escape(name) for name in names)
    added = rb"|\+\s*" + _NUMBER + rb"(?!\.)" if unit.kind == "cuda" else b""
    pattern = re.compile(
        rb"\b(?:" + word.encode() + rb")\b[\s)]*(?:\[(" + _NUMBERS + rb")\]" + added
        + rb"|(?:\.|->)\s*" + _WAYS + rb"\s*\(" + _NUMBERS + rb"\))"
    )  # fmt: skip
    for found in pattern.finditer(unit.code):
        if not _is_declared(unit, found):
            text = unit.raw[found.start() : found.end()].decode("utf-8", "replace")
            yield Hit("bare_index", _whole(unit, found.start()), " ".join(text.split())[:60])


def _is_declared(unit: Unit, found: re.Match[bytes]) -> bool:
    """Whether it is the size of an array that is declared."""
    if unit.kind != "cuda" or found.group(1) is None:
        return False
    node = unit.root.descendant_for_byte_range(found.start(), found.start() + 1)
    return bool(node is not None and node.parent is not None
                and node.parent.type == "array_declarator")  # fmt: skip


def _whole(unit: Unit, at: int) -> int:
    """Where `s.isv` begins, given where `isv` does."""
    found = _BEFORE.search(unit.code, max(0, at - 200), at)
    return found.start() if found else at


def _python(unit: Unit, names: list[str]) -> Iterator[Hit]:
    for node, at in walk(unit):
        if isinstance(node, ast.Subscript) and last_name(node.value) in names:
            index = node.slice
            parts = [index.lower, index.upper] if isinstance(index, ast.Slice) else [index]
            if any(_is_number(part) for part in parts):
                yield Hit("bare_index", at, told(node))


def _is_number(node: ast.expr | None) -> bool:
    """A whole number, or something made of whole numbers alone."""
    if node is None:
        return False
    leaves = [one for one in ast.walk(node) if isinstance(one, ast.Constant | ast.Name | ast.Call)]
    return bool(leaves) and all(
        isinstance(one, ast.Constant) and type(one.value) is int for one in leaves
    )
