"""Checks a statement again, later: are the files still what was judged, and all of it?"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trueup.gates.closure.current import judge_now
from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.exact import Exact, read_exact
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.repository import GitFailed, Repository
from trueup.gates.closure.statement import PREDICATE_TYPE, REPOSITORY, STATEMENT_TYPE, schema
from trueup.gates.closure.ticket import read_ticket
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Finding, show
from trueup.gates.structure import first_problem

_LEVELS = 32


@dataclass(frozen=True, slots=True)
class Recheck:
    """What became of a statement."""

    statement: str
    ticket: str
    result: str
    verdict: Literal["pass", "fail"]
    subjects: int
    points: tuple[Point, ...]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether it still holds."""
        return self.verdict == "pass"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "verdict": self.verdict,
            "statement": self.statement,
            "ticket": self.ticket,
            "result": self.result,
            "subjects": self.subjects,
            "points": [point.to_dict() for point in self.points],
            "findings": [finding.to_dict() for finding in self.findings],
        }


def verify_statement(
    path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    repository: str | os.PathLike[str] | None = None,
) -> Recheck:
    """Re-check a statement against the files under `root`.

    Without a root it is the nearest folder above the statement from which the ticket is found
    under its name. Raises `ClosureError` if the file is no statement of a closed ticket.
    """
    shown = str(path)
    exact = _read(Path(path), shown)
    data = exact.document.data
    ticket_name = _ticket_name(data, shown)
    base = _root(Path(path), ticket_name, None if root is None else Path(root))
    docket = Docket(shown)
    files = Files(base, base, str(root) if root is not None else _shown(base), docket)
    _subjects(exact, files, ticket_name, docket)
    _result(exact, docket)
    judge_now(exact, files, ticket_name, docket)
    _commit(exact, files, ticket_name, docket, repository)
    findings = docket.collector.findings()
    failed = any(one.severity == "error" for one in findings)
    return Recheck(
        statement=shown,
        ticket=ticket_name,
        result=data["predicate"]["result"],
        verdict="fail" if failed else "pass",
        subjects=len(data["subject"]),
        points=tuple(docket.points),
        findings=findings,
    )


def _read(path: Path, shown: str) -> Exact:
    try:
        exact = read_exact(path, shown, "JSON")
    except Unreadable as error:
        raise ClosureError(
            error.what, where=error.where, got=error.got,
            expected=error.expected or "a statement of a closed ticket", fix=error.fix,
        ) from None  # fmt: skip
    if not exact.usable:
        fault = exact.faults[0] if exact.faults else None
        raise ClosureError(
            "is no statement", where=f"{shown}:{fault.line}" if fault and fault.line else shown,
            got=f"{fault.kind.replace('_', ' ')}: {fault.got}" if fault else "no value",
            expected="JSON as `trueup close` writes it",
        )  # fmt: skip
    data = exact.document.data
    if isinstance(data, dict) and "payloadType" in data:
        raise ClosureError(
            "is a signed envelope", where=shown, expected="the statement inside it",
            fix="check the signature with the tool that made it, which also gives the payload",
        )  # fmt: skip
    if isinstance(data, dict):
        for key, wanted in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
            if isinstance(data.get(key), str) and data[key] != wanted:
                raise ClosureError(
                    "is a statement of another type", where=shown,
                    got=f"{key} {show(data[key])}", expected=wanted,
                )  # fmt: skip
    problem = first_problem(schema(), data)
    if problem is not None:
        raise ClosureError(
            f"is no statement of a closed ticket: {problem.place} {problem.what}", where=shown,
            expected="JSON as `trueup close` writes it", fix=problem.fix,
        )  # fmt: skip
    return exact


def _ticket_name(data: dict[str, Any], shown: str) -> str:
    """What the statement calls the ticket: the first of its configuration."""
    for one in data["predicate"]["configuration"]:
        if one.get("annotations", {}).get("role") == "ticket" and one.get("name"):
            return str(one["name"])
    raise ClosureError(
        "names no ticket in its configuration", where=shown,
        expected="JSON as `trueup close` writes it",
    )  # fmt: skip


