"""A monitor only reads: it neither updates nor writes, and never gets the bus to change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trueup.gates.source.unit import Hit, Unit

KINDS = ("rust",)
HINT = re.compile(rb"Monitor")
_FUNCTIONS = """
(impl_item body: (declaration_list
  (function_item name: (identifier) @name parameters: (parameters) @parameters))) @impl
"""
_MONITOR = re.compile(r"^impl(?:<[^>]*>)?\s+(?:\w+::)*\w*Monitor\b|\bfor\s+\w*Monitor\b")


def check(unit: Unit) -> Iterator[Hit]:
    """Functions of a monitor that write, by their name or by what they take."""
    for _, found in unit.matches(_FUNCTIONS):
        head = unit.text(found["impl"]).partition("{")[0]
        if not _MONITOR.search(head):
            continue
        name = unit.text(found["name"])
        if name in ("update", "write_output"):
            yield Hit("monitor_writes", found["name"].start_byte, f"fn {name}(")
        taken = unit.text(found["parameters"])
        if re.search(r":\s*&(?:'\w+\s+)?mut\s*\[", taken):
            yield Hit("monitor_writes", found["name"].start_byte, f"fn {name}{taken}"[:80])
