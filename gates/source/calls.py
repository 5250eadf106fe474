"""Calls in the text of a file, in macros and in what the parser could not make out as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trueup.gates.source.unit import Unit

_BRACKET = re.compile(rb"[()\[\]{}]")
_MOST = 4096  # bytes of arguments that are looked at
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
        end = closing(unit, found.end() - 1)
        text = unit.uncommented[found.end() : min(end - 1, found.end() + _MOST)]
        yield Call(found.group(1).decode(), at, text.decode("utf-8", "replace"), end)


def closing(unit: Unit, at: int) -> int:
    """The byte after the partner of the bracket at `at`; the end of the text if it has none."""
    if unit.partners is None:
        unit.partners, waiting = {}, list[int]()
        for found in _BRACKET.finditer(unit.code):
            if found.group() in b"([{":
                waiting.append(found.start())
            elif waiting:
                unit.partners[waiting.pop()] = found.end()
    return unit.partners.get(at, len(unit.code))


def declares(unit: Unit, at: int) -> bool:
    """Whether the name at a byte is that of a function that is declared there (CUDA)."""
    node = unit.root.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type.endswith("identifier"):
        node = node.parent
    return node is not None and node.type == "function_declarator"
