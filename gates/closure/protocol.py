"""The protocol: the plan comes first, names what it touches, and is kept to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.exact import Exact
from trueup.gates.closure.files import Files
from trueup.gates.closure.history import Work
from trueup.gates.closure.model import Deviation, Ticket
from trueup.gates.closure.parts import (
    PARTS,
    Part,
    clean_paths,
    equation_ids,
    inexact,
    is_empty,
    names_file,
    parts_of,
    paths_in,
)
from trueup.gates.closure.reading import read_json
from trueup.gates.closure.thread import Comment, Discussion, read_discussion
from trueup.gates.findings import Where, show

_SKEW = timedelta(minutes=5)  # what the clocks of two machines may differ


@dataclass(frozen=True, slots=True)
class Export:
    """The exported thread with the file it stands in."""

    discussion: Discussion
    exact: Exact
    shown: str

    def where(self, *pointer: str | int) -> Where:
        """The place of a value in the export."""
        return self.exact.document.where(*pointer)


def read_export(ticket: Ticket, files: Files, docket: Docket) -> Export | None:
    """The ticket's thread. None after saying why there is none."""
    point = docket.point("thread")
    if ticket.thread.none is not None:
        point.flaw("thread_none", ticket.where("thread", "none"), show(ticket.thread.none))
        return None
    where = ticket.where("thread", "export")
    read = read_json(ticket.thread.export or "", files, point, where, "thread_unreadable")
    if read is None:
        return None
    exact, place = read
    discussion = read_discussion(exact.document.data)
    if isinstance(discussion, str):
        point.unknown("thread_unreadable", Where(), discussion, place.shown)
        return None
    export = Export(discussion, exact, place.shown)
    _is_the_tickets(ticket, export, docket.point("thread: is the ticket's own", place.shown))
    return export


def _is_the_tickets(ticket: Ticket, export: Export, point: Point) -> None:
    """Another ticket's discussion must not stand in for this one's."""
    found, thread = export.discussion, ticket.thread
    if found.number != thread.number:
        key = "iid" if found.form == "GitLab" else "number"
        got = f"number {found.number}, the ticket says {thread.number}"
        point.flaw("thread_other", export.where(key), got)
    if thread.url is not None and (found.url or "").rstrip("/") != thread.url.rstrip("/"):
        got = f"address {show(found.url)}, the ticket says {show(thread.url)}"
        point.flaw("thread_other", export.where("url"), got)
    if found.title.strip() != ticket.title.strip():
        got = f"{show(found.title)}, the ticket says {show(ticket.title)}"
        point.flaw("thread_title", export.where("title"), got)
    if ticket.assignee.casefold() not in {one.casefold() for one in found.assignees}:
        got = ", ".join(found.assignees) or "nobody"
        point.flaw("thread_assignee", export.where("assignees"), f"assigned to {show(got)}")


def judge_thread(
    ticket: Ticket,
    export: Export,
    work: Work | None,
    waived: Collection[Deviation],
    equations: Collection[str],
    docket: Docket,
    now: datetime,
) -> None:
    """Hold the plan to its form, to its time, and the work to the plan."""
    shown = export.shown
    _dates(export, docket.point("thread: dates", shown), now)
    mine = [
        one
        for one in export.discussion.comments
        if one.author.casefold() == ticket.assignee.casefold()
    ]
    point = docket.point("plan: before the first commit", shown)
    if not mine:
        authors = sorted({one.author for one in export.discussion.comments})
        got = f"comments by {show(', '.join(authors))}" if authors else "no comment at all"
        point.flaw("plan_missing", export.where("comments"), got)
        return
    plan, later = mine[0], mine[1:]
    for comment in export.discussion.comments:
        if comment is not plan and comment.edited:
            where = export.where(*comment.at)
            point.flaw(
                "comment_edited", where, f"by {show(comment.author)}, {comment.created_text}"
            )
    _in_time(plan, export, work, point)
    _untouched(plan, export, work, docket.point("plan: not edited afterwards", shown))
    parts = _parts(plan, export, docket)
    if "equation mapping" in parts:
        _equations(parts["equation mapping"], plan, export, equations, docket)
    listed = parts.get("exact files", Part("exact files", ""))
    files = docket.point("plan: every changed file is listed or explained", shown)
    _files(listed, plan, later, export, work, waived, ticket, files)


