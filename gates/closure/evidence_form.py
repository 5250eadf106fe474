"""Kernel evidence as it stands in its file."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from trueup.gates.closure.docket import Point
from trueup.gates.closure.exact import Exact
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.reading import read_json
from trueup.gates.closure.ticket import pointer_of
from trueup.gates.findings import Where
from trueup.gates.structure import first_problem

Entry = tuple[int, dict[str, Any]]  # a contract of the evidence, and its place among them


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of what is looked at."""
    text = (resources.files("trueup.gates.closure") / "evidence.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence as it was read: of the right form, with nothing judged yet."""

    exact: Exact
    shown: str
    data: dict[str, Any]

    def where(self, *pointer: str | int) -> Where:
        """The place of a value."""
        return self.exact.document.where(*pointer)

    def of(self, kernel: str) -> list[Entry]:
        """What it says of one kernel."""
        return [pair for pair in enumerate(self.data["contracts"]) if pair[1]["id"] == kernel]


def read_evidence(ticket: Ticket, files: Files, point: Point) -> Evidence | None:
    """The evidence the ticket names; None after saying why there is none."""
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
    problem = first_problem(schema(), data)
    if problem is not None:
        at = exact.document.where(*pointer_of(problem.place))
        got = f"{problem.place or 'the evidence'} {problem.what}"
        point.unknown("evidence_unreadable", at, got, place.shown)
        return None
    return Evidence(exact, place.shown, data)
