"""The files a ticket lists: each is there, is the one that is meant, and is fit to be read."""

from __future__ import annotations

import os
from pathlib import Path

from trueup.gates.closure.docket import Docket
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import ListedFile, Ticket
from trueup.gates.closure.runs import Gate, Judging
from trueup.gates.closure.values import Values
from trueup.gates.closure.words import is_dummy
from trueup.gates.findings import Where, show


def judge_listed(ticket: Ticket, files: Files, gate: Gate | None, docket: Docket) -> dict[str, str]:
    """Check every listed file; give for each that is not fit the reason, by its name."""
    unfit: dict[str, str] = {}
    flaws = _flaws(gate)
    for one in ticket.files:
        point = docket.point(f"{one.kind} {one.name}: is the one the ticket names")
        where = ticket.where(*one.at, "sha256")
        if is_dummy(one.sha256):
            point.flaw("placeholder_text", where, one.sha256)
            unfit[one.name] = "its digest was never filled in"
            continue
        place = files.locate("run", one.path, point, ticket.where(*one.at, "path"))
        if place is None:
            unfit[one.name] = point.reasons[-1].removeprefix("undetermined: ")
        elif not files.matches(place, one.sha256, point, where):
            unfit[one.name] = "its digest is not the one the ticket states"
        elif place.path in flaws:
            got = f"{place.shown}: {flaws[place.path]}"
            docket.point(f"{one.kind} {one.name}: is fit").flaw("artifact_unfit", where, got)
            unfit[one.name] = f"not fit: {flaws[place.path]}"
    return unfit


def _flaws(gate: Gate | None) -> dict[Path, str]:
    """Real paths of artifacts in which the gate found an error."""
    found: dict[Path, str] = {}
    verdict = gate.verdict if gate is not None else None
    for finding in verdict.findings if verdict is not None else ():
        if finding.severity == "error":
            real = Path(os.path.realpath(finding.artifact))
            found.setdefault(real, f"{finding.rule}, {finding.summary}")
    return found


def unlisted_evals(ticket: Ticket, files: Files, gate: Gate | None, docket: Docket) -> None:
    """Results that the run holds and the ticket passes over in silence."""
    point = docket.point("evals: all of the run are listed")
    if gate is None or gate.verdict is None:
        point.skip("the run could not be judged")
        return
    listed = {_real(files, one) for one in ticket.files}
    for artifact in gate.verdict.artifacts:
        if artifact.kind == "eval" and Path(os.path.realpath(artifact.path)) not in listed:
            point.flaw("eval_unlisted", Where(), show(artifact.path), artifact.path)


def _real(files: Files, one: ListedFile) -> Path | None:
    found = files.find("run", one.path)
    return found.path if isinstance(found, Place) else None


def values_of(
    ticket: Ticket, files: Files, judging: Judging, unfit: dict[str, str]
) -> Values | None:
    """Where the criteria read their values from; None without a run."""
    if files.run is None:
        return None
    listed = {one.name: one for one in ticket.files}
    values = Values(files.run, listed, files, judging.profile, judging.limits, unfit)
    values.expect(ticket.criteria)
    return values
