"""No atomics in kernels: their order is not fixed, so neither is a sum."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda",)
HINT = re.compile(rb"atomic|\batom\.|\bred\.")
_CALL = re.compile(
    r"(?:::)?(?:atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_block|_system)?"
    r"|__nv_atomic_\w+)"
)
_TYPE = re.compile(r"(?:::)?cuda::(?:std::)?atomic\w*\b")
_PTX = re.compile(r"\b(?:atom|red)\.")
_CALLS = "(call_expression function: [(identifier) (template_function) (qualified_identifier)] @f)"


def check(unit: Unit) -> Iterator[Hit]:
    """Calls of atomic functions, atomic types, and atomic instructions in inline assembly."""
    for at, found in unit.matches(_CALLS):
        name = unit.text(found["f"]).partition("<")[0].strip()
        if _CALL.fullmatch(name):
            yield Hit("atomic_used", at, f"{name}(")
    for at, found in unit.matches("(qualified_identifier) @q"):
        parent = found["q"].parent
        inner = parent is not None and parent.type == "qualified_identifier"
        atomic = _TYPE.match(unit.text(found["q"]))
        if atomic and not inner:
            yield Hit("atomic_used", at, atomic.group())
    for at, found in unit.matches("(gnu_asm_expression) @asm"):
        instruction = _PTX.search(unit.text(found["asm"]))
        if instruction:
            yield Hit("atomic_used", at, f"asm {instruction.group()}")
