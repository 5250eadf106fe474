"""JUnit XML, as CI systems read it: one test case per contract and lane, or per gate rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from trueup.gates.findings import RuleOutcome
from trueup.oracle.verdict import ContractVerdict, LaneVerdict, Outcome, Verification
from trueup.render.clean import no_command, printable
from trueup.render.counts import counted
from trueup.render.findings import Origin, alike, finding_text, headline
from trueup.render.gate_text import group_lines, waiver_title
from trueup.render.groups import grouped

if TYPE_CHECKING:
    from trueup.gates.findings import Finding as GateFinding
    from trueup.gates.findings import Verdict, WaiverUse


def verify_junit(verification: Verification) -> str:
    """Write a verification; a contract that could not be judged is an error."""
    suite = _suite("trueup verify")
    for contract in verification.contracts:
        for lane in contract.lanes:
            _lane(suite, contract, lane)
        if contract.findings:
            case = _case(suite, contract.id, f"{contract.backend}-minimum")
            _fail(case, "failure", (finding_text(finding) for finding in contract.findings))
    shown = {
        (contract.id, lane.lane) for contract in verification.contracts for lane in contract.lanes
    }
    for skip in verification.skipped:
        if (skip.contract, skip.lane) in shown:
            continue
        case = _case(suite, skip.contract, skip.lane or "all lanes")
        _set(ET.SubElement(case, "skipped"), message=skip.reason)
    for message in verification.errors:
        case = _case(suite, message.split(": ")[0], "contract")
        _fail(case, "error", [message])
    return _finish(suite)


def gate_junit(judged: Iterable[tuple[str, Verdict | str]]) -> str:
    """Write a suite for each path that was judged: a test case for each rule.

    A rule fails where one of its findings is an error, as the verdict does. What was waived is
    skipped, with the reason; a path that could not be judged is an error.
    """
    suites = []
    for path, result in judged:
        suite = _suite(f"trueup gate {printable(path)}")
        if isinstance(result, str):
            _fail(_case(suite, "gate", path), "error", [result])
        else:
            _verdict(suite, result)
        suites.append(suite)
    return _finish(*suites)


def _verdict(suite: ET.Element, verdict: Verdict) -> None:
    by_rule: dict[str, list[GateFinding]] = {}
    for finding in verdict.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    waived: dict[str, list[WaiverUse]] = {}
    for waiver in verdict.waivers:
        if waiver.findings:
            waived.setdefault(waiver.rule, []).append(waiver)
    name = f"gate.{verdict.profile}"
    for rule in verdict.rules:
        told = verdict.passed  # then what could not be decided was waived, or is no error
        _rule(suite, name, rule, by_rule.pop(rule.id, []), waived.pop(rule.id, []), told)
    for rule_id in dict.fromkeys([*by_rule, *waived]):  # what no profile lists: the reader's own
        rule = RuleOutcome(rule_id, "true", 0, 0)
        _rule(suite, name, rule, by_rule.get(rule_id, []), waived.get(rule_id, []), True)


def _lane(suite: ET.Element, contract: ContractVerdict, lane: LaneVerdict) -> None:
    case = _case(suite, contract.id, f"{contract.backend}-{lane.lane}", lane.seconds)
    counts = counted(lane.cases, lane.elements, lane.launches)
    if lane.verdict is Outcome.SKIPPED:
        _set(ET.SubElement(case, "skipped"), message=lane.reason or "no reason given")
    elif lane.verdict is not Outcome.PASS:
        origin = Origin(contract.path or contract.id, contract.backend, lane.lane)
        texts = [finding_text(one, origin, also) for one, also in alike(lane.findings)]
        first = headline(lane.findings[0]) if lane.findings else lane.reason or ""
        _fail(case, "failure", texts or [lane.reason or ""], f"{lane.verdict}: {first}")
    _text(ET.SubElement(case, "system-out"), "\n".join((counts, *lane.notes)))


def _rule(
    suite: ET.Element,
    name: str,
    rule: RuleOutcome,
    findings: list[GateFinding],
    waivers: list[WaiverUse],
    passed: bool,
) -> None:
    case = _case(suite, name, rule.id)
    groups = grouped(findings)
    texts = ["\n".join((group.title(), *group_lines(group))) for group in groups]
    texts += [waiver_title(waiver) for waiver in waivers]
    broken = rule.status in ("false", "undetermined") and not findings and not waivers
    if any(finding.severity == "error" for finding in findings):
        _fail(case, "failure", texts, headline(findings[0]))
    elif broken and not passed:
        _fail(case, "failure", [rule.reason or rule.status])
    elif waivers and not findings:
        message = "; ".join(waiver_title(waiver) for waiver in waivers)
        _set(ET.SubElement(case, "skipped"), message=message)
    elif broken or rule.status == "not_applied":
        _set(ET.SubElement(case, "skipped"), message=rule.reason or "does not apply to this run")
    elif texts:
        _text(ET.SubElement(case, "system-out"), "\n\n".join(texts))


def _suite(name: str) -> ET.Element:
    return ET.Element("testsuite", name=name)


def _case(suite: ET.Element, group: str, name: str, seconds: float = 0.0) -> ET.Element:
    case = ET.SubElement(suite, "testcase")
    _set(case, classname=group, name=name, time=f"{seconds:.3f}")
    return case


def _fail(case: ET.Element, kind: str, texts: Iterable[str], message: str | None = None) -> None:
    body = "\n\n".join(texts)
    element = ET.SubElement(case, kind)
    _set(element, message=message or body.partition("\n")[0])
    _text(element, body)


def _set(element: ET.Element, **attributes: str) -> None:
    """Set attributes to text that XML can hold: it has no escape for control characters."""
    for key, value in attributes.items():
        element.set(key, printable(value))


def _text(element: ET.Element, text: str) -> None:
    element.text = no_command(printable(text))


def _finish(*suites: ET.Element) -> str:
    root = ET.Element("testsuites")
    for suite in suites:
        cases = list(suite.iter("testcase"))
        seconds = sum(float(case.get("time", 0)) for case in cases)
        _set(suite, tests=str(len(cases)), time=f"{seconds:.3f}")
        for kind, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(key, str(sum(1 for case in cases if case.find(kind) is not None)))
        root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")
