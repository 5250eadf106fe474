"""What a closure record points at: its commands, its hashes, what it left open or took back."""

from __future__ import annotations

import os
import re
from typing import Any

from trueup.gates.closure.docket import Point
from trueup.gates.closure.exact import rational
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.record_form import Record
from trueup.gates.closure.shell import faults
from trueup.gates.closure.thread import moment
from trueup.gates.closure.words import is_dummy, placeholder
from trueup.gates.documents.model import Pointer
from trueup.gates.findings import Where, show

_RATIO = re.compile(r"grad.*(?:ratio|norm)|(?:ratio|norm).*grad", re.IGNORECASE)
_MAX_FILES = 20_000


def judge_commands(record: Record, ticket: Ticket, point: Point) -> None:
    """All of the ticket's are there; each succeeded, can be run again, and is dated."""
    there = {" ".join(one["cmd"].split()) for _, one in record.each("commands")}
    for command in ticket.commands:
        if " ".join(command.line.split()) not in there:
            got = f"{show(command.line, 40)} of the ticket is not in it"
            point.flaw("record_command", record.where("commands"), got)
    for at, one in record.each("commands"):
        if one["exit_code"] != 0:
            got = f"exit code {one['exit_code']}"
            point.flaw("record_command", record.where(*at, "exit_code"), got)
        for fault in faults(one["cmd"]):
            point.flaw("record_command", record.where(*at, "cmd"), show(fault.got))
        if moment(one["started_at"]) is None:
            got = f"{show(one['started_at'])} is no date with an offset from UTC"
            point.unknown("record_command", record.where(*at, "started_at"), got)


def judge_hashes(record: Record, ticket: Ticket, files: Files, point: Point) -> None:
    """Every hash is that of a file of the run, and none of the ticket's is left out."""
    for kind, key in (("checkpoint", "checkpoints"), ("eval", "evals")):
        there = {one["sha256"] for _, one in record.each(key)}
        for listed in ticket.files:
            if listed.kind == kind and listed.sha256 not in there:
                got = f"{kind} {listed.name} of the ticket is not in it"
                point.flaw("record_hash", record.where(key), got)
    wanted = [
        *((at, one["log_sha256"], one["cmd"], "") for at, one in record.each("commands")),
        *((at, one["sha256"], one["path_id"], one["path_id"]) for at, one in
          record.each("checkpoints")),
        *((at, one["sha256"], one["id"], one["id"]) for at, one in record.each("evals")),
    ]  # fmt: skip
    missing = [one for one in wanted if not _resolves(one[3], one[1], files, point)]
    digests = _digests(files, point, {one[1] for one in missing}) if missing else set()
    for at, sha256, name, _ in missing:
        if is_dummy(sha256) or sha256 not in digests:
            got = f"{show(name, 40)}: no file of the run has sha256 {sha256}"
            point.flaw("record_hash", record.where(*at), got)


def _resolves(name: str, sha256: str, files: Files, point: Point) -> bool:
    """Whether the name is a path of the run to a file with this digest."""
    place = files.find("run", name) if name else None
    return isinstance(place, Place) and files.digest(place, point, Where()) == sha256


def _digests(files: Files, point: Point, wanted: set[str]) -> set[str]:
    """The wanted digests that some file of the run has."""
    found: set[str] = set()
    if files.run is None:
        return found
    count = 0
    for folder, folders, names in os.walk(files.run.path, followlinks=False):
        folders.sort()
        for name in sorted(names):
            count += 1
            relative = os.path.relpath(os.path.join(folder, name), files.run.path)
            place = files.find("run", relative)
            if count > _MAX_FILES or isinstance(place, tuple):
                continue
            sha256 = files.peek(place)
            if sha256 in wanted:
                files.digest(place, point, Where())
                found.add(sha256)
            if found == wanted:
                return found
    return found


def judge_words(record: Record, point: Point) -> None:
    """No cell was left blank; a task that was set aside keeps its id and its reason."""
    waiting: list[tuple[Pointer, Any]] = [((), record.exact.document.data)]
    while waiting:
        way, value = waiting.pop()
        if isinstance(value, str) and (word := placeholder(value)) is not None:
            point.flaw("record_placeholder", record.where(*way), show(word))
        elif isinstance(value, dict):
            waiting.extend(((*way, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*way, index), inner) for index, inner in enumerate(value))


def judge_retractions(record: Record, point: Point) -> None:
    """A measurement that was an artefact is retracted, and the retraction names both records."""
    known = {one["id"] for _, one in record.each("evals")}
    known |= {one["path_id"] for _, one in record.each("checkpoints")}
    known |= {record.data["item"], *(one["id"] for _, one in record.each("supersedes"))}
    retracted = set()
    for at, one in record.each("retractions"):
        ends = (one["retracted"], one["replaced_by"])
        retracted.add(ends[0])
        for name, key in zip(ends, ("retracted", "replaced_by"), strict=True):
            if name not in known:
                got = f"{show(name)} is neither an eval nor a checkpoint nor a superseded item"
                point.flaw("record_retraction", record.where(*at, key), got)
        if ends[0] == ends[1]:
            point.flaw("record_retraction", record.where(*at), f"{show(ends[0])} replaces itself")
    for at, one in record.each("evals"):
        for name, value in one["metrics"].items():
            if _RATIO.search(name) and rational(value) == 0 and one["id"] not in retracted:
                got = f"{show(name)} of {show(one['id'])} is exactly 0 and not retracted"
                point.flaw("record_retraction", record.where(*at, "metrics", name), got)
