"""The two results of a gate: a `Finding` (one thing found) and the `Verdict` over all of them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
Status = Literal["true", "false", "undetermined", "not_applied"]


@dataclass(frozen=True, slots=True)
class Where:
    """A place in an artifact. `line` and `row` count from 1, `byte` is an offset from 0."""

    line: int | None = None
    byte: int | None = None
    row: int | None = None
    step: int | None = None
    key: str | None = None
    steps: tuple[int, int] | None = None

    def __str__(self) -> str:
        """`line:byte:key (step 12)`, with what is not known left empty."""
        parts = ["" if part is None else str(part) for part in (self.line, self.byte, self.key)]
        text = ":".join(parts).rstrip(":")
        if self.steps is not None and self.steps[0] != self.steps[1]:
            return f"{text} (steps {self.steps[0]}..{self.steps[1]})"
        return text if self.step is None else f"{text} (step {self.step})"

    def to_dict(self) -> dict[str, Any]:
        """Known parts only, and the readable form as `text`."""
        names = ("line", "byte", "row", "step", "key")
        known: dict[str, Any] = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        if self.steps is not None:
            known["steps"] = list(self.steps)
        known["text"] = str(self)
        return known


@dataclass(frozen=True, slots=True)
class Example:
    """One of the first places where a finding was seen."""

    where: Where
    got: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"where": self.where.to_dict(), "got": self.got}


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken at one key of one artifact, `count` times."""

    rule: str
    severity: Severity
    artifact: str
    where: Where
    got: str
    expected: str
    fix: str
    summary: str = ""
    count: int = 1
    examples: tuple[Example, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "artifact": self.artifact,
            "where": self.where.to_dict(),
            "got": self.got,
            "expected": self.expected,
            "fix": self.fix,
            "summary": self.summary,
            "count": self.count,
            "examples": [example.to_dict() for example in self.examples],
        }


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What became of one rule: how much it read, and whether it held."""

    id: str
    status: Status
    columns: int
    rows: int
    reason: str = ""
    summary: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "id": self.id,
            "summary": self.summary,
            "status": self.status,
            "columns": self.columns,
            "rows": self.rows,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class ArtifactInfo:
    """One file that was judged."""

    path: str
    kind: str
    form: str
    bytes: int
    rows: int
    columns: int
    late_keys: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "path": self.path,
            "kind": self.kind,
            "form": self.form,
            "bytes": self.bytes,
            "rows": self.rows,
            "columns": self.columns,
            "late_keys": self.late_keys,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a gate over everything it read."""

    verdict: Literal["pass", "fail"]
    profile: str
    rows: int
    checks: int
    findings: tuple[Finding, ...]
    artifacts: tuple[ArtifactInfo, ...] = ()
    bytes: int = 0
    columns: int = 0
    rules: tuple[RuleOutcome, ...] = ()
    engines: dict[str, str] = field(default_factory=dict)
    profile_digest: str = ""

    @property
    def passed(self) -> bool:
        """Whether the artifacts are fit."""
        return self.verdict == "pass"

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail. (2 is `Unreadable`, which never becomes a verdict.)"""
        return 0 if self.passed else 1

    def to_dict(self) -> dict[str, Any]:
        """As plain data, in the shape of `verdict.schema.json`."""
        return {
            "verdict": self.verdict,
            "profile": self.profile,
            "rows": self.rows,
            "checks": self.checks,
            "findings": [finding.to_dict() for finding in self.findings],
            "artifacts": [artifact.to_dict() for artifact in self.artifacts],
            "bytes": self.bytes,
            "columns": self.columns,
            "rules": [rule.to_dict() for rule in self.rules],
            "engines": dict(self.engines),
            "profile_digest": self.profile_digest,
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Strict JSON: no NaN, no Infinity, ASCII only, so that any reader can take it."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=True)


def show(value: object, limit: int = 80) -> str:
    """A value as it should appear in a message: short, and telling types apart."""
    if isinstance(value, float):
        text = repr(value) if math.isfinite(value) else {"nan": "NaN"}.get(str(value), str(value))
    elif isinstance(value, bytes):
        text = value.decode("utf-8", "backslashreplace")
    elif isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "null"}[value]
    else:
        text = json.dumps(value) if isinstance(value, str) else str(value)
    text = text.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0")
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
