"""No atomics in kernels: their order is not fixed, so neither is a sum."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trueup.gates.source.calls import TEMPLATE
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda",)
HINT = re.compile(rb"atomic|\batom\.|\bred\.|\bcp\.reduce")
_NAME = rb"atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_block|_system)?"
_CALL = re.compile(
    rb"((?:(?<![\w>])::\s*)?\b(?:" + _NAME + rb"|__nv_atomic_\w+))" + TEMPLATE + rb"\("
)
_TYPE = re.compile(rb"(?:(?<![\w>])::\s*)?\bcuda\s*::\s*(?:std\s*::\s*)?atomic\w*")
# Passed on by its name, made another name for, or put together by the preprocessor.
_ALIAS = re.compile(
    rb"[=(&,]\s*(?:::\s*)?(" + _NAME + rb")\s*(?=[,);])"
    rb"|#[ \t]*define[ \t]+\w+[ \t]+(?:::)?(" + _NAME + rb")[ \t]*$"
    rb"|\b(atomic)\w*[ \t]*\#\#",
    re.MULTILINE,
)
_ASM = re.compile(rb"\b(?:asm|__asm(?:__)?)\b")
_IN_ASM = re.compile(rb"\b(?:atom|red|cp\.reduce)\.")
# An instruction in a text that is no inline assembly yet: its second word is one of theirs.
_PTX = re.compile(
    rb"\b(?:(?:atom|red)\.(?:async|global|shared|cluster|cta|gpu|sys|relaxed|acquire|release|acq_rel"
    rb"|add|sub|and|or|xor|cas|exch|min|max|inc|dec)|cp\.reduce\.async)\b"
)


def check(unit: Unit) -> Iterator[Hit]:
    """Calls of atomic functions, atomic types, names for them, and atomic instructions of PTX."""
    for found in _CALL.finditer(unit.code):
        name = b"".join(found.group(1).split()).decode()
        yield Hit("atomic_used", found.start(1), f"{name}(")
    for found in _TYPE.finditer(unit.code):
        yield Hit("atomic_used", found.start(), b"".join(found.group().split()).decode())
    for found in _ALIAS.finditer(unit.code):
        at = found.start(found.lastindex or 0)
        yield Hit("atomic_used", at, f"{found.group(found.lastindex or 0).decode()}, passed on")
    yield from _assembly(unit)


def _assembly(unit: Unit) -> Iterator[Hit]:
    judged = 0
    for found in _ASM.finditer(unit.code):
        end = unit.code.find(b";", found.end())  # one inside a string is blank there
        judged = len(unit.code) if end < 0 else end
        instruction = _IN_ASM.search(unit.uncommented, found.end(), judged)
        if instruction:
            yield Hit("atomic_used", found.start(), f"asm {instruction.group().decode()}")
    for found in _PTX.finditer(unit.uncommented):
        if not _in_assembly(unit, found.start()) and unit.code[found.start()] == ord(" "):
            yield Hit("atomic_used", found.start(), found.group().decode())


def _in_assembly(unit: Unit, at: int) -> bool:
    """Whether the statement that a byte belongs to is inline assembly."""
    start = unit.code.rfind(b";", 0, at) + 1
    return bool(_ASM.search(unit.code, start, at))
