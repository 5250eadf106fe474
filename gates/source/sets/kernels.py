"""Kernels registered in the build, embedded and launched are the same set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit

_FILE = re.compile(rb'["\']([^"\'\n]*?([A-Za-z0-9_.-]+)\.(?:cu|cubin|ptx|fatbin))["\']')
_GLOBAL = re.compile(r"\b__global__\b")
_LOADERS = ("load_function", "get_function")
_STRING = re.compile(r'^\(\s*c?"([^"]*)"')


def check(tree: Tree) -> Iterator[Placed]:
    """Hold F (on disk), R (registered), I (embedded), L (loaded) and G (kernels) to each other."""
    table = tree.config.table("kernels")
    if not table:
        return
    dead = {one["name"] for one in table.get("dead", ())}
    files = {PurePosixPath(unit.relative).stem: unit for unit in tree.fitting(table["sources"])}
    registered = _named(tree, table["build"])
    host = list(tree.fitting(table["host"]))
    embedded = _embedded(host)
    yield from _files(files, registered, embedded, dead)
    live = {stem: unit for stem, unit in files.items() if stem in registered}
    kernels = _kernels(live)
    launched = _loaded(host, tuple(table.get("loaders", _LOADERS))) | _launched(host, live)
    for name in sorted(launched.keys() - kernels.keys()):
        unit, at = launched[name]
        yield Placed("kernel_sets_differ", unit.relative, at, f"{name} is launched, and no kernel")
    for name in sorted(kernels.keys() - launched.keys() - dead):
        unit, at = kernels[name]
        yield Placed("kernel_sets_differ", unit.relative, at, f"{name} is never launched")
    known = {*files, *kernels}
    for name in sorted(dead - known):
        yield Placed("kernel_sets_differ", "", None, f"{name} is declared dead, and not there")


def _files(
    files: dict[str, Unit], registered: dict[str, tuple[Unit, int]],
    embedded: dict[str, tuple[Unit, int]], dead: set[str],
) -> Iterator[Placed]:  # fmt: skip
    for stem in sorted(registered.keys() - files.keys()):
        unit, at = registered[stem]
        got = f"{stem} is registered, and there is no such file"
        yield Placed("kernel_sets_differ", unit.relative, at, got)
    for stem in sorted(embedded.keys() - registered.keys()):
        unit, at = embedded[stem]
        got = f"{stem} is embedded, and not registered for compilation"
        yield Placed("kernel_sets_differ", unit.relative, at, got)
    for stem in sorted(registered.keys() - embedded.keys() - dead):
        unit, at = registered[stem]
        got = f"{stem} is compiled, and nothing embeds it"
        yield Placed("kernel_sets_differ", unit.relative, at, got)
    for stem in sorted(files.keys() - registered.keys() - dead):
        got = f"{stem} is on disk, not registered, and not declared dead"
        yield Placed("kernel_sets_differ", files[stem].relative, None, got)


def _named(tree: Tree, globs: list[str]) -> dict[str, tuple[Unit, int]]:
    """Kernel files that the build names as text."""
    found: dict[str, tuple[Unit, int]] = {}
    for unit in tree.fitting(globs):
        for one in _FILE.finditer(unit.raw):
            if unit.kind != "rust" or _is_string(unit, one.start() + 1):
                found.setdefault(one.group(2).decode(), (unit, one.start(1)))
    return found


def _is_string(unit: Unit, at: int) -> bool:
    node = unit.root.descendant_for_byte_range(at, at + 1)
    return node is not None and "string" in node.type


def _embedded(host: list[Unit]) -> dict[str, tuple[Unit, int]]:
    found: dict[str, tuple[Unit, int]] = {}
    for unit in host:
        if unit.kind == "rust" and b"include_bytes" in unit.raw:
            for at, one in unit.matches("(macro_invocation macro: (_) @m (token_tree) @a)"):
                if unit.text(one["m"]).endswith(("include_bytes", "include_str")):
                    for name in _FILE.finditer(one["a"].text):
                        found.setdefault(name.group(2).decode(), (unit, at))
        elif unit.kind != "rust":
            for name in _FILE.finditer(unit.raw):
                found.setdefault(name.group(2).decode(), (unit, name.start(1)))
    return found


def _kernels(files: dict[str, Unit]) -> dict[str, tuple[Unit, int]]:
    found: dict[str, tuple[Unit, int]] = {}
    query = "(function_definition declarator: (_) @head) @whole"
    for unit in files.values():
        for at, one in unit.matches(query):
            before = unit.raw[one["whole"].start_byte : one["head"].start_byte].decode()
            name = re.match(r"[\s*&]*(?:[\w:<>, ]*::)?(\w+)\s*\(", unit.text(one["head"]))
            if _GLOBAL.search(before) and name:
                found[name.group(1)] = (unit, at)
    return found


def _loaded(host: list[Unit], loaders: tuple[str, ...]) -> dict[str, tuple[Unit, int]]:
    found: dict[str, tuple[Unit, int]] = {}
    for unit in host:
        if unit.kind == "rust":
            query = "(call_expression function: (_) @f arguments: (arguments) @a)"
        elif unit.kind == "cuda":
            query = "(call_expression function: (_) @f arguments: (argument_list) @a)"
        else:
            found |= {name: (unit, at) for name, at in _python(unit, loaders)}
            continue
        for at, one in unit.matches(query):
            if re.split(r"::|\.|->", unit.text(one["f"]))[-1] in loaders:
                name = _STRING.match(unit.text(one["a"]))
                if name:
                    found.setdefault(name.group(1), (unit, at))
    return found


def _python(unit: Unit, loaders: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(unit.tree) if unit.tree is not None else ():
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in loaders and isinstance(node.args[0].value, str):
                yield node.args[0].value, unit.offset(node.lineno, node.col_offset)


def _launched(host: list[Unit], files: dict[str, Unit]) -> dict[str, tuple[Unit, int]]:
    """Launches by <<<...>>>, in host code or beside the kernels."""
    found: dict[str, tuple[Unit, int]] = {}
    query = "(call_expression function: (_) @f (kernel_call_syntax) @launch)"
    for unit in {id(one): one for one in [*host, *files.values()]}.values():
        if unit.kind == "cuda" and b"<<<" in unit.raw:
            for at, one in unit.matches(query):
                name = unit.text(one["f"]).partition("<")[0].rpartition("::")[2].strip()
                found.setdefault(name, (unit, at))
    return found
