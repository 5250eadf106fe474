"""Everything that is asked when a ticket is closed, each with its answer.

A `Point` is one question. It holds unless a flaw is noted; a flaw whose kind is an error makes it
not hold, or, where the thing cannot be told, undetermined. Neither passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.collector import Collector
from trueup.gates.findings import Where

Answer = Literal["holds", "does not hold", "cannot be determined", "not asked"]


@dataclass(slots=True)
class Point:
    """One question and what was found about it."""

    name: str
    docket: Docket
    artifact: str
    answer: Answer = "holds"
    warned: bool = False
    reasons: list[str] = field(default_factory=list)

    def flaw(self, kind: str, where: Where, got: str, artifact: str | None = None) -> None:
        """Note something that does not hold."""
        self._note(kind, where, got, artifact, "does not hold")

    def unknown(self, kind: str, where: Where, got: str, artifact: str | None = None) -> None:
        """Note something that cannot be told; it does not pass either."""
        self._note(kind, where, f"undetermined: {got}", artifact, "cannot be determined")

    def skip(self, reason: str) -> None:
        """Say why the question was not asked."""
        if self.answer == "holds":
            self.answer = "not asked"
            self.reasons.append(reason)

    def _note(
        self, kind: str, where: Where, got: str, artifact: str | None, answer: Answer
    ) -> None:
        severity = kinds()[kind].severity
        self.docket.collector.of_kind(kind, artifact or self.artifact, where, got)
        if severity == "note":
            return
        self.reasons.append(got)
        if severity == "warning":
            self.warned = True
        elif self.answer != "does not hold":
            self.answer = answer

    @property
    def passed(self) -> bool:
        """Whether it holds, be it with a warning."""
        return self.answer == "holds"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "answer": self.answer,
            "warned": self.warned,
            "reasons": list(dict.fromkeys(self.reasons)),
        }


@dataclass(slots=True)
class Docket:
    """All points of one closing, and the findings."""

    artifact: str  # what findings belong to unless they say otherwise: the ticket
    collector: Collector = field(default_factory=Collector)
    points: list[Point] = field(default_factory=list)

    def point(self, name: str, artifact: str | None = None) -> Point:
        """Ask one more question."""
        point = Point(name, self, artifact or self.artifact)
        self.points.append(point)
        return point
