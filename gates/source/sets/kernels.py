"""Kernels registered in the build, embedded and launched are the same set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from trueup.gates.source.calls import TEMPLATE, calls, closing
from trueup.gates.source.python import last_name, walk
from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit

_FILE = re.compile(rb"([A-Za-z0-9_.-]+)\.(?:cu|cubin|ptx|fatbin)\b")
_GLOBAL = re.compile(rb"\b__global__\b")
_NAMED = re.compile(rb"\b(\w+)" + TEMPLATE + rb"\(")
_AFTER = re.compile(rb"[\s\w]*([{;(=]?)")
_LOADERS = ("load_function", "get_function")
_LAUNCHES = r"(?:cuda|cu)Launch\w*Kernel\w*"
_CHEVRONS = re.compile(rb"\b(\w+)\s*(?:<[^;{}()]*>\s*)?<<<")
_STRING = re.compile(r'"([^"\\]*)"')
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_TEXTS = re.compile(rb'\b(?:const|static)\s+(\w+)\s*:\s*&[^=;]*=\s*c?"([^"]*)"')

Places = dict[str, tuple[Unit, int]]


def check(tree: Tree) -> Iterator[Placed]:
    """Hold F (on disk), R (registered), I (embedded), L (loaded) and G (kernels) to each other."""
    table = tree.config.table("kernels")
    dead = {one["name"] for one in table.get("dead", ())}
    files = {PurePosixPath(unit.relative).stem: unit for unit in tree.fitting(table["sources"])}
    registered = _file_names(tree.fitting(table["build"]))
    host = list(tree.fitting(table["host"]))
    yield from _files(files, registered, _embedded(host), dead)
    live = {stem: unit for stem, unit in files.items() if stem in registered}
    kernels = _kernels(live)
    loaded = _loaded(host, tuple(table.get("loaders", _LOADERS)))
    launched = {**loaded, **_launched([*host, *live.values()], kernels)}
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
    files: Mapping[str, Unit], registered: Places, embedded: Places, dead: set[str]
) -> Iterator[Placed]:
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


def _file_names(units: Iterator[Unit]) -> Places:
    """Kernel files that the build names: in strings of code, anywhere in other files."""
    found: Places = {}
    for unit in units:
        text = unit.raw if unit.kind == "text" else unit.uncommented
        for one in _FILE.finditer(text):
            if unit.kind != "rust" or unit.code[one.start()] == ord(" "):  # blank: in a string
                found.setdefault(one.group(1).decode(), (unit, one.start()))
    return found


def _embedded(host: list[Unit]) -> Places:
    found: Places = {}
    for unit in host:
        if unit.kind == "rust":
            for call in calls(unit, "include_(?:bytes|str)(?=!)"):
                for name in _FILE.finditer(call.arguments.encode()):
                    found.setdefault(name.group(1).decode(), (unit, call.at))
        else:
            found |= {k: v for k, v in _file_names(iter([unit])).items() if k not in found}
    return found


def _kernels(files: Mapping[str, Unit]) -> Places:
    """Every `__global__` function that has a body."""
    found: Places = {}
    for unit in files.values():
        for one in _GLOBAL.finditer(unit.code):
            at, sign = one.end(), b"("
            while sign == b"(":  # launch bounds, or another attribute, before the name
                named = _NAMED.search(unit.code, at)
                if named is None:
                    break
                at = closing(unit, named.end() - 1)
                after = _AFTER.match(unit.code, at)
                sign = after.group(1) if after else b""
                if sign == b"{":
                    found.setdefault(named.group(1).decode(), (unit, one.start()))
    return found


def _loaded(host: list[Unit], loaders: tuple[str, ...]) -> Places:
    """Names that a loader is given, as text or as a constant; the last text is the kernel's."""
    texts = {
        one.group(1).decode(): one.group(2).decode()
        for unit in host
        for one in _TEXTS.finditer(unit.raw)
    }
    word = "(?:" + "|".join(map(re.escape, loaders)) + ")"
    found: Places = {}
    for unit in host:
        if unit.kind == "python":
            for name, at in _python(unit, loaders):
                found.setdefault(name, (unit, at))
        elif unit.kind in ("rust", "cuda"):
            for call in calls(unit, word):
                names = _STRING.findall(call.arguments) or [
                    texts[one] for one in _WORD.findall(call.arguments) if one in texts
                ]
                if names:
                    found.setdefault(names[-1], (unit, call.at))
    return found


def _python(unit: Unit, loaders: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for node, at in walk(unit):
        if isinstance(node, ast.Call) and last_name(node.func) in loaders:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
            names = [text for text in texts if isinstance(text, str)]
            if names:
                yield names[-1], at


def _launched(units: list[Unit], kernels: Places) -> Places:
    """Launches by <<<...>>> and by the functions of the toolkit, in host code or beside kernels."""
    found: Places = {}
    for unit in {id(one): one for one in units}.values():
        if unit.kind != "cuda":
            continue
        for one in _CHEVRONS.finditer(unit.code):
            found.setdefault(one.group(1).decode(), (unit, one.start()))
        for call in calls(unit, _LAUNCHES):
            for name in _WORD.findall(call.arguments):
                if name in kernels:
                    found.setdefault(name, (unit, call.at))
    return found
