"""No arithmetic on adaptive values on the host: kernels compute them, the host only reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.source.config import matches
from trueup.gates.source.grammar import matches_in
from trueup.gates.source.python import last_name, told, walk
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = None
# Everything that gives a value to a name, a field or an element.
_ASSIGNED = {
    "cuda": "[(assignment_expression left: (_) @left right: (_) @right) "
    "(init_declarator declarator: (_) @left value: (_) @right) "
    "(field_declaration declarator: (_) @left default_value: (_) @right)] @whole",
    "rust": "[(assignment_expression left: (_) @left right: (_) @right) "
    "(compound_assignment_expr left: (_) @left right: (_) @right) "
    "(let_declaration pattern: (_) @left value: (_) @right) "
    "(field_initializer field: (_) @left value: (_) @right)] @whole",
}
_DEVICE = re.compile(r"\b__(?:global|device)__\b|\b\w*(?:DEVICE|KERNEL|GLOBAL)\w*\b")
_COMPOUND = re.compile(r"\s*[-+*/]=")
_METHODS = re.compile(r"(?:\.|->|::|\b)(?:mul_add|add|sub|mul|div|powi|powf|lerp|fmaf?f?)\Z")
_OPERATORS = ("+", "-", "*", "/")
_IN_PYTHON = ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow | ast.FloorDiv
Names = tuple[str, ...]


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
    # Not in the bodies of macros: who uses them, host or device, is not to be seen there.
    for at, found in matches_in(unit.kind, unit.root, _ASSIGNED[unit.kind]):
        target = unit.text(found["left"])
        if not _is_adaptive(target, buses, values) or _on_device(unit, found["whole"]):
            continue
        whole = unit.text(found["whole"])
        compound = _COMPOUND.match(whole[whole.find(target) + len(target) :])
        if compound or _computes(found["right"]):
            yield Hit("host_arithmetic", at, " ".join(whole.split())[:80])


def _is_adaptive(target: str, buses: Names, values: Names) -> bool:
    base, bracket, _ = target.partition("[")
    last = re.split(r"\.|->|::", base)[-1].strip().lstrip("*&( ").rstrip(") ")
    last = last.removeprefix("mut ").strip()
    return last in values or (bool(bracket) and last in buses)


def _on_device(unit: Unit, node: Any) -> bool:
    """Whether the nearest function or lambda around a CUDA statement runs on the device."""
    if unit.kind != "cuda":
        return False
    while node is not None:
        if node.type in ("function_definition", "lambda_expression"):
            body = node.child_by_field_name("body")
            end = body.start_byte if body else node.end_byte
            head = unit.raw[node.start_byte : end].decode("utf-8", "replace")
            if _DEVICE.search(head) or node.type == "function_definition":
                return bool(_DEVICE.search(head))
        elif node.type == "ERROR":  # what is around it was not understood
            return True
        node = node.parent
    return False


def _computes(node: Any) -> bool:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type == "binary_expression":
            operator = one.child_by_field_name("operator")
            if operator is not None and operator.type in _OPERATORS:
                return True
        if one.type == "call_expression":
            called = one.child_by_field_name("function")
            if called is not None and _METHODS.search(called.text.decode("utf-8", "replace")):
                return True
        if one.type not in ("subscript_argument_list", "index_expression", "subscript_expression",
                            "closure_expression", "lambda_expression"):  # fmt: skip
            waiting.extend(one.children)
    return False


def _python(unit: Unit, buses: Names, values: Names) -> Iterator[Hit]:
    for node, at in walk(unit):
        if isinstance(node, ast.AugAssign):
            targets: list[ast.expr] = [node.target]
            computes = isinstance(node.op, _IN_PYTHON)
        elif isinstance(node, ast.Assign):
            targets, computes = node.targets, _computes_in_python(node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets, computes = [node.target], _computes_in_python(node.value)
        else:
            continue
        if computes and any(_is_adaptive_in_python(one, buses, values) for one in targets):
            yield Hit("host_arithmetic", at, told(node, 80))


def _is_adaptive_in_python(target: ast.expr, buses: Names, values: Names) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_is_adaptive_in_python(one, buses, values) for one in target.elts)
    if isinstance(target, ast.Subscript) and last_name(target.value) in buses:
        return True
    while isinstance(target, ast.Subscript):
        target = target.value
    return last_name(target) in values


def _computes_in_python(value: ast.expr) -> bool:
    """Whether there is arithmetic in a value, outside of its indices."""
    waiting: list[ast.AST] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.BinOp) and isinstance(one.op, _IN_PYTHON):
            return True
        if isinstance(one, ast.Subscript):
            waiting.append(one.value)
        elif not isinstance(one, ast.Lambda):
            waiting.extend(ast.iter_child_nodes(one))
    return False
