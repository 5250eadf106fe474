"""Every exported metric has one producer, and a unit."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from trueup.gates.source.calls import calls
from trueup.gates.source.python import last_name, walk
from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit

_NAME = re.compile(r'^\s*"([^"\\]*)"')


def check(tree: Tree) -> Iterator[Placed]:
    """Hold the calls that export metrics to the declared units, both ways."""
    table = tree.config.table("metrics")
    units: dict[str, str] = table["units"]
    found: dict[str, list[tuple[Unit, int]]] = defaultdict(list)
    for unit in tree.fitting(table["paths"]):
        for name, at in _exported(unit, tuple(table["functions"])):
            found[name].append((unit, at))
    for name, places in found.items():
        unit, at = places[0]
        if name not in units:
            yield Placed("metric_ambiguous", unit.relative, at, f"{name} has no declared unit")
        for other, again in places[1:]:
            first = f"{unit.relative}:{unit.place(at)[0]}"
            got = f"{name} is exported here as well as at {first}"
            yield Placed("metric_ambiguous", other.relative, again, got)
    for name in sorted(units.keys() - found.keys()):
        yield Placed("metric_ambiguous", "", None, f"{name} has a unit, and nothing exports it")


def _exported(unit: Unit, functions: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Names given as text to one of the functions or macros."""
    if unit.kind == "python":
        for node, at in walk(unit):
            if isinstance(node, ast.Call) and last_name(node.func) in functions and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value, at
    elif unit.kind in ("rust", "cuda"):
        for call in calls(unit, "(?:" + "|".join(map(re.escape, functions)) + ")"):
            name = _NAME.match(call.arguments)
            if name:
                yield name.group(1), call.at
