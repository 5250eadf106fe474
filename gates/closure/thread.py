"""The discussion of a ticket, read from what GitHub's or GitLab's own tools export.

GitHub: `gh issue view N --json number,title,url,state,author,assignees,createdAt,closedAt,body,
comments`, with the comments of `gh api repos/O/R/issues/N/comments` where edits must be dated.
GitLab: `glab issue view N -F json --comments` (`Notes`), or an issue with its `notes` or
`discussions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trueup.gates.documents.model import Pointer

_FIRST, _LAST = 1971, 9000  # years in which one can still reckon with offsets and minutes


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment. `edited` is when; True or False where the export says no more; None where it
    says nothing."""

    at: Pointer
    author: str
    body: str
    created: datetime | None
    created_text: str
    edited: datetime | bool | None = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Discussion:
    """One exported issue with its comments in the order of their dates."""

    form: str  # "GitHub" or "GitLab"
    number: int
    title: str
    url: str | None
    author: str
    assignees: tuple[str, ...]
    body: str
    created: datetime
    closed: datetime | None
    comments: tuple[Comment, ...] = field(default=())


def moment(text: object) -> datetime | None:
    """A date with its offset from UTC; None if it is no date, or does not say its zone."""
    if not isinstance(text, str) or len(text) > 40 or not text.isascii():
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return None
    dated = value.tzinfo is not None and len(text) > 10 and _FIRST <= value.year <= _LAST
    return value if dated else None


def read_discussion(data: Any) -> Discussion | str:
    """The discussion, or what keeps the data from being one."""
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if not isinstance(data, dict):
        return "an export of one issue is a JSON object"
    gitlab = "iid" in data or "web_url" in data
    number = data.get("iid" if gitlab else "number")
    if not isinstance(number, int) or isinstance(number, bool):
        return f"has no {'iid' if gitlab else 'number'}: export it with that field"
    opened = moment(_first(data, "createdAt", "created_at"))
    if opened is None or not _text(data, "title"):
        return "has no title, or no date on which it was opened: export it with title and createdAt"
    comments = list(_gitlab_comments(data) if gitlab else _github_comments(data))
    problem = next((one for one in comments if isinstance(one, str)), None)
    if problem is not None:
        return problem
    kept = [one for one in comments if isinstance(one, Comment)]
    return Discussion(
        form="GitLab" if gitlab else "GitHub",
        number=number,
        title=_text(data, "title"),
        url=_url(data),
        author=_login(data.get("author") or data.get("user")),
        assignees=_assignees(data),
        body=_text(data, "body", "description"),
        created=opened,
        closed=moment(_first(data, "closedAt", "closed_at")),
        comments=tuple(sorted(kept, key=lambda one: (one.created is None, one.created or _EVER))),
    )


_EVER = datetime.fromisoformat("0001-01-01T00:00:00+00:00")


def _first(data: dict[str, Any], *keys: str) -> Any:
    return next((data[key] for key in keys if data.get(key) is not None), None)


def _text(data: dict[str, Any], *keys: str) -> str:
    value = _first(data, *keys)
    return value if isinstance(value, str) else ""


def _url(data: dict[str, Any]) -> str | None:
    """The address people open, not that of the interface."""
    return _text(data, "web_url", "html_url", "url") or None


def _login(person: Any) -> str:
    """GitHub says login, GitLab username."""
    return _text(person, "login", "username") if isinstance(person, dict) else ""


def _assignees(data: dict[str, Any]) -> tuple[str, ...]:
    listed = data.get("assignees")
    people = listed if isinstance(listed, list) else []
    if not people and isinstance(data.get("assignee"), dict):
        people = [data["assignee"]]
    return tuple(login for login in map(_login, people) if login)


def _github_comments(data: dict[str, Any]) -> Iterator[Comment | str]:
    listed = data.get("comments")
    if not isinstance(listed, list):
        yield "has no list of comments: export it with --json comments"
        return
    for index, one in enumerate(listed):
        yield _comment(one, ("comments", index))


def _gitlab_comments(data: dict[str, Any]) -> Iterator[Comment | str]:
    for key in ("Notes", "notes"):
        if isinstance(data.get(key), list):
            for index, one in enumerate(data[key]):
                if not (isinstance(one, dict) and one.get("system")):
                    yield _comment(one, (key, index))
            return
    discussions = data.get("discussions")
    if not isinstance(discussions, list):
        yield "has no notes: export it with --comments"
        return
    for outer, thread in enumerate(discussions):
        notes = thread.get("notes") if isinstance(thread, dict) else None
        for inner, one in enumerate(notes if isinstance(notes, list) else []):
            if not (isinstance(one, dict) and one.get("system")):
                yield _comment(one, ("discussions", outer, "notes", inner))


def _comment(one: Any, at: Pointer) -> Comment | str:
    """One comment of either form; a field of another type is not guessed at."""
    said = f"comment {at[-1]}"
    if not isinstance(one, dict):
        return f"{said} is no object"
    author, body = _login(one.get("author") or one.get("user")), one.get("body")
    written = _first(one, "createdAt", "created_at")
    flags = (one.get("includesCreatedEdit", False), one.get("isMinimized", False))
    if not author:
        return f"{said} names no author"
    if not isinstance(body, str) or not isinstance(written, str):
        return f"{said} has no {'date' if isinstance(body, str) else 'text'}"
    if not all(isinstance(flag, bool) for flag in flags):
        return f"{said}: includesCreatedEdit and isMinimized are true or false"
    created = moment(written)
    changed = moment(_first(one, "lastEditedAt", "last_edited_at", "updatedAt", "updated_at"))
    edited: datetime | bool | None = flags[0] if "includesCreatedEdit" in one else None
    if changed is not None and created is not None:
        edited = changed if changed > created else False
    return Comment(at, author, body, created, written, edited, flags[1])
