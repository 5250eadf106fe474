"""Deviations: what each waives, that it is written down where it says, and that another agreed."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterator

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.files import Files
from trueup.gates.closure.model import Deviation, Ticket
from trueup.gates.closure.repository import GitFailed, Repository
from trueup.gates.closure.words import placeholder
from trueup.gates.findings import show
from trueup.gates.structure import closest

_MAX_DOCUMENT = 4 << 20


def judge_deviations(
    ticket: Ticket,
    files: Files,
    repository: Repository | None,
    equations: Collection[str],
    docket: Docket,
) -> list[Deviation]:
    """The deviations that hold; one with a flaw waives nothing."""
    good = []
    for deviation in ticket.deviations:
        point = docket.point(f"deviation {deviation.waives} {deviation.target}")
        _target(deviation, ticket, equations, point)
        _said(deviation, ticket, point)
        _documented(deviation, ticket, files, repository, point)
        if point.passed:
            good.append(deviation)
    return good


def _target(deviation: Deviation, ticket: Ticket, equations: Collection[str], point: Point) -> None:
    """What it waives is there, and can be waived."""
    where = ticket.where(*deviation.at, deviation.waives)
    known: list[str] = []
    if deviation.waives == "criterion":
        known = [one.id for one in ticket.criteria]
        blockers = [one.id for one in ticket.criteria if one.blocker]
        if deviation.target in blockers:
            point.flaw("deviation_blocker", where, f"{deviation.target} is a blocker")
    elif deviation.waives == "equation":
        known = [*equations, *(kernel.id for kernel in ticket.kernels)]
    if known and deviation.target not in known:
        hint = closest(deviation.target, known)
        got = f"no {deviation.waives} {show(deviation.target)}"
        point.flaw("deviation_unknown", where, f"{got}; {hint}" if hint else got)


def _said(deviation: Deviation, ticket: Ticket, point: Point) -> None:
    word = placeholder(deviation.reason)
    if word is not None:
        where = ticket.where(*deviation.at, "reason")
        point.flaw("placeholder_text", where, show(word))
    if deviation.approved_by.casefold() == ticket.assignee.casefold():
        where = ticket.where(*deviation.at, "approved_by")
        point.flaw("deviation_own", where, f"approved by the assignee {ticket.assignee}")


def _documented(
    deviation: Deviation,
    ticket: Ticket,
    files: Files,
    repository: Repository | None,
    point: Point,
) -> None:
    """The document is there, with the anchor, and speaks of what is waived."""
    where = ticket.where(*deviation.at, "documented")
    scheme, _, rest = deviation.documented.partition(":")
    path, _, anchor = rest.partition("#")
    if scheme == "run":
        place = files.locate("run", path, point, where)
        if place is None or files.digest(place, point, where) is None:
            return
        if place.path.stat().st_size > _MAX_DOCUMENT:
            point.unknown("deviation_undocumented", where, f"{path} is larger than {_MAX_DOCUMENT}")
            return
        raw: bytes | None = place.path.read_bytes()
    elif repository is None:
        point.unknown("deviation_undocumented", where, "the repository is not known")
        return
    else:
        try:
            raw = repository.read(ticket.commit, path)
        except GitFailed as error:
            point.unknown("deviation_undocumented", where, str(error))
            return
    if raw is None:
        got = f"{show(path)} is not in the repository at the commit"
        point.flaw("deviation_undocumented", where, got)
        return
    anchors = set(anchors_of(raw[:_MAX_DOCUMENT].decode("utf-8", "replace")))
    if anchor not in anchors:
        hint = closest(anchor, anchors)
        got = f"{show(path)} has no anchor {show(anchor)}"
        point.flaw("deviation_undocumented", where, f"{got}; {hint}" if hint else got)


_ANCHOR = re.compile(r"""<[a-zA-Z][^<>]*?\s(?:id|name)\s*=\s*["']([^"']+)["']""")


def anchors_of(text: str) -> Iterator[str]:
    """The anchors of a Markdown text, as GitHub and GitLab make them from its headings."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    seen: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = _slug(_words(tokens[index + 1]))
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            yield f"{slug}-{count}" if count else slug
        elif token.type in ("html_block", "inline"):
            yield from (html.unescape(found) for found in _ANCHOR.findall(token.content))


def _words(inline: object) -> str:
    """The text of a heading without its markup."""
    children = getattr(inline, "children", None) or ()
    return "".join(one.content for one in children if one.type in ("text", "code_inline"))


def _slug(text: str) -> str:
    kept = "".join(
        char
        for char in unicodedata.normalize("NFC", text).strip().lower()
        if char.isalnum() or char in " -_"
    )
    return kept.replace(" ", "-")
