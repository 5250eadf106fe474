"""An acceptance as Markdown, for a step summary, and as JUnit XML, one test case a criterion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from trueup.render.accept_text import (
    acceptance_summary,
    alike,
    by_rule,
    class_words,
    finding_lines,
    held_words,
    place_of,
)
from trueup.render.clean import no_command, printable
from trueup.render.counts import plural
from trueup.render.markdown import LARGEST, code, words

if TYPE_CHECKING:
    from trueup.gates.acceptance.model import Criterion, Judgement
    from trueup.gates.findings import Finding

_MARKS = {"true": "✅", "false": "❌", "undetermined": "❔"}
_PLACES = 12  # of one rule


def acceptance_markdown(judgement: Judgement) -> str:
    """Write the criteria as a table and the findings below it; what is too long is counted."""
    mark = "✅" if judgement.passed else "❌"
    head = [
        f"## {mark} trueup accept {code(judgement.id)}",
        "",
        words(acceptance_summary(judgement)),
        "",
        "| criterion | holds | value | bound | class |",
        "|---|---|---|---|---|",
    ]
    lines = [*(_row(several) for several in _worst_first(judgement.criteria)), ""]
    for group in by_rule(judgement.findings):
        lines += _group(group)
    room = LARGEST - sum(len(line) + 1 for line in head) - 80
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept += ["", f"… and {plural(len(lines) - len(kept), 'more line')}: see --format json"]
            break
        kept.append(line)
    return "\n".join([*head, *kept]).rstrip("\n")


def _worst_first(criteria: tuple[Criterion, ...]) -> list[list[Criterion]]:
    """Those that do not hold come first: a long table is cut at its end."""
    return sorted(alike(criteria), key=lambda several: several[0].held == "true")


def _row(several: list[Criterion]) -> str:
    one = several[0]
    many = len(several) > 1
    name, value = (one.id, f"{len(several)} values") if many else (one.name, one.value)
    same = len({other.threshold for other in several}) == 1
    cells = (code(name), f"{_MARKS[one.held]} {held_words(one)}", code(value),
             code(one.threshold) if same else "each its own", class_words(one))  # fmt: skip
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _group(group: list[Finding]) -> Iterator[str]:
    yield f"### {code(group[0].rule)} {words(group[0].summary)}"
    yield ""
    for finding in group[:_PLACES]:
        got, expected = code(finding.got), code(finding.expected)
        yield f"- {code(place_of(finding))}: got {got}, expected {expected}"
    if group[_PLACES:]:
        yield f"- … and {plural(len(group) - _PLACES, 'more place')}"
    yield ""
    yield f"**Fix** {words(group[0].fix)}"
    yield ""


def acceptance_junit(judgement: Judgement) -> str:
    """Write a test case for each criterion that decides, and one for each rule that was broken."""
    suite = ET.Element("testsuite", name="trueup accept")
    for one in judgement.criteria:
        case = _case(suite, f"accept.{judgement.id}.{one.block}", one.name)
        said = f"{one.value}; {one.threshold}" + (f"; {one.reason}" if one.reason else "")
        if one.held == "true":
            continue
        kind = "failure" if one.decides else "skipped"
        _say(case, kind, f"{held_words(one)}: {said}")
    for group in by_rule(judgement.findings):
        case = _case(suite, f"accept.{judgement.id}.findings", group[0].rule)
        text = "\n".join((group[0].summary, *finding_lines(group)))
        _say(case, "failure" if group[0].severity == "error" else "system-out", text)
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    for kind, key in (("failure", "failures"), ("skipped", "skipped")):
        suite.set(key, str(sum(1 for case in cases if case.find(kind) is not None)))
    suite.set("errors", "0")
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    case = ET.SubElement(suite, "testcase")
    for key, value in (("classname", group), ("name", name), ("time", "0.000")):
        case.set(key, printable(value))  # XML has no escape for control characters
    return case


def _say(case: ET.Element, kind: str, text: str) -> None:
    element = ET.SubElement(case, kind)
    safe = printable(text)
    if kind != "system-out":
        element.set("message", safe.partition("\n")[0])
    element.text = no_command(safe)
