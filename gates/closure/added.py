"""What came to a ticket's runs after it was closed: the profile would judge it, and nobody did."""

from __future__ import annotations

import os

from trueup.gates.artifacts import find_artifacts
from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Ticket
from trueup.gates.collector import Collector
from trueup.gates.errors import GateError
from trueup.gates.findings import Where, show
from trueup.gates.profile.load import built_in, load_profile
from trueup.gates.profile.rules import Profile


def judge_added(
    ticket: Ticket, place: Place, files: Files, listed: set[str], docket: Docket
) -> None:
    """Each artifact that the ticket's runs hold now is among those of the statement.

    `listed`: real paths of its subjects. What the profile does not look for may come and go.
    """
    point = docket.point("statement: every artifact of the runs")
    beside = Place(place.path.parent, os.path.dirname(place.shown), os.path.dirname(place.name))
    profile = _profile(ticket, beside, files, point)
    if profile is None:
        return
    for key, relative in (("run", ticket.run), *(("runs", run) for run in ticket.runs)):
        where = ticket.where("ticket", key)
        run = _inside(files, beside, relative, folder=True)
        if run is None:
            point.unknown("statement_missing", where, f"the run {show(relative)} is not there")
        else:
            _run(run, profile, listed, point)


def _run(run: Place, profile: Profile, listed: set[str], point: Point) -> None:
    collector = Collector()
    try:
        found = find_artifacts(run.path, run.shown, profile, collector)
    except GateError as error:
        got = ", ".join(part for part in (f"{run.shown} {error.what}", error.got) if part)
        point.unknown("statement_missing", Where(), got, run.shown)
        return
    for one in found:
        if os.path.realpath(one.path) not in listed:
            got = f"{one.name} ({one.kind}) is in the run, but no subject"
            point.flaw("statement_added", Where(), got, one.name)
    for finding in collector.findings():  # a link out, a closed folder: who knows what is there
        if finding.severity == "error":
            got = f"{finding.artifact}: {finding.summary}, {finding.got}"
            point.unknown("statement_added", Where(), got, finding.artifact)


def _profile(ticket: Ticket, beside: Place, files: Files, point: Point) -> Profile | None:
    name = ticket.profile
    where = ticket.where("ticket", "profile")
    if name not in built_in():
        found = _inside(files, beside, name)
        if found is None:
            point.unknown("statement_missing", where, f"the profile {show(name)} is not there")
            return None
        name = str(found.path)
    try:
        return load_profile(name)
    except GateError as error:
        point.unknown("statement_missing", where, f"the profile {show(name)}: {error.what}")
        return None


def _inside(files: Files, beside: Place, relative: str, *, folder: bool = False) -> Place | None:
    """What the ticket names, below the root."""
    if os.path.isabs(relative):
        return None
    found = files.find("ticket", os.path.join(beside.name, relative), folder=folder)
    return found if isinstance(found, Place) else None
