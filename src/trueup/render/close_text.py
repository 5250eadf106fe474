"""What became of a ticket, as text: each criterion, then the findings, then what was asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from trueup.render.clean import one_line
from trueup.render.counts import plural
from trueup.render.gate_text import STYLES, gate_summary, group_lines
from trueup.render.groups import grouped

if TYPE_CHECKING:
    from trueup.gates.closure.docket import Point
    from trueup.gates.closure.outcome import Closure, CriterionOutcome
    from trueup.gates.closure.verify import Recheck
    from trueup.gates.findings import Finding

MARKS = {
    "holds": "green",
    "does not hold": "bold red",
    "cannot be determined": "bold red",
    "waived": "yellow",
}
_ANSWERS = ("holds", "does not hold", "cannot be determined", "not asked")


def show_closure(closure: Closure, out: Console, statement: str | None) -> None:
    """Print a closing. `statement`: where its statement goes, if it may be closed."""
    _say(out, f"{closure.ticket}: {closure.title}", "bold")
    for criterion in closure.criteria:
        first, *rest = criterion_lines(criterion)
        _say(out, first, MARKS[criterion.status])
        for line in rest:
            _say(out, line)
    out.print()
    _findings(closure.all_findings, out)
    for gate in closure.gates:
        _say(out, f"gate {gate_summary(gate)}")
    _say(out, points_line(closure.points))
    if closure.passed and statement is not None:
        _say(out, f"statement {statement}: {plural(len(closure.subjects), 'file')} and the commit")
    _say(out, closure_summary(closure), "green" if closure.passed else "bold red")


def show_recheck(recheck: Recheck, out: Console) -> None:
    """Print what became of a statement."""
    _findings(recheck.findings, out)
    _say(out, points_line(recheck.points))
    _say(out, recheck_summary(recheck), "green" if recheck.passed else "bold red")


def _say(out: Console, line: str, style: str = "") -> None:
    out.print(Text(one_line(line) if not line.startswith(" ") else line, style), soft_wrap=True)


def _findings(findings: Iterable[Finding], out: Console) -> None:
    groups = grouped(findings)
    for group in groups:
        out.print(Text(group.title(), style=STYLES.get(group.severity, "")), soft_wrap=True)
        for line in group_lines(group):
            out.print(Text(line), soft_wrap=True)
        out.print()
    if groups:
        _say(out, "`trueup explain ID` tells of a finding why it matters, with examples")


def criterion_lines(one: CriterionOutcome) -> Iterator[str]:
    """Answer, id, value against threshold; then the words of the ticket, the place, the reason."""
    value = "no value" if one.value is None else one.value
    blocker = ", a blocker" if one.blocker else ""
    yield one_line(f"{one.status}: {one.id}: {value}, asked {one.threshold} {one.unit}{blocker}")
    yield f"  {'asks':<9} {one_line(one.text)}"
    yield f"  {'read':<9} {one_line(place_of(one))}"
    if one.reason:
        yield f"  {'why':<9} {one_line(one.reason)}"
    if one.waived_by:
        yield f"  {'waived':<9} {one_line(one.waived_by)} ({one.measured})"


def place_of(one: CriterionOutcome) -> str:
    """Where the value stands, as editors can follow it."""
    if not one.artifact:
        return one.source
    where = str(one.where).strip()
    if where.startswith(":"):  # a key without a line
        where = f" {where.lstrip(':')}"
    return f"{one.artifact}{':' if where and where[0] != ' ' else ''}{where} ({one.source})"


def points_line(points: Iterable[Point]) -> str:
    """How many questions were asked, and how they were answered."""
    counts: Counter[str] = Counter(point.answer for point in points)
    words = {"holds": "yes", "does not hold": "no", "cannot be determined": "undetermined"}
    said = [f"{counts[one]} {words.get(one, one)}" for one in _ANSWERS if counts[one]]
    return f"{plural(sum(counts.values()), 'question')} asked: {', '.join(said)}"


def closure_summary(closure: Closure) -> str:
    """Write the verdict in one line."""
    counts: Counter[str] = Counter(one.status for one in closure.criteria)
    said = ", ".join(f"{counts[status]} {_plainly(status)}" for status in MARKS if counts[status])
    return one_line(
        f"{closure.verdict}: ticket {closure.ticket}, "
        f"{len(closure.criteria)} {'criterion' if len(closure.criteria) == 1 else 'criteria'}: "
        f"{said}; {plural(len(closure.all_findings), 'finding')}"
    )


def _plainly(status: str) -> str:
    return {"holds": "met", "does not hold": "not met", "cannot be determined": "undetermined"}.get(
        status, status
    )


def recheck_summary(recheck: Recheck) -> str:
    """Write what became of a statement in one line."""
    return one_line(
        f"{recheck.verdict}: statement {recheck.statement} of {recheck.ticket}, "
        f"{recheck.result}, {plural(recheck.subjects, 'subject')}, "
        f"{plural(len(recheck.findings), 'finding')}"
    )
