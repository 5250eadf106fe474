"""Retried runs: another run of the same configuration that failed, and that nobody declared.

Two runs have the same configuration if their configuration documents, or else the configuration
rows of their telemetry, agree in everything but the seed and what only says where and when.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.gates.artifacts import Found, find_artifacts
from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Rerun, Ticket
from trueup.gates.closure.words import placeholder
from trueup.gates.collector import Collector
from trueup.gates.documents.model import Pointer, dotted
from trueup.gates.errors import GateError
from trueup.gates.findings import show
from trueup.gates.profile.rules import Profile
from trueup.gates.read.limits import Limits

_MAX_SIBLINGS = 500
_MAX_DOCUMENTS = 50
_SEED = re.compile(r"(?:^|[._\[])(?:\w+_)?seeds?(?:\]|\[\d+\]|$)", re.IGNORECASE)
# What differs between two runs of one configuration.
_INCIDENTAL = re.compile(
    r"(?:^|\.)(?:run_?id|run_?name|run_?dir|name|output_?dir|out_?dir|log_?dir|ckpt_?dir|log_?path|"
    r"save_?dir|checkpoint_?dir|started_?at|created_?at|finished_?at|timestamp|time|date|host|"
    r"hostname|pid|cwd|path|out|tags?|notes?|sha256|digest|config_?sha256|config_?digest)(?:\[\d+\])?$",
    re.IGNORECASE,
)
_IS_CONFIG = re.compile(r"(?:^|[._-])(?:config|hparams|params|settings)", re.IGNORECASE)
Passes = Callable[[Place], str | None]  # why a run did not pass, or None


@dataclass(frozen=True, slots=True)
class Identity:
    """What a run was asked to do, without its seed."""

    settings: str  # canonical text
    seeds: tuple[str, ...]
    source: str  # where it was read

    @property
    def seed(self) -> str:
        """The seeds for people."""
        return ", ".join(self.seeds) or "not recorded"


def judge_reruns(
    ticket: Ticket,
    files: Files,
    profile: Profile,
    passes: Passes,
    docket: Docket,
) -> None:
    """Look at every run beside the ticket's, and at those the ticket lists."""
    point = docket.point("runs: no failed run of the same configuration is kept quiet")
    declared = _declared(ticket, files, docket)
    where = ticket.where("ticket", "run")
    if files.run is None:
        point.unknown("retried_run", where, "there is no run directory")
        return
    own = identity(files.run.path, profile)
    if own is None:
        point.skip("the run records no configuration, so no other can be the same")
        return
    listed = _listed(ticket, files)
    for sibling in _siblings(files):
        if sibling.path in declared or sibling.path in listed:
            continue
        other = identity(sibling.path, profile)
        if other is None or other.settings != own.settings or other.source != own.source:
            continue
        failed = passes(sibling)
        if failed is not None:
            got = f"{sibling.shown}, seed {other.seed} (here: {own.seed}): {failed}"
            point.flaw("retried_run", where, got)


def _declared(ticket: Ticket, files: Files, docket: Docket) -> set[Path]:
    """The runs that the ticket owns up to."""
    found = set()
    for rerun in ticket.reruns:
        point = docket.point(f"rerun {rerun.run}")
        place = files.locate(
            "ticket", rerun.run, point, ticket.where(*rerun.at, "run"), folder=True
        )  # fmt: skip
        if place is None:
            continue
        if files.run is not None and place.path == files.run.path:
            got = f"{show(rerun.run)} is the run the ticket is closed on"
            point.flaw("rerun_unknown", ticket.where(*rerun.at, "run"), got)
        elif _says_something(rerun, ticket, point):
            where = ticket.where(*rerun.at, "run")
            point.flaw("rerun_declared", where, f"{show(rerun.run)}: {show(rerun.reason)}")
            found.add(place.path)
    return found


def _says_something(rerun: Rerun, ticket: Ticket, point: Point) -> bool:
    word = placeholder(rerun.reason)
    if word is not None:
        where = ticket.where(*rerun.at, "reason")
        point.flaw("placeholder_text", where, show(word))
    return word is None


