"""No hidden switches: features, macros and environment variables are declared."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trueup.gates.source.calls import calls, closing
from trueup.gates.source.python import dotted_name, walk
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = re.compile(rb"feature|env|#\s*(?:el)?if|environ")
_FEATURE = re.compile(r'\bfeature\s*=\s*"([^"]*)"')
_ASKS = re.compile(rb"\bcfg!\s*[(\[{]|#!?\s*\[\s*cfg(?:_attr)?\s*\(")
_READS = r"(?:std\s*::\s*)?env\s*::\s*(?:var|var_os)"
_IMPORTED = re.compile(rb"\buse\s+std\s*::\s*env\s*::\s*(?:\{[^}]*\b)?(?:var|var_os)\b")
_STRING = re.compile(r'^\s*"([^"]*)"')
_CONDITION = re.compile(
    rb"^[ \t]*#[ \t]*((?:el)?if(?:n?def)?)\b((?:[^\n\\]|\\\r?\n|\\.)*)", re.MULTILINE
)
_WORD = re.compile(rb"(?<![\w'])[A-Za-z]\w*")  # names that begin with _ are the compiler's
_NOT_ASKED = (b"defined", b"true", b"false", b"and", b"or", b"not", b"CUDA_VERSION",
              b"CUDART_VERSION")  # fmt: skip
_HAS = re.compile(rb"\b__has_\w+\s*\([^)]*\)")
# What only looks in the environment, beside [...] and .get
_METHODS = ("get", "pop", "setdefault", "__getitem__", "__contains__")
_ENVIRONMENTS = ("os.environ", "environ", "os.environb", "environb")

Found = Iterator[tuple[int, str, str | None]]


def check(unit: Unit) -> Iterator[Hit]:
    """Switches that the settings do not declare; without a [flags] table nothing is asked."""
    if "flags" not in unit.config.data:
        return
    declared = unit.config.table("flags")
    known = {name: set(declared.get(name, ())) for name in ("features", "environment", "defines")}
    finder = {"cuda": _cuda, "rust": _rust, "python": _python}[unit.kind]
    for at, sort, name in finder(unit):
        if name is None:
            yield Hit("flag_undeclared", at, "an environment variable whose name is computed")
        elif name not in known[sort]:
            words = {"features": "feature", "environment": "environment variable",
                     "defines": "macro"}  # fmt: skip
            yield Hit("flag_undeclared", at, f"the {words[sort]} {name}")


def _rust(unit: Unit) -> Found:
    if b"feature" in unit.raw:
        for found in _ASKS.finditer(unit.code):
            # from the bracket of the attribute, or that of the macro, to its partner
            first = unit.code.index(b"[", found.start()) if b"#" in found.group() else None
            end = closing(unit, found.end() - 1 if first is None else first)
            text = unit.uncommented[found.start() : end].decode("utf-8", "replace")
            for feature in _FEATURE.finditer(text):
                yield found.start(), "features", feature.group(1)
    if b"env" not in unit.raw:
        return
    names = f"(?:{_READS}|var|var_os)" if _IMPORTED.search(unit.code) else _READS
    for call in calls(unit, names):
        yield call.at, "environment", _literal(call.arguments)
    for call in calls(unit, r"(?:(?:std|core)\s*::\s*)?(?:option_)?env(?=\s*!)"):
        name = _literal(call.arguments)
        if name is None or not name.startswith("CARGO_"):
            yield call.at, "environment", name


def _cuda(unit: Unit) -> Found:
    if b"getenv" in unit.raw:
        for call in calls(unit, r"(?:std\s*::\s*)?(?:secure_)?getenv"):
            yield call.at, "environment", _literal(call.arguments)
    for found in _CONDITION.finditer(unit.code):
        condition = _HAS.sub(lambda has: b" " * len(has.group()), found.group(2))
        for word in _WORD.finditer(condition):
            name = word.group()
            guard = found.group(1) == b"ifndef" and _is_guard(unit, found.end(), name)
            if name not in _NOT_ASKED and not guard:
                at = found.start(2) + word.start()
                yield at, "defines", name.decode()


def _is_guard(unit: Unit, end: int, name: bytes) -> bool:
    """An include guard: what was not defined is defined at once, and as nothing."""
    guard = rb"\s*#[ \t]*define[ \t]+" + re.escape(name) + rb"[ \t]*(?:\r?\n|\Z)"
    return bool(re.compile(guard).match(unit.code, end))


def _literal(arguments: str) -> str | None:
    found = _STRING.match(arguments)
    return found.group(1) if found else None


def _python(unit: Unit) -> Found:
    for node, at in walk(unit):
        key = _asked_for(node)
        if key is not None:
            value = key.value if isinstance(key, ast.Constant) else None
            name = value.decode("ascii", "replace") if isinstance(value, bytes) else value
            yield at, "environment", name if isinstance(name, str) else None


def _asked_for(node: ast.AST) -> ast.expr | None:
    """The name of the variable that a piece of Python reads from the environment."""
    if isinstance(node, ast.Call):
        called, _, method = dotted_name(node.func).rpartition(".")
        given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "key")]
        reads = method in ("getenv", "getenvb") and called in ("os", "")
        if given and (reads or (called in _ENVIRONMENTS and method in _METHODS)):
            return given[0]
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return node.slice if dotted_name(node.value) in _ENVIRONMENTS else None
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return node.left if dotted_name(node.comparators[0]) in _ENVIRONMENTS else None
    return None
