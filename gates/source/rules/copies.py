"""No copies between host and device on hot paths: mapped pinned memory carries all traffic."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueup.gates.source.calls import calls
from trueup.gates.source.config import matches
from trueup.gates.source.python import last_name, told, walk
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = re.compile(rb"[mM]emcpy|htod|dtoh|\.cpu\(|\.cuda\(|\.numpy\(|\.to\(")
_EVERYWHERE = ("**/*.cu", "**/*.cuh", "**/*.rs")
_CROSSING = (
    r"cuMemcpy(?:HtoD|DtoH|HtoA|AtoH)\w*|cudaMemcpy(?:To|From)Symbol(?:Async)?\w*"
    r"|memcpy_(?:stod|dtov)\w*|(?:\w+_)?(?:htod|dtoh)(?:_\w+)?"
)
_OF_CUDART = r"cudaMemcpy(?:2D|3D)?(?:ToArray|FromArray|ArrayToArray)?(?:Batch)?(?:Async)?"
_OF_DRIVER = r"cuMemcpy(?:2D|3D)?(?:Unaligned)?(?:Batch)?(?:Async)?(?:_v2)?"
_NAMES = rf"(?:{_CROSSING}|(?:{_OF_CUDART}|{_OF_DRIVER})(?:_ptds|_ptsz)?)"
_ALWAYS, _ANY = re.compile(_CROSSING), re.compile(_NAMES)
_CROSSES = re.compile(r"cudaMemcpy(?:HostToDevice|DeviceToHost|Default)\b")
_STAYS = re.compile(r"cudaMemcpy(?:DeviceToDevice|HostToHost)\b")
_METHODS = ("cpu", "cuda", "numpy")
_DEVICE = re.compile(r"(?:cpu|cuda)(?::\d+)?")


def check(unit: Unit) -> Iterator[Hit]:
    """Calls that copy between host and device, or that cannot be judged by their text."""
    paths = unit.config.table("copies").get("paths", _EVERYWHERE)
    if not matches(unit.relative, paths):
        return
    if unit.kind == "python":
        yield from _python(unit)
        return
    for call in calls(unit, _NAMES):
        got = _judged(call.name, call.arguments)
        if got:
            yield Hit("host_device_copy", call.at, got)


def _judged(name: str, arguments: str) -> str:
    crossing = _CROSSES.search(arguments)
    if crossing:
        return f"{name}(..., {crossing.group()})"
    if _STAYS.search(arguments):
        return ""
    unsaid = "" if _ALWAYS.fullmatch(name) else " whose direction the text does not show"
    return f"{name}({unsaid}"


def _python(unit: Unit) -> Iterator[Hit]:
    for node, at in walk(unit):
        if not isinstance(node, ast.Call):
            continue
        name = last_name(node.func)
        if isinstance(node.func, ast.Attribute) and name in _METHODS:
            yield Hit("host_device_copy", at, f".{name}()")
        elif isinstance(node.func, ast.Attribute) and name == "to" and _to_device(node):
            yield Hit("host_device_copy", at, told(node)[-60:])
        elif _ANY.fullmatch(name):
            got = _judged(name, " ".join(told(one, 200) for one in node.args))
            if got:
                yield Hit("host_device_copy", at, got)


def _to_device(node: ast.Call) -> bool:
    """`.to("cpu")`, `.to(device="cuda:0")`: a device that the text names."""
    given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "device")]
    texts = [one.value for one in given if isinstance(one, ast.Constant)]
    return any(isinstance(text, str) and bool(_DEVICE.fullmatch(text)) for text in texts)
