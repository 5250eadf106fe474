"""A gate's verdict as Markdown, for a step summary or a comment on a change request.

What comes out of artifacts stands in code spans: there it is neither markup nor a mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from trueup.render.clean import one_line
from trueup.render.counts import plural
from trueup.render.gate_text import PLACES, change_lines, gate_summary, read_lines, rule_lines
from trueup.render.groups import Group, grouped

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict, WaiverUse

LARGEST = 60_000  # characters; a comment on GitHub may have 65,536
_LONGEST = 300  # characters of one value
_RULES, _WAIVERS, _READ = 50, 30, 50  # rows and lines that are told one by one
_MARKUP = re.compile(r"([\\`*_\[\]#!|~<>&@])")
_MARKS = {"error": "❌", "warning": "⚠️", "note": "ℹ️"}
_BREAK = "\u200b"  # of no width: no mention, no reference and no link goes on after it


def gate_markdown(path: str, result: Verdict | str) -> str:
    """Write what became of one path; findings that would make it too long are counted."""
    if isinstance(result, str):
        return f"## ⛔ trueup gate {code(path)}: not judged\n\n{code(result)}"
    head, tail = list(_head(path, result)), list(_tail(result))
    room = LARGEST - sum(len(line) + 1 for line in (*head, *tail))
    body: list[str] = []
    left = 0
    for group in grouped(result.findings):
        lines = list(_group(group))
        room -= sum(len(line) + 1 for line in lines)
        if room < 0:
            left += 1
        else:
            body += lines
    if left:
        body += [f"… and the findings of {plural(left, 'more rule')}: see the report.", ""]
    return "\n".join([*head, *body, *tail]).rstrip("\n")


def code(text: object) -> str:
    """A code span of anything: a fence longer than any inside, and no line break."""
    line = _short(text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _short(text: object) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def words(text: object) -> str:
    """Plain words: every character of markup is escaped."""
    escaped = _MARKUP.sub(r"\\\1", _short(text))
    return re.sub("([@#]|:(?=//)|www)", rf"\1{_BREAK}", escaped)


def _head(path: str, verdict: Verdict) -> Iterator[str]:
    mark = "✅" if verdict.passed else "❌"
    yield f"## {mark} trueup gate {code(path)}: {verdict.verdict}"
    yield ""
    yield words(gate_summary(verdict))
    yield ""
    groups = grouped(verdict.findings)
    if not groups:
        return
    yield "| rule | severity | what is wrong | findings | times |"
    yield "|---|---|---|---:|---:|"
    for group in groups[:_RULES]:
        was = f" (was {group.severity_was})" if group.severity_was else ""
        yield (
            f"| {code(group.rule)} | {_MARKS.get(group.severity, '')} {group.severity}{was} "
            f"| {words(group.summary)} | {group.findings:,} | {group.count:,} |"
        )
    if groups[_RULES:]:
        yield f"| … | | {plural(len(groups) - _RULES, 'more rule')} | | |"
    yield ""


def _group(group: Group) -> Iterator[str]:
    yield f"<details><summary>{_html(group.title())}</summary>"
    yield ""
    for place in group.places[:PLACES]:
        parts = (f"{code(place.where())}: got {code(place.first.got)}", place.extent(code))
        yield f"- {', '.join(part for part in parts if part)}"
        for line in place.further():
            yield f"  - {code(line)}"
    if group.places[PLACES:]:
        yield f"- … and {plural(len(group.places) - PLACES, 'more place')}"
    yield ""
    if group.expected:
        yield f"**Expected** {words(group.expected)}"
        yield ""
    if group.fix:
        yield f"**Fix** {words(group.fix)}"
        yield ""
    yield "</details>"
    yield ""


def _tail(verdict: Verdict) -> Iterator[str]:
    used = [waiver for waiver in verdict.waivers if waiver.findings]
    if used:
        yield f"### Waived: {plural(verdict.waived, 'finding')}"
        yield ""
        yield "| rule | findings | times | until | reason | approved by |"
        yield "|---|---:|---:|---|---|---|"
        yield from (_waiver(waiver) for waiver in used[:_WAIVERS])
        if used[_WAIVERS:]:
            yield f"| … | {plural(len(used) - _WAIVERS, 'more waiver')} | | | | |"
        yield ""
    for line in islice(change_lines(verdict), _READ):
        yield f"- {words(line)}"
    for line in (*islice(read_lines(verdict), _READ), *rule_lines(verdict)):
        yield f"- {words(line)}"


def _waiver(waiver: WaiverUse) -> str:
    cells = (
        code(waiver.rule), f"{len(waiver.findings):,}", f"{waiver.count:,}", waiver.expires,
        words(waiver.reason), words(", ".join(filter(None, (waiver.approved_by,
        waiver.ticket)))),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _html(text: str) -> str:
    """Text inside an HTML element of a Markdown page."""
    safe = _short(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub("([@#]|:(?=//)|www)", rf"\1{_BREAK}", safe)
