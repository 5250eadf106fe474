"""What an acceptance is made of: criteria, each with a value, a bound and a three-valued status."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from trueup.gates.findings import ArtifactInfo, Finding

Held = Literal["true", "false", "undetermined"]
Weight = Literal["fail", "blocker", "warn"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that must lie between two bounds, both inclusive; None is an open side."""

    value: Fraction | None
    low: Fraction | None
    high: Fraction | None

    def holds(self) -> bool:
        """By exact arithmetic; no number holds nothing."""
        if self.value is None:
            return False
        above = self.low is None or self.value >= self.low
        return above and (self.high is None or self.value <= self.high)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question of an acceptance and its answer."""

    id: str  # best_val, smoke.f0_retained
    of: str  # [seed=7,fold=0]; empty where there is only one
    block: str
    held: Held
    value: str
    threshold: str
    weight: Weight = "fail"
    tier: int | None = None
    reason: str = ""
    measure: Measure | None = None

    @property
    def name(self) -> str:
        """The criterion and what it is about."""
        return f"{self.id}{self.of}"

    @property
    def decides(self) -> bool:
        """Whether the run fails when this does not hold."""
        return self.weight != "warn"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "id": self.id,
            "of": self.of,
            "block": self.block,
            "status": self.held,
            "value": self.value,
            "threshold": self.threshold,
            "class": self.weight,
            "tier": self.tier,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Expected:
    """What Great Expectations said of one measure."""

    criterion: str
    column: str
    expectation: str
    success: bool | None
    value: float | None
    low: float | None
    high: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data: every number here is finite."""
        return {
            "criterion": self.criterion,
            "column": self.column,
            "expectation": self.expectation,
            "success": self.success,
            "value": self.value,
            "min": self.low,
            "max": self.high,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of a whole acceptance."""

    id: str
    criteria: tuple[Criterion, ...]
    findings: tuple[Finding, ...]
    artifacts: tuple[ArtifactInfo, ...] = ()
    expectations: tuple[Expected, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)
    digest: str = ""  # of the acceptance file

    @property
    def passed(self) -> bool:
        """All criteria that decide hold, there is one, and nothing found is an error."""
        deciding = [criterion for criterion in self.criteria if criterion.decides]
        sound = all(finding.severity != "error" for finding in self.findings)
        return bool(deciding) and sound and all(c.held == "true" for c in deciding)

    @property
    def exit_code(self) -> int:
        """0 accepted, 1 not."""
        return 0 if self.passed else 1

    def count(self, held: Held) -> int:
        """How many criteria have this status."""
        return sum(criterion.held == held for criterion in self.criteria)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the shape of `judgement.schema.json`."""
        return {
            "verdict": "pass" if self.passed else "fail",
            "acceptance": self.id,
            "acceptance_digest": self.digest,
            "criteria": [criterion.to_dict() for criterion in self.criteria],
            "findings": [finding.to_dict() for finding in self.findings],
            "artifacts": [artifact.to_dict() for artifact in self.artifacts],
            "expectations": [one.to_dict() for one in self.expectations],
            "engines": dict(self.engines),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Strict JSON: no NaN, no Infinity, ASCII only."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=True)
