"""Calls in the text of a file, in macros and in what the parser could not make out as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trueup.gates.source.unit import Unit

_BRACKET = re.compile(rb"[()\[\]{}]")
_FURTHEST = 1 << 16  # bytes from a bracket to its partner
# `<T, 4>` or Rust's `::<T>` between a name and its arguments
TEMPLATE = rb"\s*(?:::\s*)?(?:<[^<>;(){}]*>\s*)?"
_DEFINES = re.compile(rb"\bfn\s+\Z")


@dataclass(frozen=True, slots=True)
class Call:
    """A name and the text of its arguments; strings are left in it, comments are not."""

    name: str
    at: int
    arguments: str
    end: int  # after the closing bracket


def calls(unit: Unit, name: str) -> Iterator[Call]:
    """Calls of functions or macros whose name fits a pattern in full; definitions are none."""
    pattern = re.compile(rb"(?<!\w)(" + name.encode() + rb")" + TEMPLATE + rb"(?:!\s*[(\[{]|\()")
    for found in pattern.finditer(unit.code):
        at = found.start()
        if _DEFINES.search(unit.code, max(0, at - 20), at):
            continue
        if unit.kind == "cuda" and declares(unit, at):
            continue
        end = closing(unit.code, found.end() - 1)
        text = unit.uncommented[found.end() : max(found.end(), end - 1)]
        yield Call(found.group(1).decode(), at, text.decode("utf-8", "replace"), end)


def closing(code: bytes, at: int) -> int:
    """The byte after the partner of the bracket at `at`; the end of the text if it has none."""
    depth = 0
    for found in _BRACKET.finditer(code, at, min(len(code), at + _FURTHEST)):
        depth += 1 if found.group() in b"([{" else -1
        if depth <= 0:
            return found.end()
    return min(len(code), at + _FURTHEST)


def declares(unit: Unit, at: int) -> bool:
    """Whether the name at a byte is that of a function that is declared there (CUDA)."""
    node = unit.root.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type.endswith("identifier"):
        node = node.parent
    return node is not None and node.type == "function_declarator"
