"""A closure record as it stands in its file."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from trueup.gates.closure.docket import Docket
from trueup.gates.closure.exact import Exact
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.reading import read_json
from trueup.gates.closure.ticket import pointer_of
from trueup.gates.documents.model import Pointer
from trueup.gates.findings import Where
from trueup.gates.structure import first_problem


@functools.cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a closure record."""
    text = (resources.files("trueup.gates.closure") / "record.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@dataclass(slots=True)
class Record:
    """One record, with exact numbers."""

    exact: Exact
    shown: str
    data: dict[str, Any] = field(default_factory=dict)

    def where(self, *pointer: str | int) -> Where:
        """The place of a value."""
        return self.exact.document.where(*pointer)

    def each(self, key: str) -> Iterator[tuple[Pointer, dict[str, Any]]]:
        """The entries of a list with the way to each."""
        for index, one in enumerate(self.data.get(key, ())):
            yield (key, index), one


def read_record(ticket: Ticket, files: Files, docket: Docket, key: str) -> Record | None:
    """Read one record, and hold it to its schema. None after saying what is wrong."""
    point = docket.point("record" if key == "closure" else "record: the previous one")
    relative, where = getattr(ticket.evidence, key), ticket.where("evidence", key)
    read = read_json(relative, files, point, where, "record_malformed")
    if read is None:
        return None
    exact, place = read
    problem = first_problem(schema(), exact.document.data)
    if problem is not None:
        at = exact.document.where(*pointer_of(problem.place))
        hint = f"; {problem.fix}" if problem.fix else ""
        got = f"{problem.place or 'the record'} {problem.what}{hint}"
        point.flaw("record_malformed", at, got, place.shown)
        return None
    return Record(exact, place.shown, exact.data)
