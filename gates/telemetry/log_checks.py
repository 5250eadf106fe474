"""Checks on logs: how many lines hold a marker that code prints where it does what it must not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trueup.gates.documents.model import Answer, DocumentCheck, Flaw, Subject
from trueup.gates.findings import Where, show
from trueup.gates.profile.rules import Rule

_BLOCK = 1 << 20
_PLACES = 1_000  # lines that are named one by one; the rest is counted
_SHOWN = 120  # bytes of a line


def _marked(path: Path, marker: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Line, byte of the marker and the text from there on, for each line that holds it."""
    line, start, held, told = 1, 0, b"", 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            held += block
            at = 0
            while (found := held.find(marker, at)) >= 0:
                here = line + held.count(b"\n", 0, found)
                if here != told:
                    told = here
                    text = held[found : found + _SHOWN].split(b"\n", 1)[0]
                    yield here, start + found, text
                at = found + len(marker)
            keep = len(held) - max(at, len(held) - len(marker) + 1)
            gone = len(held) - keep
            line += held.count(b"\n", 0, gone)
            start += gone
            held = held[gone:]


def _lines_at_most(subject: Subject, rule: Rule) -> Answer:
    most = rule.params["max"]
    marker = rule.params["marker"].encode()
    lines = subject.document.data["lines"]
    if not lines:
        return Answer(0, reason="the log has no lines")
    places: list[Flaw] = []
    count = 0
    for line, byte, text in _marked(subject.path, marker):
        count += 1
        if len(places) < _PLACES:
            where = Where(line=line, byte=byte, key=rule.params["marker"])
            places.append(Flaw(where, show(text.decode("utf-8", "replace"))))
    if count <= most:
        return Answer(lines)
    if count > len(places):
        got = f"{count - len(places)} lines more"
        places.append(Flaw(Where(key=rule.params["marker"]), got))
    return Answer(lines, tuple(places))


def _one_line(params: Mapping[str, Any]) -> str:
    marker = params["marker"]
    if not marker or "\n" in marker:
        return f"marker is {marker!r}, expected text of one line"
    return "" if params["max"] >= 0 else f"max is {params['max']!r}, expected 0 or more"


CHECKS = (
    DocumentCheck(
        "lines_at_most", ("log",), "at most `max` lines hold the text `marker`", _lines_at_most,
        {"marker": (str,), "max": (int,)}, problem=_one_line,
    ),
)  # fmt: skip
