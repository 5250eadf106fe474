"""What became of a ticket as Markdown, to be pasted into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trueup.render.close_text import (
    closure_summary,
    place_of,
    points_line,
    recheck_summary,
)
from trueup.render.counts import plural
from trueup.render.gate_text import gate_summary
from trueup.render.groups import Group, grouped
from trueup.render.markdown import code, words

if TYPE_CHECKING:
    from trueup.gates.closure.outcome import Closure, CriterionOutcome
    from trueup.gates.closure.verify import Recheck
    from trueup.gates.findings import Finding

_PLACES = 5  # of one finding; the JSON has them all
_GROUPS = 40
_MARKS = {"holds": "✅", "does not hold": "❌", "cannot be determined": "❓", "waived": "⚠️"}


def closure_markdown(closure: Closure, statement: str | None) -> str:
    """Write a closing: the criteria as a table, then findings, then what was asked."""
    mark = "✅" if closure.passed else "❌"
    lines = [
        f"## {mark} {words(closure.ticket)}: {words(closure.title)}",
        "",
        words(closure_summary(closure)),
        "",
        "| | criterion | measured | asked | where |",
        "|---|---|---|---|---|",
        *map(_criterion, closure.criteria),
        "",
        *_findings(closure.all_findings),
        *(f"gate {words(gate_summary(gate))}" for gate in closure.gates),
        "",
        words(points_line(closure.points)),
    ]
    if closure.passed and statement is not None:
        files = plural(len(closure.subjects), "file")
        lines += ["", f"Statement {code(statement)}: {files} and the commit."]
    return "\n".join(lines)


def recheck_markdown(recheck: Recheck) -> str:
    """Write what became of a statement."""
    mark = "✅" if recheck.passed else "❌"
    lines = [f"## {mark} {words(recheck_summary(recheck))}", "", *_findings(recheck.findings)]
    return "\n".join([*lines, words(points_line(recheck.points))])


def _criterion(one: CriterionOutcome) -> str:
    why = "; ".join(text for text in (one.reason, one.waived_by) if text)
    told = f"{_MARKS[one.status]} {one.status}"
    name = f"{code(one.id)}{' (blocker)' if one.blocker else ''} {words(one.text)}"
    value = "no value" if one.value is None else code(one.value)
    value += f" {words(why)}" if why else ""
    asked = code(f"{one.threshold} {one.unit}")
    return f"| {told} | {name} | {value} | {asked} | {code(place_of(one))} |"


def _findings(findings: Iterable[Finding]) -> Iterator[str]:
    groups = grouped(findings)
    for group in groups[:_GROUPS]:
        yield from _group(group)
    if groups[_GROUPS:]:
        yield f"- … and {plural(len(groups) - _GROUPS, 'more kind')} of findings"
    if groups:
        yield ""


def _group(group: Group) -> Iterator[str]:
    yield f"- **{code(group.rule)}** {group.severity}: {words(group.summary)}"
    for place in group.places[:_PLACES]:
        yield f"  - {code(place.where())}: {code(place.first.got)}"
    if group.places[_PLACES:]:
        yield f"  - … and {plural(len(group.places) - _PLACES, 'more place')}"
    if group.fix:
        yield f"  - fix: {words(group.fix)}"
