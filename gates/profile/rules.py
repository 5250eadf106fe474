"""What a profile is made of once loaded: plain frozen data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.gates.findings import Severity
from trueup.gates.read.nesting import Nesting

Scope = Literal["step", "config", "all"]


@dataclass(frozen=True, slots=True)
class When:
    """A rule applies only if the configuration rows say so."""

    key: str
    state: tuple[str, ...] = ()  # of "set", "null", "unrecorded"
    equals: Any = None
    also: tuple[When, ...] = ()  # further conditions, all of which must hold

    def holds(self, config: dict[str, Any]) -> bool:
        """Whether the rule applies under this configuration."""
        return self._holds(config) and all(other.holds(config) for other in self.also)

    def _holds(self, config: dict[str, Any]) -> bool:
        if not self.state:
            return self.key in config and bool(config[self.key] == self.equals)
        if self.key not in config:
            return "unrecorded" in self.state
        return ("null" if config[self.key] is None else "set") in self.state

    def __str__(self) -> str:
        """As part of a sentence: `applies when ...`."""
        return " and ".join([self._said(), *(str(other) for other in self.also)])

    def _said(self) -> str:
        if self.state:
            return f"{self.key} is {' or '.join(self.state)}"
        return f"{self.key} is {self.equals!r}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule on artifacts of the kind `on`.

    On a table it reads `keys`, or the columns that `pattern` matches in full; on a document what
    its check and parameters name. `passes` and `fails` are short examples.
    """

    id: str
    severity: Severity
    summary: str
    why: str
    expected: str
    fix: str
    check: str
    rows: Scope = "step"
    keys: tuple[str, ...] = ()
    pattern: str | None = None
    absent: Literal["fail", "skip"] = "fail"
    when: When | None = None
    params: dict[str, Any] = field(default_factory=dict)
    on: str = "telemetry"
    passes: str = ""
    fails: str = ""

    def names(self, columns: Iterable[str]) -> list[str]:
        """The plain column names this rule reads."""
        if self.pattern is None:
            return list(self.keys)
        match = re.compile(self.pattern, re.DOTALL).fullmatch
        return [name for name in columns if match(name)]


@dataclass(frozen=True, slots=True)
class ArtifactPattern:
    """Which files of a run directory are which kind of artifact."""

    kind: str
    patterns: tuple[str, ...]
    required: bool = False  # a run directory without one is a finding


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of rules, with what the reader must know."""

    id: str
    summary: str
    artifacts: tuple[ArtifactPattern, ...]
    rules: tuple[Rule, ...]
    digest: str
    step: str = "step"
    config_step: int = -1
    nullable: tuple[str, ...] = ()
    timestamps: tuple[str, ...] = ()  # anchored patterns of the keys that hold date-times
    nesting: Nesting = field(default_factory=Nesting)
    parts: tuple[str, ...] = ()  # the parts and profiles it includes

    def rules_on(self, kind: str) -> tuple[Rule, ...]:
        """The rules on artifacts of one kind."""
        return tuple(rule for rule in self.rules if rule.on == kind)
