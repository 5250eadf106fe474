"""No function without a body of its own: a stub that compiles is believed to work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.source.python import last_name, told, walk
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = None
_MACRO = re.compile(rb"\b(todo|unimplemented)!\s*[(\[{]")
_STOPS = re.compile(
    r"\{\s*(?:__trap\(\)|assert\(\s*(?:0|false)[^;]*\)|std::abort\(\)|abort\(\)"
    r"|throw\s[^;]*(?:not implemented|unimplemented)[^;]*)\s*;\s*\}",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"\{\s*(?:core::|std::)?(?:unreachable|panic)!\s*[({\[].*\}\s*", re.DOTALL
)
_NOT_DONE = re.compile(
    r"not (?:yet )?(?:been )?implemented|unimplemented|\bstub\b|\bto ?do\b", re.IGNORECASE
)
_IN_PYTHON = re.compile(rb"NotImplementedError|\bpass\b|\.\.\.")
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_ABSTRACT = ("abstractmethod", "abstractproperty", "overload")


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
        head = unit.text(found["whole"])[: -len(body)]
        empty = not found["body"].named_children and "__global__" in head
        if empty or _STOPS.fullmatch(body.strip()):
            yield Hit("body_missing", at, " ".join(body.split())[:60])


def _rust(unit: Unit) -> Iterator[Hit]:
    if _MACRO.search(unit.raw):
        for macro in _MACRO.finditer(unit.code):
            line = unit.raw[macro.start() : macro.start() + 200].decode("utf-8", "replace")
            yield Hit("body_missing", macro.start(), " ".join(line.split("\n")[0].split())[:60])
    if b"unreachable!" not in unit.raw and b"panic!" not in unit.raw:
        return
    for _, found in unit.matches("(function_item body: (block) @body)"):
        body = unit.text(found["body"])
        one = [child for child in found["body"].named_children if "comment" not in child.type]
        stops = len(one) == 1 and _UNREACHABLE.fullmatch(body)
        if stops and ("unreachable!" in body or _NOT_DONE.search(body)):
            yield Hit("body_missing", found["body"].start_byte, " ".join(body.split())[:60])


def _python(unit: Unit) -> Iterator[Hit]:
    """Bodies of nothing, or of nothing but `raise NotImplementedError`, unless they are meant.

    Within a body NotImplementedError with a message of its own refuses a case, as it is meant to.
    """
    if not _IN_PYTHON.search(unit.raw):
        return
    meant = _meant(unit)
    for node, at in walk(unit):
        if isinstance(node, _FUNCTION) and node not in meant and _is_nothing(_only(node)):
            yield Hit("body_missing", at, f"def {node.name}")
        elif isinstance(node, ast.Raise) and node not in meant and _says_not_done(node):
            yield Hit("body_missing", at, told(node))
        elif isinstance(node, _FUNCTION) and node not in meant:
            whole = _only(node)
            if isinstance(whole, ast.Raise) and _raises_not_implemented(whole):
                yield Hit("body_missing", unit.offset(whole.lineno, whole.col_offset), told(whole))


def _meant(unit: Unit) -> set[ast.AST]:
    """Functions whose missing body is meant, and what they raise.

    Those of protocols and abstract classes, overloads, declarations for type checkers, and empty
    functions inside another one, which are there to be passed on.
    """
    meant: set[ast.AST] = set()
    for node, _ in walk(unit):
        if isinstance(node, ast.ClassDef) and _is_abstract(node):
            meant.update(node.body)
        elif isinstance(node, ast.If) and last_name(node.test) == "TYPE_CHECKING":
            meant.update(ast.walk(node))
        elif isinstance(node, _FUNCTION):
            meant.update(one for one in node.body if _is_nothing(_only(one)))
            if node in meant or _is_declared_abstract(node):
                meant.update((node, *node.body))
    return meant


def _only(node: ast.AST) -> ast.stmt | None:
    """The one statement of a function beside its docstring."""
    rest = [] if not isinstance(node, _FUNCTION) else [
        one for one in node.body if not _is_docstring(one)
    ]  # fmt: skip
    return rest[0] if len(rest) == 1 else None


def _raises_not_implemented(node: ast.Raise) -> bool:
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _says_not_done(node: ast.Raise) -> bool:
    """NotImplementedError without a message, or with one that says that nothing is there yet."""
    if not _raises_not_implemented(node):
        return False
    given: list[Any] = node.exc.args if isinstance(node.exc, ast.Call) else []
    texts = [one.value for one in given if isinstance(one, ast.Constant)]
    return not given or any(isinstance(text, str) and _NOT_DONE.search(text) for text in texts)


def _is_nothing(node: ast.stmt | None) -> bool:
    """`...` or `pass`."""
    if isinstance(node, ast.Pass):
        return True
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and value.value is ...


def _is_docstring(node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _is_declared_abstract(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Where a missing body is meant: abstract methods, overloads."""
    return any(word in told(one, 200) for one in node.decorator_list for word in _ABSTRACT)


def _is_abstract(node: ast.ClassDef) -> bool:
    bases = [told(base, 200).partition("[")[0].rpartition(".")[2] for base in node.bases]
    return "Protocol" in bases or "ABC" in bases
