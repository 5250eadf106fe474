"""Every stateful buffer in the code is in the reset registry, and every mechanism has a monitor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from trueup.gates.layout.registry import load_registry
from trueup.gates.source.config import inside
from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit

_TYPES = ("MappedF32Buffer", "MappedI32Buffer")


def check(tree: Tree) -> Iterator[Placed]:
    """Both registries, each where the settings declare it."""
    yield from _buffers(tree)
    yield from _monitors(tree)


def _buffers(tree: Tree) -> Iterator[Placed]:
    table = tree.config.table("registry")
    if not table:
        return
    path = inside(tree.config.root, table["file"], tree.config.name)
    registry = load_registry(path, table["file"])
    known = {entry.name for entry in registry.entries}
    types = tuple(table.get("types", _TYPES))
    found: set[str] = set()
    for unit in tree.fitting(table["paths"]):
        for at, name in _declared(unit, types):
            found.add(name)
            if name not in known:
                yield Placed("buffer_unregistered", unit.relative, at, f"{name} has no entry")
    for name, where in registry.buffers:
        if name not in found:
            got = f"{name}, declared in line {where.line}, is in no code"
            yield Placed("buffer_unregistered", table["file"], None, got)


def _declared(unit: Unit, types: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Fields, variables and parameters of these types."""
    if unit.kind == "python":
        for node in ast.walk(unit.tree) if unit.tree is not None else ():
            if isinstance(node, ast.AnnAssign) and _is_of(ast.unparse(node.annotation), types):
                name = ast.unparse(node.target).rpartition(".")[2]
                yield unit.offset(node.lineno, node.col_offset), name
        return
    query = {
        "rust": "(field_declaration name: (field_identifier) @n type: (_) @t)",
        "cuda": "(field_declaration type: (_) @t declarator: (field_identifier) @n)",
    }.get(unit.kind)
    for _, one in unit.matches(query) if query else ():
        if _is_of(unit.text(one["t"]), types):
            yield one["n"].start_byte, unit.text(one["n"])


def _is_of(text: str, types: tuple[str, ...]) -> bool:
    return any(word in types for word in re.findall(r"\w+", text))


def _monitors(tree: Tree) -> Iterator[Placed]:
    table = tree.config.table("monitors")
    if not table:
        return
    files = {
        PurePosixPath(unit.relative).stem: unit
        for unit in tree.fitting(table["files"])
        if PurePosixPath(unit.relative).stem not in ("mod", "lib", "__init__")
    }
    for name in table["mechanisms"]:
        if name not in files:
            yield Placed("mechanism_unmonitored", "", None, f"{name} has no monitor")
    for name, unit in files.items():
        if name not in table["mechanisms"]:
            got = f"{name} is no declared mechanism"
            yield Placed("mechanism_unmonitored", unit.relative, None, got)
