"""A monitor only reads: it neither updates nor writes, and never gets the bus to change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.source.unit import Hit, Unit

KINDS = ("rust",)
HINT = re.compile(rb"Monitor")
_FUNCTIONS = """
[(impl_item trait: (_)? @trait type: (_) @type body: (declaration_list) @body)
 (trait_item name: (_) @type body: (declaration_list) @body)]
"""
_MONITOR = re.compile(r"(?:^|::)\w*Monitor(?:\s*<|$)")
# A mutable borrow, or a raw pointer, of the bus or of floats.
_MUTABLE = re.compile(r"(?:&\s*(?:'\w+\s+)?mut\b|\*\s*mut\b)([^,]*)")
_BUS = re.compile(r"\bf32\b|\bMapped\w*Buffer\b|\b\w*(?:Isv|ISV)\w*\b")


def check(unit: Unit) -> Iterator[Hit]:
    """Functions of a monitor that write, by their name or by what they take."""
    for _, found in unit.matches(_FUNCTIONS):
        names = [unit.text(found[one]) for one in ("trait", "type") if one in found]
        if any(_MONITOR.search(name) for name in names):
            for child in found["body"].named_children:
                if child.type in ("function_item", "function_signature_item"):
                    yield from _written(unit, child)


def _written(unit: Unit, function: Any) -> Iterator[Hit]:
    name = function.child_by_field_name("name")
    taken = function.child_by_field_name("parameters")
    if name is None or taken is None:
        return
    if unit.text(name) in ("update", "write_output"):
        yield Hit("monitor_writes", name.start_byte, f"fn {unit.text(name)}(")
    for one in taken.named_children:
        kind = one.child_by_field_name("type") if one.type == "parameter" else None
        mutable = _MUTABLE.search(unit.text(kind)) if kind is not None else None
        if mutable and _BUS.search(mutable.group(1)):
            got = " ".join(f"fn {unit.text(name)}{unit.text(taken)}".split())
            yield Hit("monitor_writes", name.start_byte, got[:80])
            return
