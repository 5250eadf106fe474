"""Kernel evidence: each kernel the runs used was verified, on a GPU, as it is at the commit."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.exact import Exact
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Deviation, Kernel, Ticket
from trueup.gates.closure.reading import read_json
from trueup.gates.closure.repository import GitFailed, Repository, inner_path
from trueup.gates.closure.thread import moment
from trueup.gates.findings import Where, show

FORMAT = "trueup.evidence/1"
BACKEND = "cuda"
_SKEW = timedelta(minutes=5)
_FILES = ("source", "cubin", "ptx", "python")
_MAX_CONTRACT = 1 << 20


@dataclass(frozen=True, slots=True)
class _Record:
    """The evidence as it was read."""

    exact: Exact
    shown: str
    contracts: dict[str, list[tuple[int, dict[str, Any]]]]

    def where(self, *pointer: str | int) -> Where:
        return self.exact.document.where(*pointer)


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
    record = _read(ticket, files, point)
    if not ticket.kernels:
        got = "no [[kernel]] table: nothing says which kernels the runs used"
        point.flaw("kernel_uncovered", ticket.where("evidence"), got)
    if record is None:
        return
    _whole(record, docket.point("kernels: the verification was whole", record.shown), now)
    pardoned = {one.target for one in waived if one.waives == "equation"}
    for kernel in ticket.kernels:
        if kernel.id in pardoned:
            docket.point(f"kernel {kernel.id}").skip("waived by a deviation")
            continue
        entry = _entry(record, kernel, ticket, docket)
        if entry is not None:
            _kernel(record, kernel, entry, docket)
            _sources(record, kernel, entry, ticket, files, repository, docket)


def _read(ticket: Ticket, files: Files, point: Point) -> _Record | None:
    where = ticket.where("evidence", "kernels")
    read = read_json(ticket.evidence.kernels or "", files, point, where, "evidence_unreadable")
    if read is None:
        return None
    exact, place = read
    wanted = ticket.evidence.sha256
    if wanted is not None and wanted != exact.sha256:
        got = f"{place.shown} has sha256 {exact.sha256}, not {wanted}"
        point.flaw("digest_differs", ticket.where("evidence", "sha256"), got)
        return None
    data = exact.document.data
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        said = data.get("format") if isinstance(data, dict) else None
        at = exact.document.where("format")
        point.unknown("evidence_unreadable", at, f"format {show(said)}", place.shown)
        return None
    contracts: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for index, one in enumerate(_list(data.get("contracts"))):
        if isinstance(one, dict):
            contracts.setdefault(str(one.get("id")), []).append((index, one))
    return _Record(exact, place.shown, contracts)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(record: _Record, point: Point, now: datetime) -> None:
    """The verification passed, and was narrowed to no lane and no case."""
    data = record.exact.document.data
    if data.get("verdict") != "PASS":
        point.flaw(
            "evidence_verdict", record.where("verdict"), f"verdict {show(data.get('verdict'))}"
        )
    if data.get("errors") != []:
        got = f"errors {show(data.get('errors'), 60)}"
        point.flaw("evidence_verdict", record.where("errors"), got)
    created = moment(data.get("created"))
    if created is None:
        got = f"created {show(data.get('created'))}"
        point.unknown("evidence_old", record.where("created"), got)
    elif created > now + _SKEW:
        got = f"created {show(data.get('created'))}, which lies in the future"
        point.flaw("evidence_old", record.where("created"), got)
    scope = data.get("scope")
    if not isinstance(scope, dict) or not {"lanes", "case"} <= scope.keys():
        point.unknown("evidence_partial", record.where("scope"), "does not say what was asked for")
        return
    for key in ("lanes", "case"):
        if scope[key] is not None:
            got = f"only {key} {show(scope[key])}"
            point.flaw("evidence_partial", record.where("scope", key), got)


def _entry(
    record: _Record, kernel: Kernel, ticket: Ticket, docket: Docket
) -> tuple[int, dict[str, Any]] | None:
    point = docket.point(f"kernel {kernel.id}: is covered", record.shown)
    found = record.contracts.get(kernel.id, [])
    if len(found) == 1:
        return found[0]
    got = f"{kernel.id} {f'{len(found)} times' if found else 'is not'} in the evidence"
    point.flaw("kernel_uncovered", record.where("contracts"), got)
    return None


def _kernel(
    record: _Record, kernel: Kernel, entry: tuple[int, dict[str, Any]], docket: Docket
) -> None:
    """Its verdict is that of its lanes, and it ran on a GPU."""
    index, one = entry
    point = docket.point(f"kernel {kernel.id}: verdict and lanes", record.shown)
    where = record.where("contracts", index, "verdict")
    if one.get("verdict") != "PASS":
        point.flaw("evidence_verdict", where, f"{kernel.id}: verdict {show(one.get('verdict'))}")
    lanes = [lane for lane in _list(one.get("lanes")) if isinstance(lane, dict)]
    passed = {lane.get("lane") for lane in lanes if _ran(lane)}
    for place, lane in enumerate(lanes):
        if lane.get("verdict") not in ("PASS", "SKIPPED"):
            got = f"{kernel.id}: lane {show(lane.get('lane'))} is {show(lane.get('verdict'))}"
            at = record.where("contracts", index, "lanes", place, "verdict")
            point.flaw("evidence_verdict", at, got)
    if "numeric" not in passed:
        got = f"{kernel.id}: the numeric lane did not run; lanes that did: {_names(passed)}"
        point.flaw("evidence_partial", record.where("contracts", index, "lanes"), got)
    if one.get("findings") not in ([], None):
        got = f"{kernel.id}: {show(one.get('findings'), 60)}"
        point.flaw("evidence_verdict", record.where("contracts", index, "findings"), got)
    backend = docket.point(f"kernel {kernel.id}: ran on a GPU", record.shown)
    at = record.where("contracts", index, "backend")
    if one.get("backend") != BACKEND:
        backend.flaw("evidence_backend", at, f"{kernel.id}: backend {show(one.get('backend'))}")
    elif not one.get("device"):
        backend.unknown("evidence_backend", at, f"{kernel.id}: no device named")


def _names(lanes: Collection[Any]) -> str:
    return ", ".join(sorted(map(str, lanes))) or "none"


def _ran(lane: dict[str, Any]) -> bool:
    """A lane that passed on no case passed on nothing."""
    counts = (lane.get("cases"), lane.get("elements"))
    return lane.get("verdict") == "PASS" and all(
        isinstance(count, int) and not isinstance(count, bool) and count > 0 for count in counts
    )


def _sources(
    record: _Record,
    kernel: Kernel,
    entry: tuple[int, dict[str, Any]],
    ticket: Ticket,
    files: Files,
    repository: Repository | None,
    docket: Docket,
) -> None:
    """What was verified is what stands in the repository at the commit."""
    point = docket.point(f"kernel {kernel.id}: is that of the commit", record.shown)
    where = ticket.where(*kernel.at, "contract")
    if kernel.repository is not None:
        at = ticket.where(*kernel.at, "repository")
        place = files.locate("ticket", kernel.repository, point, at, folder=True)
        repository = None if place is None else Repository(place.path, place.shown)
    if repository is None:
        point.unknown("evidence_source", where, "the repository is not known", ticket.name)
        return
    commit = kernel.commit or ticket.commit
    digests = entry[1].get("digests")
    if not isinstance(digests, dict):
        point.unknown(
            "evidence_digest", record.where("contracts", entry[0], "digests"), "no digests"
        )
        return
    try:
        _compare(record, kernel, entry[0], digests, repository, commit, point, where, ticket.name)
    except GitFailed as error:
        point.unknown("evidence_source", where, str(error), ticket.name)


def _compare(
    record: _Record,
    kernel: Kernel,
    index: int,
    digests: dict[str, Any],
    repository: Repository,
    commit: str,
    point: Point,
    where: Where,
    shown: str,
) -> None:
    """Contract, kernel, included headers, and a reference that is a file of the user's."""
    raw = repository.read(commit, kernel.contract)
    if raw is None:
        got = f"no file {show(kernel.contract)} in {repository.shown} at {commit[:12]}"
        point.unknown("evidence_source", where, got, shown)
        return
    paths = _paths(kernel.contract, raw, digests)
    if isinstance(paths, str):
        point.unknown("evidence_source", where, f"{kernel.contract}: {paths}", shown)
        return
    created = moment(record.exact.document.data.get("created"))
    for name, path in paths.items():
        at = record.where("contracts", index, "digests", name)
        bytes_at = None if path is None else repository.read(commit, path)
        if path is None or bytes_at is None:
            got = f"{kernel.id}: {name} is not in the repository at {commit[:12]}"
            point.unknown("evidence_source", at, f"{got}: {show(path)}" if path else got)
            continue
        if hashlib.sha256(bytes_at).hexdigest() != digests.get(name):
            claimed = show(digests.get(name), 20)
            got = f"{kernel.id}: {name} {claimed} is not {path} at {commit[:12]}"
            point.flaw("evidence_digest", at, got)
            continue
        last = repository.last_change(commit, path)
        if created is not None and last is not None and created < last.earliest - _SKEW:
            got = f"{kernel.id}: {path} is of {last.earliest.isoformat()}, the evidence older"
            point.flaw("evidence_old", record.where("created"), got)
    if not isinstance(digests.get("reference"), str) or len(digests["reference"]) != 64:
        at = record.where("contracts", index, "digests")
        point.unknown("evidence_digest", at, f"{kernel.id}: no digest of the reference")