def _listed(ticket: Ticket, files: Files) -> set[Path]:
    """The ticket's further runs: they are judged for themselves."""
    places = (files.find("ticket", run, folder=True) for run in ticket.runs)
    return {place.path for place in places if isinstance(place, Place)}


def _siblings(files: Files) -> Iterator[Place]:
    """The folders beside the run, as far as the root reaches."""
    assert files.run is not None
    parent = files.run.path.parent
    if files.run.path == files.root or not parent.is_relative_to(files.root):
        return
    names = sorted(os.listdir(parent))[:_MAX_SIBLINGS]
    for name in names:
        path = parent / name
        if name.startswith(".") or path.is_symlink() or not path.is_dir():
            continue
        if path != files.run.path:
            shown = os.path.join(os.path.dirname(files.run.shown), name)
            yield Place(path, shown, path.relative_to(files.root).as_posix())


def identity(run: Path, profile: Profile) -> Identity | None:
    """What a run was asked to do; None if it does not say."""
    try:
        found = find_artifacts(run, str(run), profile, Collector())
    except GateError:
        found = []
    documents = [*_configs(run), *(one.path for one in found if one.kind == "metadata")]
    for path in list(dict.fromkeys(documents))[:_MAX_DOCUMENTS]:
        settings = _settings_of(path)
        if settings:
            return _identity(settings, "configuration document")
    for table in (one for one in found if one.kind == "telemetry"):
        settings = _rows(table, profile)
        if settings:
            return _identity(settings, "configuration rows")
    return None


def _configs(run: Path) -> Iterator[Path]:
    """Configuration documents in the run's own folder."""
    for name in sorted(os.listdir(run)):
        path = run / name
        known = path.suffix in (".json", ".yaml", ".yml", ".toml") and _IS_CONFIG.search(name)
        if known and path.is_file() and not path.is_symlink():
            yield path


def _settings_of(path: Path) -> dict[str, Any] | None:
    """The settings in a document: its `config` part where it has one, else a whole config file."""
    from trueup.gates.read.documents.read import load_document

    try:
        document, _ = load_document(path)
    except GateError:
        return None
    data = document.data
    if not isinstance(data, dict):
        return None
    inner = data.get("config")
    if isinstance(inner, dict):
        return inner
    if path.suffix in (".yaml", ".yml") or _IS_CONFIG.search(path.name):
        return data
    return None


def _rows(table: Found, profile: Profile) -> dict[str, Any]:
    """The configuration rows of a log: those before the first step."""
    from trueup.gates.read.tables import open_table

    settings: dict[str, Any] = {}
    try:
        reader = open_table(
            table.path, report=lambda fault: None, nullable=profile.nullable,
            step_key=profile.step, nesting=profile.nesting, limits=Limits(),
        )  # fmt: skip
        for batch in reader.batches():
            if profile.step not in batch.frame.columns:
                return {}
            rows = batch.frame.filter(batch.frame[profile.step] == profile.config_step)
            for row in rows.to_dicts():
                settings.update({k: v for k, v in row.items() if v is not None})
            if rows.height < batch.frame.height:
                break
    except GateError:
        return {}
    settings.pop(profile.step, None)
    return settings


def _identity(settings: dict[str, Any], source: str) -> Identity:
    flat = dict(_flat(settings))
    seeds = tuple(f"{value}" for key, value in sorted(flat.items()) if _SEED.search(key))
    kept = {
        key: value
        for key, value in flat.items()
        if not _SEED.search(key) and not _INCIDENTAL.search(key)
    }
    return Identity(json.dumps(kept, sort_keys=True, default=str), seeds, source)


def _flat(data: Any) -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[Pointer, Any]] = [((), data)]
    while waiting:
        way, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting.extend(((*way, str(key)), inner) for key, inner in value.items())
        elif isinstance(value, list) and value:
            waiting.extend(((*way, index), inner) for index, inner in enumerate(value))
        else:
            yield dotted(way) or "", value
