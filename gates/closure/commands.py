"""The commands of a ticket: fit to be run again, run where and when they say, and successful."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from fractions import Fraction

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.exact import printed, rational
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Command, Ticket
from trueup.gates.closure.repository import Commit, GitFailed, Repository, inner_path
from trueup.gates.closure.shell import faults
from trueup.gates.closure.thread import moment
from trueup.gates.closure.words import is_dummy
from trueup.gates.findings import show

_SKEW = timedelta(minutes=5)


def judge_commands(
    ticket: Ticket,
    files: Files,
    repository: Repository | None,
    commit: Commit | None,
    docket: Docket,
    now: datetime,
) -> None:
    """Ask the same of every command."""
    for index, command in enumerate(ticket.commands):
        name = f"command {index + 1}"
        _line(command, ticket, docket.point(f"{name}: can be run again"))
        _directory(command, ticket, repository, docket.point(f"{name}: its directory"))
        _exit(command, ticket, docket.point(f"{name}: exit code"))
        _time(command, ticket, commit, docket.point(f"{name}: when it ran"), now)
        _log(command, ticket, files, docket.point(f"{name}: its log"))


def _line(command: Command, ticket: Ticket, point: Point) -> None:
    where = ticket.where(*command.at, "line")
    for fault in faults(command.line, command.env):
        point.flaw(fault.kind, where, show(fault.got))


def _directory(
    command: Command, ticket: Ticket, repository: Repository | None, point: Point
) -> None:
    """Inside the repository, and there: in its files, or at the commit."""
    where = ticket.where(*command.at, "directory")
    clean = inner_path(command.directory)
    if clean is None:
        got = f"{show(command.directory)} is no relative path inside the repository"
        point.flaw("command_directory", where, got)
        return
    if repository is None:
        point.unknown("command_directory", where, "the repository is not known")
        return
    real = os.path.realpath(repository.folder / clean)
    root = os.path.realpath(repository.folder)
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        point.flaw("command_directory", where, f"{show(clean)} leads out of the repository")
        return
    try:
        there = os.path.isdir(real) or repository.kind_at(ticket.commit, clean) == "tree"
    except GitFailed as error:
        point.unknown("command_directory", where, str(error))
        return
    if not there:
        got = f"no folder {show(clean)}, neither now nor at the commit"
        point.flaw("command_directory", where, got)


def _exit(command: Command, ticket: Ticket, point: Point) -> None:
    if command.exit_code != 0:
        where = ticket.where(*command.at, "exit_code")
        point.flaw("command_failed", where, f"exit code {command.exit_code}")


def _time(
    command: Command, ticket: Ticket, commit: Commit | None, point: Point, now: datetime
) -> None:
    """After the commit it ran was written, and over by now."""
    where = ticket.where(*command.at, "started_at")
    started = moment(command.started_at)
    if started is None:
        got = f"{show(command.started_at)} is no date and time with an offset from UTC"
        point.unknown("command_time", where, got)
        return
    duration = rational(command.duration_s)
    if duration is None or not 0 <= duration <= _seconds(now):
        point.unknown("command_time", where, f"duration_s {printed(command.duration_s)}")
        return
    try:
        ended = started + timedelta(seconds=float(duration))
    except OverflowError:
        point.unknown("command_time", where, f"{command.started_at} lasting {float(duration)} s")
        return
    if ended > now + _SKEW:
        point.flaw("command_time", where, f"ends at {ended.isoformat()}, which lies in the future")
    if commit is None:
        point.unknown("command_time", where, "the date of the commit is not known")
    elif started < commit.earliest - _SKEW:
        got = f"started {command.started_at}, the commit was written {commit.earliest.isoformat()}"
        point.flaw("command_time", where, got)


def _seconds(now: datetime) -> Fraction:
    return Fraction(int(now.timestamp()))


def _log(command: Command, ticket: Ticket, files: Files, point: Point) -> None:
    where = ticket.where(*command.at, "sha256")
    if is_dummy(command.sha256):
        point.flaw("placeholder_text", where, command.sha256)
        return
    place = files.locate("run", command.log, point, ticket.where(*command.at, "log"))
    if place is not None:
        files.matches(place, command.sha256, point, where)
