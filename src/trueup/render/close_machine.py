"""What became of a ticket, for machines: as gates' verdicts, which JUnit, SARIF and GitHub take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trueup.gates.findings import Finding, RuleOutcome, Status, Verdict

if TYPE_CHECKING:
    from trueup.gates.closure.docket import Point
    from trueup.gates.closure.outcome import Closure, CriterionOutcome
    from trueup.gates.closure.verify import Recheck

Judged = list[tuple[str, "Verdict | str"]]
_STATUS: dict[str, Status] = {
    "holds": "true",
    "waived": "true",
    "does not hold": "false",
    "cannot be determined": "undetermined",
    "not asked": "not_applied",
}


def printed(result: Closure | Recheck, path: str, format: str) -> str:
    """Write it as `json`, `junit`, `sarif` or `github`."""
    if format == "json":
        return closure_json(result)
    if format == "junit":
        from trueup.render.junit import gate_junit

        return gate_junit(with_points(path, result))
    if format == "github":
        from trueup.render.github import gate_annotations

        return "\n".join(gate_annotations(with_findings(path, result)))
    from trueup.gates.catalogue.rules import entries
    from trueup.render.sarif import gate_sarif

    known = {entry.id: entry for entry in entries()}
    return gate_sarif(with_findings(path, result), known, 0 if result.passed else 1)


def closure_json(result: Closure | Recheck) -> str:
    """Write strict JSON in ASCII, as `closure.schema.json` says."""
    return json.dumps(result.to_dict(), indent=2, allow_nan=False, ensure_ascii=True)


def with_findings(path: str, result: Closure | Recheck) -> Judged:
    """The findings of the closing under the ticket's path, those of its gates under the runs'."""
    own: tuple[str, Verdict | str] = (path, _verdict(result, result.findings, ()))
    return [own, *_gates(result)]


def with_points(path: str, result: Closure | Recheck) -> Judged:
    """A test case for each criterion and each question; a finding is the reason of one of them."""
    outcomes = [*_criteria(getattr(result, "criteria", ())), *_points(result.points)]
    mild = tuple(one for one in result.findings if one.severity != "error")
    return [(path, _verdict(result, mild, tuple(outcomes))), *_gates(result)]


def _verdict(
    result: Closure | Recheck, findings: tuple[Finding, ...], outcomes: tuple[RuleOutcome, ...]
) -> Verdict:
    asked = len(result.points) + len(getattr(result, "criteria", ()))
    return Verdict(result.verdict, "closure", 0, asked, findings, rules=outcomes)


def _gates(result: Closure | Recheck) -> Iterator[tuple[str, Verdict | str]]:
    for gate in getattr(result, "gates", ()):
        yield (gate.artifacts[0].path if gate.artifacts else gate.profile), gate


def _criteria(criteria: Iterable[CriterionOutcome]) -> Iterator[RuleOutcome]:
    for one in criteria:
        said = f"{one.value or 'no value'}, asked {one.threshold} {one.unit}"
        reason = f"{said}: {one.reason}" if one.reason else said
        status = _STATUS[one.status]
        yield RuleOutcome(f"criterion: {one.id}", status, 1, 1, reason, one.text)


def _points(points: Iterable[Point]) -> Iterator[RuleOutcome]:
    for one in points:
        reason = "; ".join(dict.fromkeys(one.reasons))
        yield RuleOutcome(one.name, _STATUS[one.answer], 1, 1, reason)