def _root(path: Path, ticket: str, given: Path | None) -> Path:
    if given is not None:
        real = Path(os.path.realpath(given))
        if not real.is_dir():
            raise ClosureError("is no folder", where=str(given), fix="give an existing --root")
        return real
    folder = Path(os.path.realpath(path)).parent
    for above in (folder, *folder.parents)[:_LEVELS]:
        if (above / ticket).is_file():
            return above
    return folder


def _shown(base: Path) -> str:
    relative = os.path.relpath(base)
    return str(base) if relative.startswith("..") else relative


def _subjects(exact: Exact, files: Files, ticket: str, docket: Docket) -> None:
    """Every file is there with its digest, and is named once."""
    names: set[str] = set()
    for index, one in enumerate(exact.document.data["subject"]):
        name, digest = one["name"], one["digest"]
        point = docket.point(f"subject: {name}")
        where = exact.document.where("subject", index)
        if name in names:
            point.flaw("statement_incomplete", where, f"{show(name)} is named twice")
        names.add(name)
        if name == REPOSITORY and "gitCommit" in digest:
            continue
        if "sha256" not in digest:
            point.unknown("statement_incomplete", where, f"{show(name)} has no sha256")
            continue
        found = files.find("ticket", name)
        if not isinstance(found, Place):
            kind = "path_leads_out" if found[0] == "path_leads_out" else "statement_missing"
            point.flaw(kind, where, found[1])
            continue
        now = files.digest(found, point, where)
        if now is not None and now != digest["sha256"]:
            got = f"{found.shown} has sha256 {now}, not {digest['sha256']}"
            point.flaw("statement_changed", where, got)
    if ticket not in names:
        point = docket.point("statement: names the ticket")
        got = f"the ticket {show(ticket)} is no subject"
        point.flaw("statement_incomplete", exact.document.where("subject"), got)


def _result(exact: Exact, docket: Docket) -> None:
    predicate = exact.document.data["predicate"]
    point = docket.point("statement: result")
    where = exact.document.where("predicate", "result")
    failed = predicate.get("failedTests", [])
    if predicate["result"] == "FAILED" or failed:
        got = f"{predicate['result']}, {len(failed)} failed"
        point.flaw("statement_result", where, got)
    elif not predicate.get("passedTests"):
        point.flaw("statement_result", where, "no test passed")
    elif (predicate["result"] == "WARNED") != bool(predicate.get("warnedTests")):
        got = f"{predicate['result']}, {len(predicate.get('warnedTests', []))} warned"
        point.flaw("statement_result", where, got)


def _commit(
    exact: Exact,
    files: Files,
    ticket: str,
    docket: Docket,
    given: str | os.PathLike[str] | None,
) -> None:
    """The commit is still in the repository, where there is one to look into."""
    point = docket.point("subject: repository")
    commits = [
        (index, one["digest"]["gitCommit"])
        for index, one in enumerate(exact.document.data["subject"])
        if one["name"] == REPOSITORY and "gitCommit" in one["digest"]
    ]
    if not commits:
        got = "no commit among the subjects"
        point.flaw("statement_incomplete", exact.document.where("subject"), got)
        return
    index, commit = commits[0]
    folder = _repository(files, ticket) if given is None else Path(os.path.realpath(given))
    if folder is None:
        point.skip("no repository here to look into")
        return
    where = exact.document.where("subject", index)
    try:
        if not Repository(folder, str(folder)).has(commit):
            point.flaw("statement_missing", where, f"no commit {commit} in {folder}")
    except GitFailed as error:
        point.unknown("statement_missing", where, str(error))


def _repository(files: Files, name: str) -> Path | None:
    """The repository the ticket names, else the nearest one above it."""
    found = files.find("ticket", name)
    if not isinstance(found, Place):
        return None
    with suppress(ClosureError):
        relative = read_ticket(found.path, found.shown)[0].repository
        if relative is not None:
            inside = os.path.join(os.path.dirname(name), relative)
            place = files.find("ticket", inside, folder=True)
            return place.path if isinstance(place, Place) else None
    for above in found.path.parents:
        if (above / ".git").exists():
            return above
        if above == files.root:
            break
    return None
