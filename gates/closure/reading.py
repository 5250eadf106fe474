"""Reads the JSON documents that a ticket names beside its run."""

from __future__ import annotations

from trueup.gates.closure.docket import Point
from trueup.gates.closure.exact import Exact, read_exact
from trueup.gates.closure.files import Files, Place
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where


def read_json(
    relative: str, files: Files, point: Point, where: Where, kind: str
) -> tuple[Exact, Place] | None:
    """The document with its file, which becomes a subject; None after saying, as `kind`, why not.

    A text with faults is not used: two tools would read two documents from it.
    """
    place = files.locate("ticket", relative, point, where)
    if place is None:
        return None
    try:
        exact = read_exact(place.path, place.shown, "JSON")
    except Unreadable as error:
        got = f"{error.what} ({error.got})" if error.got else error.what
        point.unknown(kind, Where(), got, place.shown)
        return None
    for fault in exact.faults:
        point.docket.collector.of_fault(place.shown, fault)
    if not exact.usable:
        point.unknown(kind, Where(), "its text has faults", place.shown)
        return None
    files.note(place, exact.sha256)
    return exact, place
