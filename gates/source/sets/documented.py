"""Numbers and shapes that documents state are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.source.python import told
from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit

Value = int | list[int]
# 87, 1_000, 8,776 or 0x57; not the beginning of 0.5, 3e4 or 42x
_NUMBER = r"-?(?:0[xX][0-9a-fA-F_]+|[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?![\w]|\.\d|,\d)"
_VALUE = rf"(?P<value>\[[^\]\n]*\]|\([0-9][^)\n]*\)|{_NUMBER}(?:\s*[x×]\s*{_NUMBER})*)"
_TIMES = re.compile(r"\s*[x×]\s*")
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])_?(?:[uif](?:8|16|32|64|128|size)|[uU]?[lL]{0,2})$")


def check(tree: Tree) -> Iterator[Placed]:
    """Each place in a document that gives a declared name a value."""
    for one in tree.config.tables("documented"):
        coded = _coded(tree, one)
        if isinstance(coded, Placed):
            yield coded
            continue
        found = False
        for unit in tree.fitting(one["docs"]):
            for at, stated in _stated(unit, one["name"]):
                found = True
                if stated != coded:
                    got = f"{one['name']} = {_shown(stated)}, the code has {_shown(coded)}"
                    yield Placed("documented_value_differs", unit.relative, at, got)
        if not found:
            got = f"{one['name']} = {_shown(coded)} is in none of {', '.join(one['docs'])}"
            yield Placed("documented_value_differs", "", None, got)


def _stated(unit: Unit, name: str) -> Iterator[tuple[int, Value | None]]:
    """`name = 87` in text or code, and table rows whose first cell is the name."""
    text = unit.raw.decode("utf-8", "replace")
    word = rf"(?<![\w.]){re.escape(name)}(?![\w.])"
    for pattern in (
        rf"{word}[`*\"]*\s*(?:=|:=?|\bis\b)\s*[`*]*{_VALUE}",
        rf"^\s*\|\s*[`*]*{word}[`*]*\s*\|\s*[`*]*{_VALUE}[`*]*\s*\|",
    ):
        for found in re.finditer(pattern, text, re.MULTILINE):
            at = len(text[: found.start("value")].encode())
            yield at, parsed(found.group("value"))


def _coded(tree: Tree, one: dict[str, Any]) -> Value | Placed:
    if "value" in one:
        value: Value = one["value"]
        return value
    file, _, constant = one.get("code", ":").rpartition(":")
    unit = tree.units.get(file)
    if unit is None:
        got = f"{file or 'no file'}, which is to have {one['name']}, is not there"
        return Placed("documented_value_differs", "", None, got)
    for at, name, text in constants(unit):
        if name == constant:
            coded = parsed(text)
            if coded is not None:
                return coded
            got = f"{constant} is no plain number: {text[:60]}"
            return Placed("documented_value_differs", unit.relative, at, got)
    return Placed("documented_value_differs", file, None, f"no constant {constant}")


def constants(unit: Unit) -> Iterator[tuple[int, str, str]]:
    """Constants of a file: where, name, value as text."""
    if unit.kind == "python":
        yield from _python_constants(unit)
        return
    queries = {
        "rust": [
            "(const_item name: (_) @n value: (_) @v)",
            "(static_item name: (_) @n value: (_) @v)",
        ],
        "cuda": [
            "(preproc_def name: (_) @n value: (_) @v)",
            "(init_declarator declarator: (identifier) @n value: (_) @v)",
            "(init_declarator declarator: (array_declarator declarator: (identifier) @n) "
            "value: (_) @v)",
            "(enumerator name: (_) @n value: (_) @v)",
        ],
    }  # fmt: skip
    for query in queries.get(unit.kind, ()):
        for at, found in unit.matches(query):
            yield at, unit.text(found["n"]), unit.text(found["v"])


def _python_constants(unit: Unit) -> Iterator[tuple[int, str, str]]:
    for node in unit.tree.body if unit.tree is not None else ():
        if isinstance(node, ast.AnnAssign):
            targets: list[ast.expr] = [node.target]
        else:
            targets = node.targets if isinstance(node, ast.Assign) else []
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                yield unit.offset(node.lineno, node.col_offset), target.id, told(value, 4000)


def parsed(text: str) -> Value | None:
    """A whole number or a list of them, in any of the languages; None for anything else."""
    text = text.strip().lstrip("&")
    if re.fullmatch(r"(?!0[xX])[\d_,]+(?:\s*[x×]\s*[\d_,]+)+", text):
        text = f"[{_TIMES.sub(',', text)}]"
    if text[:1] in "[({" and text[-1:] in "])}":
        parts = [part for part in text[1:-1].split(",") if part.strip()]
        values = [parsed(part) for part in parts]
        return None if any(not isinstance(v, int) for v in values) else [
            value for value in values if isinstance(value, int)
        ]  # fmt: skip
    text = _SUFFIX.sub("", text).replace("_", "").replace(",", "")
    try:
        return int(text, 0)
    except ValueError:
        return None


def _shown(value: Value | None) -> str:
    return "no number" if value is None else str(value)
