"""An acceptance as text: every criterion with its value and bound, then what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueup.render.clean import one_line
from trueup.render.console import print_block
from trueup.render.counts import plural
from trueup.render.gate_text import PLACES, STYLES

if TYPE_CHECKING:
    from trueup.gates.acceptance.model import Criterion, Judgement
    from trueup.gates.findings import Finding

_HELD = {"true": "green", "false": "bold red", "undetermined": "bold yellow"}
_WORDS = {"true": "holds", "false": "does not hold", "undetermined": "undetermined"}
_MANY = 5  # criteria of one id that hold are told in one row from here on
_LONGEST = 90  # characters of a value in the table; findings have all of it


def show_acceptance(judgement: Judgement, out: Console) -> None:
    """Print the judgement."""
    print_block(out, _table(judgement))
    out.print()
    for group in by_rule(judgement.findings):
        first = group[0]
        title = f"{first.rule} {first.summary}: {plural(len(group), 'finding')}"
        out.print(Text(one_line(title), style=STYLES.get(first.severity, "")), soft_wrap=True)
        for line in finding_lines(group):
            out.print(Text(line), soft_wrap=True)
        out.print()
    for info in judgement.artifacts:
        rows = f", {plural(info.rows, 'line')}" if info.rows else ""
        line = f"read {info.path}: {info.kind}, {info.form}{rows}, {plural(info.bytes, 'byte')}"
        out.print(Text(one_line(line)), soft_wrap=True)
    if judgement.findings:
        out.print(Text("`trueup explain ID` tells of a rule why it exists, with examples"))
    style = "green" if judgement.passed else "bold red"
    out.print(Text(acceptance_summary(judgement), style=style), soft_wrap=True)


def _table(judgement: Judgement) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in ("criterion", "", "value", "bound", "class"):
        table.add_column(name, overflow="fold")
    for several in alike(judgement.criteria):
        one, more = several[0], len(several) > 1
        name, value, bound = one.name, one.value, one.threshold
        if more:
            name, value = one.id, f"{len(several)} values"
            bound = bound if len({other.threshold for other in several}) == 1 else "each its own"
        table.add_row(
            Text(one_line(name)),
            Text(held_words(one), style=_HELD[one.held] if one.decides else "dim"),
            Text(_short(value)),
            Text(_short(bound)),
            Text(class_words(one)),
        )
    return table


def alike(criteria: tuple[Criterion, ...]) -> list[list[Criterion]]:
    """Criteria one by one; those of one id that hold together, where they are many."""
    held: dict[str, list[Criterion]] = {}
    for one in criteria:
        if one.held == "true":
            held.setdefault(one.id, []).append(one)
    rows: list[list[Criterion]] = []
    for one in criteria:
        group = held.get(one.id, [])
        if one.held != "true" or len(group) < _MANY:
            rows.append([one])
        elif one is group[0]:
            rows.append(group)
    return rows


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def held_words(criterion: Criterion) -> str:
    """Whether it holds, in words."""
    return _WORDS[criterion.held]


def class_words(criterion: Criterion) -> str:
    """Its class and its tier."""
    tier = "" if criterion.tier is None else f", tier {criterion.tier}"
    return f"{criterion.weight}{tier}"


def by_rule(findings: tuple[Finding, ...]) -> list[list[Finding]]:
    """Findings of one rule and severity together, in the order of the first of each."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.severity), []).append(finding)
    return list(groups.values())


def place_of(finding: Finding) -> str:
    """`file:line:byte:key`, as editors take it."""
    where = one_line(finding.where)
    return one_line(finding.artifact) + (f":{where}" if where else "")


def finding_lines(group: list[Finding]) -> Iterator[str]:
    """The lines below a rule's title: each place with what was expected there, then the fix."""
    for finding in group[:PLACES]:
        times = f" ({finding.count:,} times)" if finding.count > 1 else ""
        yield f"  {place_of(finding)}: got {one_line(finding.got)}{times}"
        yield f"      expected {one_line(finding.expected)}"
    if group[PLACES:]:
        yield f"  … and {plural(len(group) - PLACES, 'more place')}; --format json has all"
    yield f"  {'fix':<9} {one_line(group[0].fix)}"


def acceptance_summary(judgement: Judgement) -> str:
    """Verdict and counts in one line."""
    verdict = "pass" if judgement.passed else "fail"
    counts = [f"{judgement.count('true')} hold"]
    counts += [f"{n} not" for n in (judgement.count("false"),) if n]
    counts += [f"{n} undetermined" for n in (judgement.count("undetermined"),) if n]
    engine = judgement.engines.get("great_expectations")
    second = f"; {len(judgement.expectations)} expectations" if engine else ""
    return one_line(
        f"{verdict}: {judgement.id}, {_criteria(judgement)}: "
        f"{', '.join(counts)}{second}; {plural(len(judgement.findings), 'finding')}"
    )


def _criteria(judgement: Judgement) -> str:
    count = len(judgement.criteria)
    return f"{count:,} {'criterion' if count == 1 else 'criteria'}"
