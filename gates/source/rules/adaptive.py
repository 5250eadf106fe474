"""No arithmetic on adaptive values on the host: kernels compute them, the host only reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.source.config import matches
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = None
_ASSIGNED = {
    "cuda": "(assignment_expression left: (_) @left right: (_) @right) @whole",
    "rust": "[(assignment_expression left: (_) @left right: (_) @right) "
    "(compound_assignment_expr left: (_) @left right: (_) @right)] @whole",
}
_DEVICE = re.compile(r"\b__(?:global|device)__\b")


def check(unit: Unit) -> Iterator[Hit]:
    """Assignments to a slot of the bus, or to a declared value, that compute something."""
    table = unit.config.table("adaptive")
    if not matches(unit.relative, table.get("paths", ("**",))):
        return
    buses, values = tuple(table.get("buses", ("isv",))), tuple(table.get("values", ()))
    if not any(name.encode() in unit.raw for name in (*buses, *values)):
        return
    if unit.kind == "python":
        yield from _python(unit, buses, values)
        return
    for at, found in unit.matches(_ASSIGNED[unit.kind]):
        target = unit.text(found["left"])
        if not _is_adaptive(target, buses, values) or _on_device(unit, found["whole"]):
            continue
        compound = unit.text(found["whole"])[len(target) :].lstrip()[:2] in ("+=", "-=", "*=", "/=")
        if compound or _computes(found["right"]):
            text = " ".join(unit.text(found["whole"]).split())
            yield Hit("host_arithmetic", at, text[:80])


def _is_adaptive(target: str, buses: tuple[str, ...], values: tuple[str, ...]) -> bool:
    base, bracket, _ = target.partition("[")
    last = re.split(r"\.|->|::", base)[-1].strip().lstrip("*&( ").rstrip(") ")
    return last in values or (bool(bracket) and last in buses)


def _on_device(unit: Unit, node: Any) -> bool:
    """Whether the nearest function around a CUDA statement runs on the device."""
    if unit.kind != "cuda":
        return False
    while node is not None and node.type != "function_definition":
        node = node.parent
    if node is None:
        return False
    body = node.child_by_field_name("body")
    head = unit.raw[node.start_byte : body.start_byte if body else node.end_byte]
    return bool(_DEVICE.search(head.decode("utf-8", "replace")))


def _computes(node: Any) -> bool:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type == "binary_expression":
            operator = one.child_by_field_name("operator")
            if operator is not None and operator.type in ("+", "-", "*", "/"):
                return True
        waiting.extend(one.children)
    return False


def _python(unit: Unit, buses: tuple[str, ...], values: tuple[str, ...]) -> Iterator[Hit]:
    for node in ast.walk(unit.tree) if unit.tree is not None else ():
        if isinstance(node, ast.AugAssign):
            targets: list[ast.expr] = [node.target]
            computes = isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div)
        elif isinstance(node, ast.Assign):
            targets = node.targets
            computes = any(
                isinstance(one, ast.BinOp)
                and isinstance(one.op, ast.Add | ast.Sub | ast.Mult | ast.Div)
                for one in ast.walk(node.value)
            )
        else:
            continue
        for target in targets:
            if computes and _is_adaptive(ast.unparse(target), buses, values):
                at = unit.offset(node.lineno, node.col_offset)
                yield Hit("host_arithmetic", at, ast.unparse(node)[:80])
