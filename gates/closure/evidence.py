"""Kernel evidence: each kernel the runs used was verified, on a GPU, as it is at the commit."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.evidence_form import Entry, Evidence, read_evidence
from trueup.gates.closure.evidence_sources import judge_sources
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Deviation, Kernel, Ticket
from trueup.gates.closure.repository import Repository
from trueup.gates.closure.thread import moment
from trueup.gates.closure.words import placeholder
from trueup.gates.findings import show

BACKEND = "cuda"
_ASKED = ("cuda", "auto")  # what may have been asked for, to end on a GPU
_SKEW = timedelta(minutes=5)


def judge_evidence(
    ticket: Ticket,
    files: Files,
    repository: Repository | None,
    waived: Collection[Deviation],
    docket: Docket,
    now: datetime,
) -> None:
    """Hold the evidence to the kernels the ticket names."""
    point = docket.point("kernels: evidence")
    if ticket.evidence.none is not None:
        where = ticket.where("evidence", "none")
        if ticket.kernels:
            got = f"none, but {len(ticket.kernels)} [[kernel]] tables"
            point.flaw("evidence_unreadable", where, got)
        else:
            point.flaw("evidence_none", where, show(ticket.evidence.none))
        return
    evidence = read_evidence(ticket, files, point)
    if not ticket.kernels:
        got = "no [[kernel]] table: nothing says which kernels the runs used"
        point.flaw("kernel_uncovered", ticket.where("evidence"), got)
    if evidence is None:
        return
    _whole(evidence, docket.point("kernels: the verification was whole", evidence.shown), now)
    pardoned = {one.target: one for one in waived if one.waives == "equation"}
    for kernel in ticket.kernels:
        if kernel.id in pardoned:
            deviation = pardoned[kernel.id]
            got = f"{kernel.id}: {show(deviation.reason)}"
            point = docket.point(f"kernel {kernel.id}: evidence")
            point.flaw("kernel_waived", ticket.where(*deviation.at), got)
            continue
        entry = _entry(evidence, kernel, docket)
        if entry is not None:
            _lanes(evidence, kernel, entry, docket)
            _backend(evidence, kernel, entry, docket)
            judge_sources(evidence, kernel, entry, ticket, files, repository, docket)


def _whole(evidence: Evidence, point: Point, now: datetime) -> None:
    """The verification passed, and was narrowed to no lane and no case."""
    data = evidence.data
    if data["verdict"] != "PASS":
        point.flaw("evidence_verdict", evidence.where("verdict"), f"verdict {data['verdict']}")
    if data["errors"]:
        got = f"errors {show(data['errors'], 60)}"
        point.flaw("evidence_verdict", evidence.where("errors"), got)
    created = moment(data["created"])
    if created is None:
        got = f"created {show(data['created'])}"
        point.unknown("evidence_old", evidence.where("created"), got)
    elif created > now + _SKEW:
        got = f"created {show(data['created'])}, which lies in the future"
        point.flaw("evidence_old", evidence.where("created"), got)
    scope = data.get("scope")
    if scope is None:
        point.unknown("evidence_partial", evidence.where(), "does not say what was asked for")
        return
    for key in ("lanes", "case"):
        if scope[key] is not None:
            got = f"only {key} {show(scope[key])}"
            point.flaw("evidence_partial", evidence.where("scope", key), got)
    if scope["backend"] not in _ASKED:
        got = f"asked for backend {show(scope['backend'])}"
        point.flaw("evidence_backend", evidence.where("scope", "backend"), got)


def _entry(evidence: Evidence, kernel: Kernel, docket: Docket) -> Entry | None:
    point = docket.point(f"kernel {kernel.id}: is covered", evidence.shown)
    found = evidence.of(kernel.id)
    if len(found) == 1:
        return found[0]
    got = f"{kernel.id} {f'{len(found)} times' if found else 'is not'} in the evidence"
    point.flaw("kernel_uncovered", evidence.where("contracts"), got)
    return None


def _lanes(evidence: Evidence, kernel: Kernel, entry: Entry, docket: Docket) -> None:
    """Its verdict is that of its lanes; a lane that passed on nothing did not pass."""
    index, one = entry
    point = docket.point(f"kernel {kernel.id}: verdict and lanes", evidence.shown)
    if one["verdict"] != "PASS":
        where = evidence.where("contracts", index, "verdict")
        point.flaw("evidence_verdict", where, f"{kernel.id}: verdict {one['verdict']}")
    passed = set()
    for place, lane in enumerate(one["lanes"]):
        at = evidence.where("contracts", index, "lanes", place)
        said = f"{kernel.id}: lane {show(lane['lane'])}"
        errors = sum(found["severity"] == "error" for found in lane["findings"])
        if lane["verdict"] not in ("PASS", "SKIPPED") or errors:
            got = f"{said} is {lane['verdict']}, with {errors} errors"
            point.flaw("evidence_verdict", at, got)
        elif lane["verdict"] == "PASS" and not (lane["cases"] and lane["elements"]):
            got = f"{said} passed on {lane['cases']} cases, {lane['elements']} elements"
            point.flaw("evidence_partial", at, got)
        elif lane["verdict"] == "PASS":
            passed.add(lane["lane"])
    if "numeric" not in passed:
        ran = ", ".join(sorted(passed)) or "none"
        got = f"{kernel.id}: the numeric lane did not run; lanes that did: {ran}"
        point.flaw("evidence_partial", evidence.where("contracts", index, "lanes"), got)
    if one["findings"]:
        got = f"{kernel.id}: {show(one['findings'], 60)}"
        point.flaw("evidence_verdict", evidence.where("contracts", index, "findings"), got)


def _backend(evidence: Evidence, kernel: Kernel, entry: Entry, docket: Docket) -> None:
    """It ran on a GPU, and the evidence says on which."""
    index, one = entry
    point = docket.point(f"kernel {kernel.id}: ran on a GPU", evidence.shown)
    if one["backend"] != BACKEND:
        at = evidence.where("contracts", index, "backend")
        point.flaw("evidence_backend", at, f"{kernel.id}: backend {show(one['backend'])}")
    elif placeholder(one["device"]) is not None:
        at = evidence.where("contracts", index, "device")
        point.unknown("evidence_backend", at, f"{kernel.id}: device {show(one['device'])}")
