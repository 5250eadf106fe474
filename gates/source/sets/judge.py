"""The rules over several files: they read the whole folder of the settings."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from trueup.gates.errors import Unreadable
from trueup.gates.source.config import Config, matches
from trueup.gates.source.files import relative, under
from trueup.gates.source.grammar import TooSlow
from trueup.gates.source.read import read_unit
from trueup.gates.source.sets import audits, documented, kernels, metrics, registered
from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit, kind_of
from trueup.gates.source.verdict import FileResult, Located, Waiver
from trueup.gates.source.waivers import inline_waivers

_SETS: dict[str, ModuleType] = {
    "kernels": kernels, "documented": documented, "audit": audits, "registry": registered,
    "monitors": registered, "metrics": metrics,
}  # fmt: skip


def set_hits(config: Config) -> list[FileResult]:
    """What the rules over several files find, by the file it is found in."""
    wanted = {rule: None for table, rule in _SETS.items() if config.data.get(table)}
    if not wanted:
        return []
    tree = Tree(config, {unit.relative: unit for unit in _units(config)})
    by_file: dict[str, list[Placed]] = defaultdict(list)
    for rule in wanted:
        try:
            for placed in rule.check(tree):
                by_file[placed.file].append(placed)
        except TooSlow:
            raise Unreadable(
                "a file takes too long to be searched", where=str(config.root),
                got=f"while {rule.__name__.rpartition('.')[2]} were looked at",
                fix="exclude files that are no code; `trueup lint` of the folder names them",
            ) from None  # fmt: skip
    return [_result(tree.units.get(file), file, found, config) for file, found in by_file.items()]


def _units(config: Config) -> Iterator[Unit]:
    """Every file that a rule may look at: source, documents, and what the build is made of."""
    build: list[str] = config.table("kernels").get("build", [])
    for file in under(config.root, config, []):
        place = relative(file, config)
        kind = kind_of(file.name) or ("text" if matches(place, build) else None)
        if kind is None or config.excluded(place):
            continue
        unit, _ = read_unit(file, config, kind)  # what cannot be read is told of the file itself
        if unit is not None:
            yield unit


def _result(unit: Unit | None, file: str, found: list[Placed], config: Config) -> FileResult:
    if unit is None:
        name = file or config.name
        path = Path(os.path.relpath(config.root / file)) if file else None
        shown = str(path) if path is not None and path.exists() else name
        return FileResult(
            shown, file or config.name, "", 0, 0,
            tuple(Located(one.kind, one.line, None, one.got) for one in found),
        )  # fmt: skip
    waivers, _ = inline_waivers(unit)
    return FileResult(
        unit.name, unit.relative, unit.kind, 0, 0,
        tuple(_located(unit, one) for one in found),
        tuple(Waiver(one, *unit.place(one.at)) for one in waivers),
    )  # fmt: skip


def _located(unit: Unit, one: Placed) -> Located:
    line, column = (None, None) if one.at is None else unit.place(one.at)
    return Located(one.kind, line, column, one.got)
