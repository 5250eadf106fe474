"""The programme's ledger of runs: unbroken, and without an attempt at this commit kept quiet."""

from __future__ import annotations

import os

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Ticket
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where, show
from trueup.gates.read.limits import Fault


def judge_ledger(ticket: Ticket, files: Files, docket: Docket) -> None:
    """Every attempt at the ticket's commit ended well, or is declared as a rerun."""
    if ticket.ledger is None:
        return
    point = docket.point("runs: the ledger holds no other attempt")
    where = ticket.where("ticket", "ledger")
    place = files.locate("ticket", ticket.ledger, point, where)
    if place is None or files.digest(place, point, where) is None:
        return
    from trueup.gates.acceptance.ledger import read_ledger

    def report(fault: Fault) -> None:
        docket.collector.of_fault(place.shown, fault)

    try:
        ledger = read_ledger(place.path, place.shown, report)
    except Unreadable as error:
        point.unknown("file_missing", where, f"{place.shown}: {error.what}")
        return
    for broken in ledger.breaks:
        point.flaw(broken.kind, broken.where, broken.got, place.shown)
    ends: dict[str, tuple[str, Where]] = {}
    for record in ledger.records:
        if record.data["git_commit"] == ticket.commit:
            here = record.source.where(("run_id",))
            ends[record.run_id] = (record.outcome or "not finished", here)
    if not ends:
        point.unknown("retried_run", Where(), f"no run of {ticket.commit}", place.shown)
    declared = {os.path.basename(os.path.normpath(one.run)) for one in ticket.reruns}
    _attempts(ends, declared, point, place.shown)


def _attempts(
    ends: dict[str, tuple[str, Where]], declared: set[str], point: Point, shown: str
) -> None:
    """A run that never finished is an attempt as well; a void one was none."""
    for run, (outcome, here) in ends.items():
        if outcome not in ("PASS", "VOID") and run not in declared:
            point.flaw("retried_run", here, f"run {show(run)}: {outcome}", shown)
