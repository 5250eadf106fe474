"""The board rule: one major phase is active at a time, unless a blocked ticket says otherwise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.reading import read_json
from trueup.gates.documents.model import Document
from trueup.gates.findings import Where, show

_ACTIVE = {"in progress", "inprogress", "doing", "active", "wip", "started", "in review", "review"}
_BLOCKED = {"blocked", "on hold"}
_OPEN = {"open", "opened", "reopened", *_ACTIVE, *_BLOCKED}
_CLOSED = {"closed", "done", "merged", "cancelled", "canceled", "not planned", "completed"}
_PHASE = re.compile(r"\bphase\s*(?:::|[:/=#_-])?\s*(\d{1,4})(?:\.\d{1,4})*\b", re.IGNORECASE)
_TICKET = re.compile(r"(?<![\w/])#(\d{1,9})\b")


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue of the board."""

    index: int
    number: int
    phase: int | None  # the major one
    state: str
    words: frozenset[str]  # labels and status, in plain words
    text: str

    @property
    def open(self) -> bool:
        """Whether it is not done."""
        return self.state in _OPEN

    @property
    def marked(self) -> bool:
        """Whether somebody says that it is being worked on."""
        return self.open and bool({self.state, *self.words} & _ACTIVE)

    @property
    def blocked(self) -> bool:
        """Whether somebody says that it cannot go on."""
        return self.open and bool({self.state, *self.words} & _BLOCKED)

    def allows(self, other: Issue) -> bool:
        """A blocked ticket that names another phase, or a ticket of it, lets it go on meanwhile."""
        phases = {int(one) for one in _PHASE.findall(self.text)}
        tickets = {int(one) for one in _TICKET.findall(self.text)}
        return other.phase in phases - {self.phase} or other.number in tickets


def judge_board(ticket: Ticket, files: Files, docket: Docket, given: str | None) -> None:
    """Hold the ticket's phase to what else is active."""
    point = docket.point("board: one major phase at a time")
    if ticket.phase is None and ticket.board is None and given is None:
        point.skip("the ticket belongs to no phase")
        return
    phase = major(ticket.phase or "")
    where = ticket.where("board", "export") if ticket.board else ticket.where("ticket", "phase")
    if phase is None:
        got = f"phase {show(ticket.phase)}"
        point.unknown("board_phase", ticket.where("ticket", "phase"), got)
        return
    relative = given if given is not None else ticket.board
    if relative is None:
        point.unknown("board_unreadable", where, "the ticket has a phase and no [board]")
        return
    read = read_json(relative, files, point, where, "board_unreadable")
    if read is None:
        return
    exact, place = read
    issues = _issues(exact.document, place, point)
    if issues:
        _judge(ticket, phase, issues, exact.document, place, point)


def _issues(document: Document, place: Place, point: Point) -> list[Issue]:
    """What the board lists."""
    data = document.data
    listed = data.get("issues", data.get("items")) if isinstance(data, dict) else data
    if not isinstance(listed, list) or not listed:
        point.unknown("board_unreadable", Where(), "no list of issues", place.shown)
        return []
    issues = []
    for index, one in enumerate(listed):
        issue = _issue(index, one)
        if issue is None:
            where = document.where(index)
            got = "an issue without number, state, or a list of labels"
            point.unknown("board_unreadable", where, got, place.shown)
        else:
            issues.append(issue)
    return issues


def _issue(index: int, one: Any) -> Issue | None:
    if not isinstance(one, dict):
        return None
    number = one.get("iid", one.get("number"))
    state = _word(one.get("state"))
    if not isinstance(number, int) or isinstance(number, bool) or not state:
        return None
    named = one.get("labels", [])
    labels = [_label(label) for label in named] if isinstance(named, list) else [""]
    if not all(labels):
        return None
    words = {_word(label) for label in labels} | {_word(one.get("status"))}
    words |= {_word(label.rpartition("::")[2]) for label in labels}  # status::doing
    stated = one.get("phase")
    phase = major(str(stated)) if stated is not None else None
    if phase is None:
        phase = next((int(m[1]) for label in labels if (m := _PHASE.search(label))), None)
    milestone = one.get("milestone")
    if phase is None and isinstance(milestone, dict):
        found = _PHASE.search(str(milestone.get("title", "")))
        phase = int(found[1]) if found else None
    keys = ("title", "body", "description", "blocked_by", "note")
    text = "\n".join([*(str(one.get(key) or "") for key in keys), *labels])
    return Issue(index, number, phase, state, frozenset(words), text)


def _label(label: Any) -> str:
    """GitHub lists objects with a name, GitLab plain names; anything else has none."""
    name = label.get("name") if isinstance(label, dict) else label
    return name if isinstance(name, str) else ""


def _word(value: Any) -> str:
    return re.sub(r"[\s_-]+", " ", str(value or "")).strip().casefold()


def major(phase: str) -> int | None:
    """`1.2`, `phase 1`, `P1`: the 1."""
    found = re.fullmatch(r"\s*(?:phase|p)?\s*[:/=#_-]{0,2}\s*(\d{1,4})(?:\.\d{1,4})*\s*", phase,
                         re.IGNORECASE | re.ASCII)  # fmt: skip
    return int(found[1]) if found else None


def _judge(
    ticket: Ticket,
    phase: int,
    issues: list[Issue],
    document: Document,
    place: Place,
    point: Point,
) -> None:
    own = _own(ticket, issues)
    if ticket.thread.number is not None and own is None:
        got = f"no issue {ticket.thread.number} among {len(issues)}"
        point.flaw("board_ticket", Where(), got, place.shown)
    elif own is not None and own.phase != phase:
        on_board = "no phase" if own.phase is None else f"phase {own.phase}"
        got = f"{on_board} on the board, {show(ticket.phase)} in the ticket"
        point.flaw("board_ticket", document.where(own.index), got, place.shown)
    for issue in issues:
        if issue.state not in _OPEN | _CLOSED:
            got = f"state {show(issue.state)} of issue {issue.number}"
            point.unknown(
                "board_unreadable", document.where(issue.index, "state"), got, place.shown
            )
    # A board that marks nothing as being worked on says no more than which issues are open.
    marks = any(issue.marked for issue in issues)
    active = [one for one in issues if (one.marked or one.blocked if marks else one.open)]
    for other in active:
        if other.phase is None or other.phase == phase or (own and other.number == own.number):
            continue
        us = own or Issue(-1, ticket.thread.number or -1, phase, "open", frozenset(), "")
        speakers = [one for one in active if one.blocked and one.phase in (phase, other.phase)]
        if any(one.allows(us if one.phase == other.phase else other) for one in speakers):
            continue
        if other.blocked and not other.marked:
            continue  # nobody works on it
        got = f"issue {other.number} of phase {other.phase} is active beside phase {phase}"
        point.flaw("board_phase", document.where(other.index), got, place.shown)


def _own(ticket: Ticket, issues: list[Issue]) -> Issue | None:
    return next((one for one in issues if one.number == ticket.thread.number), None)
