"""The commits of the work: that they are there, belong together, and carry dates that can be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Ticket
from trueup.gates.closure.repository import Commit, GitFailed, Repository
from trueup.gates.closure.words import is_dummy

_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Work:
    """What was done between `base` and `commit`."""

    commits: tuple[Commit, ...]
    changed: tuple[str, ...]

    @property
    def first(self) -> Commit | None:
        """The commit with the earliest date of all, whichever of its dates that is."""
        return min(self.commits, key=lambda one: one.earliest, default=None)


def open_repository(ticket: Ticket, files: Files, docket: Docket, given: Repository | None) -> (
    Repository | None
):  # fmt: skip
    """The ticket's repository, with its commit in it. None after saying what is missing."""
    point = docket.point("repository: the commit is there")
    repository = given or _find(ticket, files, point)
    if repository is None:
        return None
    where = ticket.where("ticket", "commit")
    for name, commit in (("commit", ticket.commit), ("base", ticket.base)):
        if is_dummy(commit):
            point.flaw("placeholder_text", ticket.where("ticket", name), commit)
    try:
        if repository.has(ticket.commit):
            return repository
        point.unknown("commit_unknown", where, f"{repository.shown} has no commit {ticket.commit}")
    except GitFailed as error:
        point.unknown("commit_unknown", where, f"{repository.shown}: {error}")
    return None


def _find(ticket: Ticket, files: Files, point: Point) -> Repository | None:
    if ticket.repository is not None:
        where = ticket.where("ticket", "repository")
        place = files.locate("ticket", ticket.repository, point, where, folder=True)
        return None if place is None else Repository(place.path, place.shown)
    for above in (files.folder, *files.folder.parents):
        if (above / ".git").exists():
            return Repository(above, str(above))
        if above == files.root:
            break
    got = "no .git in the folders from the ticket up to the root"
    point.unknown("commit_unknown", ticket.where("ticket"), got)
    return None


def read_work(ticket: Ticket, repository: Repository, docket: Docket, now: datetime) -> Work | None:
    """The commits of the work and the files they changed."""
    point = docket.point("repository: the work is base..commit")
    where = ticket.where("ticket", "base")
    try:
        if ticket.base != "root":
            if not repository.has(ticket.base):
                got = f"{repository.shown} has no commit {ticket.base}"
                point.unknown("commit_unknown", where, got)
                return None
            if not repository.is_ancestor(ticket.base, ticket.commit):
                point.flaw("range_wrong", where, f"{ticket.base} is no ancestor of {ticket.commit}")
                return None
        commits = repository.work(ticket.base, ticket.commit)
        if not commits:
            point.flaw("range_wrong", where, "no commit between base and commit")
            return None
        work = Work(tuple(commits), tuple(repository.changed(ticket.base, ticket.commit)))
    except GitFailed as error:
        point.unknown("commit_unknown", where, f"{repository.shown}: {error}")
        return None
    _dates(ticket, work, docket.point("repository: dates"), now)
    return work


def _dates(ticket: Ticket, work: Work, point: Point, now: datetime) -> None:
    """Dates that cannot be were set by hand; then the order of plan and work cannot be told."""
    for commit in work.commits:
        for name, date in (("author", commit.authored), ("committer", commit.committed)):
            if date > now + _SKEW:
                got = f"{commit.id[:12]}: {name} date {date.isoformat()} lies in the future"
                point.flaw("commit_date", ticket.where("ticket", "commit"), got)
        if commit.authored > commit.committed + _SKEW:
            got = (
                f"{commit.id[:12]}: written {commit.authored.isoformat()}, committed before that, "
                f"{commit.committed.isoformat()}"
            )
            point.flaw("commit_date", ticket.where("ticket", "commit"), got)
