"""What came of closing a ticket."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.gates.closure.docket import Point
from trueup.gates.findings import Finding, Verdict, Where

CriterionStatus = Literal["holds", "does not hold", "cannot be determined", "waived"]


@dataclass(frozen=True, slots=True)
class CriterionOutcome:
    """One criterion: what was asked, what was measured, and the answer."""

    id: str
    text: str
    status: CriterionStatus
    source: str
    value: str | None  # as printed in the artifact
    threshold: str
    unit: str
    artifact: str
    where: Where
    reason: str = ""
    blocker: bool = False
    waived_by: str = ""  # the reason of the deviation
    measured: CriterionStatus | None = None  # the answer, where it is waived

    @property
    def satisfied(self) -> bool:
        """Whether it stands in the way of closing."""
        return self.status in ("holds", "waived")

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "id": self.id,
            "text": self.text,
            "status": self.status,
            "source": self.source,
            "value": self.value,
            "threshold": self.threshold,
            "unit": self.unit,
            "artifact": self.artifact,
            "where": self.where.to_dict(),
            "reason": self.reason,
            "blocker": self.blocker,
            "waived_by": self.waived_by,
            "measured": self.measured or self.status,
        }


@dataclass(frozen=True, slots=True)
class Closure:
    """The whole judgement. `statement` is the text to attach, empty unless the ticket closes."""

    ticket: str  # its id
    title: str
    verdict: Literal["pass", "fail"]
    criteria: tuple[CriterionOutcome, ...]
    points: tuple[Point, ...]
    findings: tuple[Finding, ...]
    gates: tuple[Verdict, ...] = ()  # of the run, and of the ticket's further runs
    subjects: dict[str, str] = field(default_factory=dict)
    statement: str = ""
    read: tuple[str, ...] = ()  # real paths of everything that was judged

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """Those of the closing itself, then those of its gates."""
        return (*self.findings, *(one for gate in self.gates for one in gate.findings))

    @property
    def passed(self) -> bool:
        """Whether the ticket may be closed."""
        return self.verdict == "pass"

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail."""
        return 0 if self.passed else 1

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the shape of `closure.schema.json`."""
        return {
            "verdict": self.verdict,
            "ticket": self.ticket,
            "title": self.title,
            "criteria": [criterion.to_dict() for criterion in self.criteria],
            "points": [point.to_dict() for point in self.points],
            "findings": [finding.to_dict() for finding in self.findings],
            "gates": [verdict.to_dict() for verdict in self.gates],
            "subjects": dict(sorted(self.subjects.items())),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Strict JSON in ASCII."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=True)