def _paths(contract: str, raw: bytes, digests: dict[str, Any]) -> dict[str, str | None] | str:
    """Which file of the repository each digest is of; None for one outside of it."""
    try:
        if len(raw) > _MAX_CONTRACT:
            return "is too large for a contract"
        head = tomllib.loads(raw.decode("utf-8")).get("contract")
    except (ValueError, RecursionError) as error:
        return f"is no TOML: {error}"
    if not isinstance(head, dict):
        return "has no table [contract]"
    sources = [head[key] for key in _FILES if key in head]
    if len(sources) != 1 or not isinstance(sources[0], str):
        return f"names none of {', '.join(_FILES)}"
    folder = os.path.dirname(contract)
    named = sources[0].rpartition(":")[0] if "python" in head else sources[0]
    kernel = inner_path(os.path.join(folder, named))
    found: dict[str, str | None] = {"contract": inner_path(contract), "kernel": kernel}
    around = os.path.dirname(kernel or contract)
    for name in digests:
        if name.startswith("include:"):
            found[name] = inner_path(os.path.join(around, name.removeprefix("include:")))
    reference = head.get("reference")
    if isinstance(reference, str) and ".py:" in reference:
        found["reference"] = inner_path(os.path.join(folder, reference.rpartition(":")[0]))
    return found