def _dates(export: Export, point: Point, now: datetime) -> None:
    """A date that cannot be is a date that was typed."""
    opened = export.discussion.created
    for comment in export.discussion.comments:
        where = export.where(*comment.at, "createdAt")
        if comment.created is None:
            got = f"{show(comment.created_text)} is no date with an offset from UTC"
            point.unknown("thread_time", where, got)
        elif comment.created > now + _SKEW:
            point.flaw("thread_time", where, f"{comment.created_text} lies in the future")
        elif comment.created < opened - _SKEW:
            got = f"{comment.created_text} is before the ticket was opened"
            point.flaw("thread_time", where, got)


def _in_time(plan: Comment, export: Export, work: Work | None, point: Point) -> None:
    """The plan must be older than the first commit, by every date the commits have."""
    where = export.where(*plan.at)
    if plan.created is None:
        point.unknown("plan_late", where, "the comment has no usable date")
    elif work is None or work.first is None:
        point.unknown("plan_late", where, "the commits of the work are not known")
    elif plan.created >= work.first.earliest:
        first = work.first
        got = f"written {plan.created_text}, commit {first.id[:12]} of {first.earliest.isoformat()}"
        point.flaw("plan_late", where, got)


def _untouched(plan: Comment, export: Export, work: Work | None, point: Point) -> None:
    """An edited plan is the plan of the time of its last edit."""
    where = export.where(*plan.at)
    if plan.hidden:
        point.flaw("plan_edited", where, "the comment is hidden")
    if plan.edited is None:
        point.unknown("plan_edited", where, "the export does not say whether it was edited")
    elif plan.edited is True:
        point.unknown("plan_edited", where, "edited, and the export does not say when")
    elif isinstance(plan.edited, datetime):
        if work is None or work.first is None:
            point.unknown("plan_edited", where, f"edited {plan.edited.isoformat()}")
        elif plan.edited >= work.first.earliest:
            got = (
                f"edited {plan.edited.isoformat()}, first commit {work.first.earliest.isoformat()}"
            )
            point.flaw("plan_edited", where, got)


def _parts(plan: Comment, export: Export, docket: Docket) -> dict[str, Part]:
    """Each of the four parts is there and says something."""
    found = parts_of(plan.body)
    where = export.where(*plan.at, "body")
    for name in PARTS:
        point = docket.point(f"plan: {name}", export.shown)
        if name not in found:
            point.flaw("plan_part", Where(where.line, where.byte, key=name), f"no heading {name}")
        elif (said := is_empty(found[name].text)) is not None:
            got = f"{name}: {show(said)}"
            point.flaw("plan_part", Where(where.line, where.byte, key=name), got)
    return found


def _equations(
    part: Part, plan: Comment, export: Export, known: Collection[str], docket: Docket
) -> None:
    point = docket.point("plan: equations are in the catalogue", export.shown)
    where = export.where(*plan.at, "body")
    good, bad = equation_ids(part.text, known)
    for word in bad:
        point.flaw("equation_unknown", Where(where.line, where.byte, key=word.split(":")[0]), word)
    if not good and not bad:
        point.flaw("equation_unknown", where, f"no id of an equation in {show(part.text, 60)}")


def _files(
    listed: Part,
    plan: Comment,
    later: list[Comment],
    export: Export,
    work: Work | None,
    waived: Collection[Deviation],
    ticket: Ticket,
    point: Point,
) -> None:
    """What the commits changed was announced, or explained afterwards."""
    where = export.where(*plan.at, "body")
    named = paths_in(listed.text)
    for path in filter(inexact, named):
        point.flaw("file_inexact", Where(where.line, where.byte, key=path), path)
    if work is None:
        point.unknown("file_unlisted", where, "the commits of the work are not known")
        return
    allowed = clean_paths(named) | {one.target for one in waived if one.waives == "file"}
    for path in work.changed:
        if path not in allowed and not any(names_file(one.body, path) for one in later):
            got = f"{show(path)} is neither listed nor explained"
            point.flaw("file_unlisted", Where(where.line, where.byte, key=path), got)
