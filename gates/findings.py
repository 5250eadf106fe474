"""The two results of a gate: a `Finding` (one thing found) and the `Verdict` over all of them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
Status = Literal["true", "false", "undetermined", "not_applied"]
# elsewhere: the waiver is about artifacts that are not among those judged
WaiverStatus = Literal["used", "unused", "expired", "elsewhere"]


@dataclass(frozen=True, slots=True)
class Where:
    """A place in an artifact. `line` and `row` count from 1, `byte` is an offset from 0."""

    line: int | None = None
    byte: int | None = None
    row: int | None = None
    step: int | None = None
    key: str | None = None
    steps: tuple[int, int] | None = None
    column: int | None = None  # in source code, in characters from 1; stands where bytes would

    def __str__(self) -> str:
        """`line:byte:key (step 12)`, what is not known left empty; `row 7:key` without lines."""
        second = self.byte if self.column is None else self.column
        parts = ["" if part is None else str(part) for part in (self.line, second, self.key)]
        if self.line is None and self.byte is None and self.row is not None:
            parts[:2] = [f"row {self.row}"]
        text = ":".join(parts).rstrip(":")
        if self.steps is not None and self.steps[0] != self.steps[1]:
            return f"{text} (steps {self.steps[0]}..{self.steps[1]})"
        return text if self.step is None else f"{text} (step {self.step})"

    def to_dict(self) -> dict[str, Any]:
        """Known parts only, and the readable form as `text`."""
        names = ("line", "byte", "row", "step", "key", "column")
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
    severity_was: Severity | None = None  # by the profile, where the settings changed it

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        was = {} if self.severity_was is None else {"severity_was": self.severity_was}
        return {
            "rule": self.rule,
            "severity": self.severity,
            **was,
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
    document: bool = False  # read whole and held to rules on documents, not read as a table

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
            "document": self.document,
        }


@dataclass(frozen=True, slots=True)
class WaiverUse:
    """One waiver of the settings, and what became of it."""

    rule: str
    reason: str
    expires: str  # a date; it holds through this day
    status: WaiverStatus
    place: str  # in the settings file
    artifact: str = ""
    key: str = ""
    steps: tuple[int, int] | None = None
    approved_by: str = ""
    ticket: str = ""
    findings: tuple[Finding, ...] = ()  # what it waived

    @property
    def count(self) -> int:
        """How often the rule was broken in what it waived."""
        return sum(finding.count for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """As plain data; what the waiver does not narrow is left out."""
        optional = {
            "artifact": self.artifact,
            "key": self.key,
            "steps": list(self.steps) if self.steps else "",
            "approved_by": self.approved_by,
            "ticket": self.ticket,
        }
        return {
            "rule": self.rule,
            "reason": self.reason,
            "expires": self.expires,
            "status": self.status,
            "place": self.place,
            **{name: value for name, value in optional.items() if value},
            "count": self.count,
            "findings": [finding.to_dict() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class SeverityChange:
    """What the settings made of a rule's severity, and how many findings that concerned."""

    rule: str
    before: Severity
    after: Severity
    place: str  # in the settings file
    artifact: str = ""
    reason: str = ""
    findings: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        optional = {"artifact": self.artifact, "reason": self.reason}
        return {
            "rule": self.rule,
            "before": self.before,
            "after": self.after,
            "place": self.place,
            **{name: value for name, value in optional.items() if value},
            "findings": self.findings,
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
    waivers: tuple[WaiverUse, ...] = ()  # of the settings; what they waived is not in `findings`
    severity_changes: tuple[SeverityChange, ...] = ()
    settings: str = ""  # the settings file, as the caller knows it
    settings_digest: str = ""

    @property
    def documents(self) -> int:
        """How many artifacts were read whole, as documents."""
        return sum(artifact.document for artifact in self.artifacts)

    @property
    def waived(self) -> int:
        """How many findings were waived."""
        return sum(len(waiver.findings) for waiver in self.waivers)

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
        settings = (
            {"settings": {"path": self.settings, "digest": self.settings_digest}}
            if self.settings
            else {}
        )
        return {
            "verdict": self.verdict,
            "profile": self.profile,
            "rows": self.rows,
            "documents": self.documents,
            "checks": self.checks,
            "waived": self.waived,
            "findings": [finding.to_dict() for finding in self.findings],
            "waivers": [waiver.to_dict() for waiver in self.waivers],
            "severity_changes": [change.to_dict() for change in self.severity_changes],
            "artifacts": [artifact.to_dict() for artifact in self.artifacts],
            "bytes": self.bytes,
            "columns": self.columns,
            "rules": [rule.to_dict() for rule in self.rules],
            "engines": dict(self.engines),
            "profile_digest": self.profile_digest,
            **settings,
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
