"""Loads an acceptance file: by its schema, with the sets it includes, every path of it parsed."""

from __future__ import annotations

import functools
import json
import tomllib
from decimal import Decimal
from importlib import resources
from pathlib import Path, PurePath
from typing import Any

import msgspec

from trueup.gates.acceptance.config import Asked, Config
from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.inputs import Input, parse
from trueup.gates.acceptance.paths import PathError, parse_path
from trueup.gates.catalogue.kinds import kinds
from trueup.gates.plain_file import plain_bytes
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.structure import closest, first_problem

_MAX_BYTES = 1 << 20
_MANY = ("band", "limit", "mix", "wired", "ablation", "tests", "baseline")


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """One of the JSON Schemas of this folder."""
    file = resources.files("trueup.gates.acceptance") / "schemas" / f"{name}.schema.json"
    loaded: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return loaded


def sets() -> list[str]:
    """The sets of criteria that ship with the package."""
    folder = resources.files("trueup.gates.acceptance") / "sets"
    names = (PurePath(entry.name) for entry in folder.iterdir())
    return sorted(name.stem for name in names if name.suffix == ".toml")


def load_acceptance(path: Path, name: str) -> tuple[Config, Input]:
    """The acceptance, and its file. Raises `AcceptanceError` with file and key."""
    expected = "an acceptance file (TOML), or a folder with acceptance.toml"
    raw = plain_bytes(path, name, AcceptanceError, expected, _MAX_BYTES)
    source = parse(raw, name, path, "TOML", Limits(), functools.partial(_refuse, name))
    return _config(source), source


def _refuse(name: str, fault: Fault) -> None:
    place = ":".join(str(part) for part in (name, fault.line, fault.key) if part is not None)
    kind = kinds()[fault.kind]
    raise AcceptanceError(
        kind.summary, where=place, got=fault.got, expected=kind.expected, fix=kind.fix
    )


def check(source: Input, of: str) -> None:
    """Hold a document to one of the schemas; what is wrong with it is refused."""
    problem = first_problem(schema(of), source.data)
    if problem is None:
        return
    place = f"{source.name}: {problem.place}" if problem.place else source.name
    raise AcceptanceError(problem.what, where=place, fix=problem.fix)


def _config(source: Input) -> Config:
    check(source, "acceptance")
    data = dict(source.data)
    for name in data["acceptance"].get("include", []):
        data = _joined(_set(name, source.name), data)
    config: Config = msgspec.convert(data, Config)
    _whole(config, source.name)
    return config


def _set(name: str, where: str) -> dict[str, Any]:
    if name not in sets():
        raise AcceptanceError(
            "acceptance.include: unknown set", where=where, got=repr(name),
            expected=f"one of {', '.join(sets())}", fix=closest(name, sets()),
        )  # fmt: skip
    file = resources.files("trueup.gates.acceptance") / "sets" / f"{name}.toml"
    return tomllib.loads(file.read_text("utf-8"), parse_float=Decimal)


def _joined(included: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The included set, with what the file itself says in its place."""
    joined = {key: value for key, value in included.items() if key != "acceptance"} | {}
    for key, value in own.items():
        known = joined.get(key)
        if key in _MANY and known is not None:
            by_id = {one.get("id", one.get("file")): one for one in known}
            for one in value:
                by_id[one.get("id", one.get("file"))] = {
                    **by_id.get(one.get("id", one.get("file")), {}), **one,
                }  # fmt: skip
            joined[key] = list(by_id.values())
        elif isinstance(known, dict):
            joined[key] = {**known, **value}
        else:
            joined[key] = value
    return joined


def _whole(config: Config, where: str) -> None:
    """What a schema cannot say: every id once, paths that parse, bounds that bound."""
    if not config.asks:
        raise AcceptanceError(
            "asks for nothing", where=where,
            expected="a [[band]], [[limit]], [smoke], [hard_stop], [profile], [final], "
            "[[ablation]] or [[tests]]",
        )  # fmt: skip
    asked: tuple[Asked, ...] = (*config.band, *config.limit, *config.mix, *config.wired)
    _unique([*(one.id for one in asked), *(one.id for one in config.ablation),
             *(one.id for one in config.tests)], where)  # fmt: skip
    _unique([one.id for one in config.baseline], where)
    for one in asked:
        _bounded(one, config, where)
    for place, path in _paths(config):
        try:
            parse_path(path)
        except PathError as error:
            raise AcceptanceError(f"{place}: {error}", where=where, got=repr(path)) from None


def _unique(ids: list[str], where: str) -> None:
    for index, one in enumerate(ids):
        if one in ids[:index]:
            raise AcceptanceError("an id is used twice", where=where, got=one)


def _bounded(one: Any, config: Config, where: str) -> None:
    place = f"{type(one).__name__.lower()} {one.id}"
    needs = ""
    kind = type(one).__name__
    if kind == "Band" and one.relative is None and one.absolute is None:
        needs = "relative or absolute"
    if kind == "Limit" and one.at_least is None and one.at_most is None:
        needs = "at_least or at_most"
    if kind == "Limit" and bool(one.path) == bool(one.ratio):
        needs = "exactly one of path and ratio"
    if not one.file and not config.results.files:
        needs = "a file of its own, or [results] files"
    if needs:
        raise AcceptanceError(f"{place}: needs {needs}", where=where)
    if kind == "Band":
        _baseline(one.baseline, config, f"{place}.baseline", where)


def _baseline(name: str, config: Config, place: str, where: str) -> None:
    known = [one.id for one in config.baseline]
    if (name and name not in known) or (not name and len(known) != 1):
        got = repr(name) if name else f"{len(known)} baselines"
        raise AcceptanceError(
            f"{place}: names no baseline", where=where, got=got,
            expected="the id of a [[baseline]]; it may be left out where there is only one",
            fix=closest(name, known),
        )  # fmt: skip


def _paths(config: Config) -> list[tuple[str, str]]:
    found = [(one.id, one.path) for one in (*config.band, *config.mix, *config.wired)]
    found += [(one.id, path) for one in config.limit for path in (one.ratio or (one.path,))]
    if config.smoke is not None:
        found.append(("smoke.path", config.smoke.path))
    if config.hard_stop is not None:
        found += [(f"hard_stop.{m.name}", m.path) for m in config.hard_stop.metric if m.path]
    if config.final is not None:
        found.append(("final.sharpe", config.final.sharpe))
    found += [(f"{a.id}.{m.name}", m.path) for a in config.ablation for m in a.metric]
    return found
