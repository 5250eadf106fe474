"""Every stateful buffer is in the reset registry, which is applied in one place; every mechanism
has a monitor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from trueup.gates.layout.registry import load_registry
from trueup.gates.source.calls import calls
from trueup.gates.source.config import inside
from trueup.gates.source.python import last_name, told, walk
from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit

_DECLARATIONS = {
    "rust": (
        "(field_declaration name: (field_identifier) @n type: (_) @t)",
        "(static_item name: (identifier) @n type: (_) @t)",
    ),
    "cuda": (
        "(field_declaration type: (_) @t declarator: (field_identifier) @n)",
        "(field_declaration type: (_) @t declarator: (_ (field_identifier) @n))",
    ),
}
_TYPES = ("MappedF32Buffer", "MappedI32Buffer")


def check(tree: Tree) -> Iterator[Placed]:
    """Both registries, each where the settings declare it."""
    if "registry" in tree.config.data:
        yield from _buffers(tree, tree.config.table("registry"))
        yield from _boundary(tree, tree.config.table("registry"))
    if "monitors" in tree.config.data:
        yield from _monitors(tree, tree.config.table("monitors"))


def _buffers(tree: Tree, table: dict[str, Any]) -> Iterator[Placed]:
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
            got = f"{name}, declared here, is in no code"
            yield Placed("buffer_unregistered", table["file"], None, got, where.line)


def _declared(unit: Unit, types: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Fields and statics of these types; in Python, names that are annotated with them."""
    if unit.kind == "python":
        for node, at in walk(unit):
            if isinstance(node, ast.AnnAssign) and _is_of(told(node.annotation, 400), types):
                name = last_name(node.target)
                if name:
                    yield at, name
        return
    for query in _DECLARATIONS.get(unit.kind, ()):
        for _, one in unit.matches(query):
            if _is_of(unit.text(one["t"]), types):
                yield one["n"].start_byte, unit.text(one["n"])


def _is_of(text: str, types: tuple[str, ...]) -> bool:
    return any(word in types for word in re.findall(r"\w+", text))


def _boundary(tree: Tree, table: dict[str, Any]) -> Iterator[Placed]:
    """The function that applies the registry at a fold is called in exactly one place."""
    name = table.get("reset")
    if name is None:
        return
    places = [(unit, at) for unit in tree.fitting(table["paths"]) for at in _called(unit, name)]
    for unit, at in places[1:]:
        first = f"{places[0][0].relative}:{places[0][0].place(places[0][1])[0]}"
        got = f"{name} is called here as well as at {first}: what it resets is reset twice"
        yield Placed("reset_called_elsewhere", unit.relative, at, got)
    if not places:
        yield Placed("reset_called_elsewhere", "", None, f"{name} is called nowhere")


def _called(unit: Unit, name: str) -> Iterator[int]:
    if unit.kind == "python":
        for node, at in walk(unit):
            if isinstance(node, ast.Call) and last_name(node.func) == name:
                yield at
    elif unit.kind in ("rust", "cuda"):
        yield from (call.at for call in calls(unit, re.escape(name)))


def _monitors(tree: Tree, table: dict[str, Any]) -> Iterator[Placed]:
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
