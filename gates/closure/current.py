"""Holds a statement against its ticket, and the ticket's runs, as they are now."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from trueup.gates.closure.added import judge_added
from trueup.gates.closure.docket import Docket
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.exact import Exact
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.ticket import read_ticket
from trueup.gates.findings import show


def judge_now(exact: Exact, files: Files, ticket: str, docket: Docket) -> None:
    """The statement lists every criterion, every file of the ticket, and every artifact."""
    current = _ticket(exact, files, ticket, docket)
    if current is None:
        return
    _criteria(exact, current, docket)
    _named(exact, files, current, docket)
    judge_added(current.ticket, current.place, files, _listed(exact, files), docket)


@dataclass(frozen=True, slots=True)
class _Current:
    """The ticket as it is now."""

    ticket: Ticket
    place: Place


def _ticket(exact: Exact, files: Files, ticket: str, docket: Docket) -> _Current | None:
    """The ticket of the statement; None after saying why it cannot be read."""
    point = docket.point("statement: its ticket can be read")
    where = exact.document.where("predicate", "configuration")
    found = files.find("ticket", ticket)
    if not isinstance(found, Place):
        point.unknown("statement_criterion", where, f"the ticket {show(ticket)} is not there")
        return None
    try:
        return _Current(read_ticket(found.path, found.shown)[0], found)
    except ClosureError as error:
        point.unknown("statement_criterion", where, f"the ticket cannot be read: {error.what}")
        return None


def _criteria(exact: Exact, current: _Current, docket: Docket) -> None:
    """Each criterion the ticket has now was among what was judged."""
    point = docket.point("statement: every criterion of the ticket")
    where = exact.document.where("predicate", "passedTests")
    predicate = exact.document.data["predicate"]
    listed = {*predicate.get("passedTests", ()), *predicate.get("warnedTests", ())}
    for criterion in current.ticket.criteria:
        if f"criterion: {criterion.id}" not in listed:
            got = f"{criterion.id} is in the ticket, but not in the statement"
            point.flaw("statement_criterion", where, got)


def _listed(exact: Exact, files: Files) -> set[str]:
    """Real paths of the subjects."""
    subjects = exact.document.data["subject"]
    return {_real(files.root / one["name"]) for one in subjects}


def _real(path: Path) -> str:
    """Where a path leads; one that no file can have leads to itself."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return str(path)


def _named(exact: Exact, files: Files, current: _Current, docket: Docket) -> None:
    """Each file the ticket names is a subject: one that is none could change unseen."""
    point = docket.point("statement: every file of the ticket")
    ticket, folder, listed = current.ticket, current.place.path.parent, _listed(exact, files)
    beside = [ticket.thread.export, ticket.board, ticket.evidence.kernels]
    of_run = [*(one.path for one in ticket.files), *(one.log for one in ticket.commands)]
    named = [path for path in beside if path is not None]
    for path in dict.fromkeys([*named, *(os.path.join(ticket.run, one) for one in of_run)]):
        if _real(folder / path) not in listed:
            got = f"{show(path)} is in the ticket, but no subject"
            point.flaw("statement_incomplete", exact.document.where("subject"), got)
