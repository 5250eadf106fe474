"""No copies between host and device on hot paths: mapped pinned memory carries all traffic."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueup.gates.source.config import matches
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = re.compile(rb"[mM]emcpy|htod|dtoh|\.cpu\(|\.cuda\(|\.numpy\(")
_EVERYWHERE = ("**/*.cu", "**/*.cuh", "**/*.rs")
_ALWAYS = re.compile(
    r"cuMemcpy(?:HtoD|DtoH)\w*|cudaMemcpy(?:To|From)Symbol(?:Async)?"
    r"|memcpy_(?:stod|dtov|htod|dtoh)\w*|(?:htod|dtoh)_\w*copy\w*"
)
_DIRECTED = re.compile(r"cudaMemcpy(?:2D|3D)?(?:ToArray|FromArray)?(?:Peer)?(?:Async)?|cuMemcpy")
_CROSSES = re.compile(r"cudaMemcpy(?:HostToDevice|DeviceToHost|Default)\b")
_STAYS = re.compile(r"cudaMemcpy(?:DeviceToDevice|HostToHost)\b")
_METHODS = ("cpu", "cuda", "numpy")
_CALLS = {
    "cuda": "(call_expression function: [(identifier) (qualified_identifier) (field_expression)] "
    "@f arguments: (argument_list) @args)",
    "rust": "(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @f "
    "arguments: (arguments) @args)",
}


def check(unit: Unit) -> Iterator[Hit]:
    """Calls that copy between host and device, or that cannot be judged by their text."""
    paths = unit.config.table("copies").get("paths", _EVERYWHERE)
    if not matches(unit.relative, paths):
        return
    if unit.kind == "python":
        yield from _python(unit)
        return
    for at, found in unit.matches(_CALLS[unit.kind]):
        name = re.split(r"::|\.|->", unit.text(found["f"]))[-1].strip()
        got = _judged(name, unit.text(found["args"]))
        if got:
            yield Hit("host_device_copy", at, got)


def _judged(name: str, arguments: str) -> str:
    if _ALWAYS.fullmatch(name):
        return f"{name}("
    if not _DIRECTED.fullmatch(name):
        return ""
    crossing = _CROSSES.search(arguments)
    if crossing:
        return f"{name}(..., {crossing.group()})"
    return "" if _STAYS.search(arguments) else f"{name}( whose direction the text does not show"


def _python(unit: Unit) -> Iterator[Hit]:
    for node in ast.walk(unit.tree) if unit.tree is not None else ():
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        at = unit.offset(node.lineno, node.col_offset)
        bare = isinstance(node.func, ast.Attribute) and not node.args and not node.keywords
        if bare and name in _METHODS:
            yield Hit("host_device_copy", at, f".{name}()")
        elif _ALWAYS.fullmatch(name):
            yield Hit("host_device_copy", at, f"{name}(")
