"""No function without a body of its own: a stub that compiles is believed to work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = None
_MACROS = ("todo", "unimplemented")
_STOPS = re.compile(
    r"\{\s*(?:__trap\(\)|assert\(\s*(?:0|false)[^;]*\)|std::abort\(\)|abort\(\)"
    r"|throw\s[^;]*(?:not implemented|unimplemented)[^;]*)\s*;\s*\}",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"\{\s*(?:core::|std::)?(?:unreachable|panic)!\s*[({\[].*\}\s*", re.DOTALL
)
_NOT_DONE = re.compile(r"not (?:yet )?implemented|unimplemented|stub", re.IGNORECASE)


def check(unit: Unit) -> Iterator[Hit]:
    """Bodies that only stop, and statements that say that nothing is there yet."""
    if unit.kind == "python":
        yield from _python(unit)
    elif unit.kind == "rust":
        yield from _rust(unit)
    else:
        yield from _cuda(unit)


def _cuda(unit: Unit) -> Iterator[Hit]:
    for at, found in unit.matches("(function_definition body: (compound_statement) @body) @whole"):
        body = unit.text(found["body"])
        head = unit.raw[found["whole"].start_byte : found["body"].start_byte]
        empty = not found["body"].named_children and b"__global__" in head
        if empty or _STOPS.fullmatch(body.strip()):
            yield Hit("body_missing", at, " ".join(body.split())[:60])


def _rust(unit: Unit) -> Iterator[Hit]:
    if b"!" not in unit.raw:
        return
    for at, found in unit.matches("(macro_invocation macro: (_) @name) @whole"):
        if unit.text(found["name"]).rpartition("::")[2] in _MACROS:
            yield Hit("body_missing", at, unit.text(found["whole"])[:60])
    if b"unreachable!" not in unit.raw and b"panic!" not in unit.raw:
        return
    for _, found in unit.matches("(function_item body: (block) @body)"):
        body = unit.text(found["body"])
        one = [child for child in found["body"].named_children if "comment" not in child.type]
        stops = len(one) == 1 and _UNREACHABLE.fullmatch(body)
        if stops and ("unreachable!" in body or _NOT_DONE.search(body)):
            yield Hit("body_missing", found["body"].start_byte, " ".join(body.split())[:60])


def _python(unit: Unit) -> Iterator[Hit]:
    if unit.tree is None:
        return
    for parent, node in _functions(unit.tree, None):
        for inner in ast.walk(node):
            raises = isinstance(inner, ast.Raise) and _raises_not_implemented(inner)
            if isinstance(inner, ast.Raise) and raises and not _is_abstract(parent, node):
                at = unit.offset(inner.lineno, inner.col_offset)
                yield Hit("body_missing", at, ast.unparse(inner)[:60])
        if _is_empty(node) and not _is_abstract(parent, node):
            yield Hit("body_missing", unit.offset(node.lineno, node.col_offset), f"def {node.name}")


def _functions(node: ast.AST, parent: Any) -> Iterator[tuple[Any, Any]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield parent, child
        inside = child if isinstance(child, ast.ClassDef) else parent
        if not isinstance(child, ast.expr):
            yield from _functions(child, inside)


def _raises_not_implemented(node: ast.Raise) -> bool:
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _is_empty(node: Any) -> bool:
    """A body of `...` or `pass`, a docstring before it or not; a docstring alone says enough."""
    rest = [one for one in node.body if not _is_docstring(one)]
    return len(rest) == 1 and (
        isinstance(rest[0], ast.Pass)
        or (
            isinstance(rest[0], ast.Expr)
            and isinstance(rest[0].value, ast.Constant)
            and rest[0].value.value is ...
        )
    )


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_abstract(parent: Any, node: Any) -> bool:
    """Where a missing body is meant: protocols, abstract methods, overloads."""
    words = [ast.unparse(one) for one in node.decorator_list]
    if any("abstractmethod" in word or "overload" in word for word in words):
        return True
    bases = [ast.unparse(one) for one in parent.bases] if parent is not None else []
    return any(base.partition("[")[0].rpartition(".")[2] == "Protocol" for base in bases)
