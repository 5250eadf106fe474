"""Whether the kernel that was verified is the one that stands in the repository at the commit."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from datetime import timedelta

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.evidence_form import Entry, Evidence
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Kernel, Ticket
from trueup.gates.closure.repository import GitFailed, Repository, inner_path
from trueup.gates.closure.thread import moment
from trueup.gates.findings import show
from trueup.gates.read.toml import plain_toml

_SKEW = timedelta(minutes=5)
_FILES = ("source", "cubin", "ptx", "python")
_MAX_CONTRACT = 1 << 20
_SHA256 = 64  # hexadecimal digits


def judge_sources(
    evidence: Evidence,
    kernel: Kernel,
    entry: Entry,
    ticket: Ticket,
    files: Files,
    repository: Repository | None,
    docket: Docket,
) -> None:
    """What was verified is what stands in the repository at the commit."""
    point = docket.point(f"kernel {kernel.id}: is that of the commit", evidence.shown)
    where = ticket.where(*kernel.at, "contract")
    if kernel.repository is not None:
        at = ticket.where(*kernel.at, "repository")
        place = files.locate("ticket", kernel.repository, point, at, folder=True)
        repository = None if place is None else Repository(place.path, place.shown)
    if repository is None:
        point.unknown("evidence_source", where, "the repository is not known", ticket.name)
        return
    tree = _Tree(repository, kernel.commit or ticket.commit)
    try:
        paths = _paths(tree, kernel.contract, entry[1]["digests"])
        if isinstance(paths, str):
            point.unknown("evidence_source", where, paths, ticket.name)
            return
        for name, path in paths.items():
            _compare(evidence, kernel, entry, tree, name, path, point)
    except GitFailed as error:
        point.unknown("evidence_source", where, str(error), ticket.name)
    if len(entry[1]["digests"].get("reference", "")) != _SHA256:
        at = evidence.where("contracts", entry[0], "digests")
        point.unknown("evidence_digest", at, f"{kernel.id}: no digest of the reference")


@dataclass(frozen=True, slots=True)
class _Tree:
    """A repository at a commit."""

    repository: Repository
    commit: str

    def read(self, path: str) -> bytes | None:
        return self.repository.read(self.commit, path)

    def __str__(self) -> str:
        return f"{self.repository.shown} at {self.commit[:12]}"


def _compare(
    evidence: Evidence,
    kernel: Kernel,
    entry: Entry,
    tree: _Tree,
    name: str,
    path: str | None,
    point: Point,
) -> None:
    """One digest of the evidence with the file it is of; the evidence is not older than it."""
    index, one = entry
    at = evidence.where("contracts", index, "digests", name)
    raw = None if path is None else tree.read(path)
    if path is None or raw is None:
        got = f"{kernel.id}: {name} ({path or 'outside'}) is not in {tree}"
        point.unknown("evidence_source", at, got)
        return
    claimed = one["digests"].get(name, "missing")
    if hashlib.sha256(raw).hexdigest() != claimed:
        got = f"{kernel.id}: {name} {show(claimed, 20)} is not {path} of {tree}"
        point.flaw("evidence_digest", at, got)
        return
    created, last = moment(evidence.data["created"]), tree.repository.last_change(tree.commit, path)
    if created is not None and last is not None and created < last.earliest - _SKEW:
        got = f"{kernel.id}: {path} is of {last.earliest.isoformat()}, the evidence older"
        point.flaw("evidence_old", evidence.where("created"), got)


def _paths(tree: _Tree, contract: str, digests: dict[str, str]) -> dict[str, str | None] | str:
    """Which file of the repository each digest is of; None for one outside of it.

    Or why that cannot be told: the contract itself says where its kernel is.
    """
    raw = tree.read(contract)
    if raw is None:
        return f"no file {show(contract)} in {tree}"
    if len(raw) > _MAX_CONTRACT:
        return f"{contract} is too large for a contract"
    try:
        head = plain_toml(raw).get("contract")
    except ValueError as error:
        return f"{contract} is no TOML: {error}"
    sources = [head[key] for key in _FILES if key in head] if isinstance(head, dict) else []
    if not isinstance(head, dict) or len(sources) != 1 or not isinstance(sources[0], str):
        return f"{contract} names none of {', '.join(_FILES)}"
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
