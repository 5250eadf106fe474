"""No hidden switches: features, macros and environment variables are declared."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python")
HINT = re.compile(rb"feature|env|#\s*if|environ")
_FEATURE = re.compile(r'\bfeature\s*=\s*"([^"]*)"')
_READS = re.compile(r"(?:std::)?(?:env::(?:var|var_os)|(?:secure_)?getenv)")
_COMPILE_TIME = ("env", "option_env")
_STRING = re.compile(r'^\(?\s*"([^"]*)"')


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


Found = Iterator[tuple[int, str, str | None]]


def _rust(unit: Unit) -> Found:
    if b"feature" in unit.raw:
        query = "[(attribute_item) (inner_attribute_item) (macro_invocation macro: (_) @m)] @whole"
        for _, found in unit.matches(query):
            text = unit.text(found["whole"])
            macro = found.get("m")
            if macro is not None and unit.text(macro) != "cfg":
                continue
            for feature in _FEATURE.finditer(text):
                yield found["whole"].start_byte, "features", feature.group(1)
    if b"env" not in unit.raw:
        return
    for at, found in unit.matches("(call_expression function: (_) @f arguments: (arguments) @a)"):
        if _READS.fullmatch(unit.text(found["f"])):
            yield at, "environment", _literal(unit.text(found["a"]))
    for at, found in unit.matches("(macro_invocation macro: (_) @m (token_tree) @a)"):
        if unit.text(found["m"]).rpartition("::")[2] in _COMPILE_TIME:
            name = _literal(unit.text(found["a"]))
            if name is None or not name.startswith("CARGO_"):
                yield at, "environment", name


def _cuda(unit: Unit) -> Found:
    if b"getenv" in unit.raw:
        query = "(call_expression function: (_) @f arguments: (argument_list) @a)"
        for at, found in unit.matches(query):
            if _READS.fullmatch(unit.text(found["f"]).lstrip(":")):
                yield at, "environment", _literal(unit.text(found["a"]))
    if b"#" not in unit.raw:
        return
    for at, found in unit.matches("(preproc_ifdef name: (identifier) @name) @whole"):
        name = unit.text(found["name"])
        if not name.startswith("_") and not _is_guard(unit, found["whole"], name):
            yield at, "defines", name
    for at, found in unit.matches("(preproc_defined (identifier) @name)"):
        name = unit.text(found["name"])
        if not name.startswith("_"):
            yield at, "defines", name


def _is_guard(unit: Unit, node: Any, name: str) -> bool:
    """An include guard, or a default: #ifndef X, then #define X."""
    return bool(re.match(rf"#\s*ifndef\s+{name}\s+#\s*define\s+{name}\b", unit.text(node)))


def _literal(arguments: str) -> str | None:
    found = _STRING.match(arguments)
    return found.group(1) if found else None


def _python(unit: Unit) -> Found:
    for node in ast.walk(unit.tree) if unit.tree is not None else ():
        key = _asked_for(node)
        if key is not None:
            literal = isinstance(key, ast.Constant) and isinstance(key.value, str)
            name = str(key.value) if isinstance(key, ast.Constant) and literal else None
            yield unit.offset(key.lineno, key.col_offset), "environment", name


def _asked_for(node: ast.AST) -> ast.expr | None:
    """The name of the variable that a piece of Python reads from the environment."""
    if isinstance(node, ast.Call) and node.args:
        if ast.unparse(node.func) in ("os.getenv", "getenv", "os.environ.get", "environ.get"):
            return node.args[0]
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        environment = ast.unparse(node.value) in ("os.environ", "environ")
        return node.slice if environment else None
    return None
