"""Groups the findings of a gate for people: by rule, and keys that differ only in numbers as one.

48 layers with the same fault are one thing to read and one to repair. JSON and SARIF keep them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trueup.render.clean import one_line
from trueup.render.counts import plural
from trueup.render.findings import headline_place

if TYPE_CHECKING:
    from trueup.gates.findings import Finding

EXAMPLES = 3  # further places that a group shows beside its first


@dataclass(frozen=True)
class Place:
    """Findings of one rule whose artifacts and keys are alike but for numbers."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The finding that is shown for all of them."""
        return self.findings[0]

    @property
    def count(self) -> int:
        """How often the rule was broken."""
        return sum(finding.count for finding in self.findings)

    @property
    def steps(self) -> tuple[int, int] | None:
        """The first and last step of any of them."""
        found = [one.where.steps for one in self.findings if one.where.steps is not None]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else None

    def where(self) -> str:
        """The first place, as editors and terminals can follow it."""
        return headline_place(self.first)

    def extent(self, quote: Callable[[str], str] = one_line) -> str:
        """How many keys, artifacts and occurrences, over which steps; empty for a single one."""
        if len(self.findings) == 1 and self.count == 1:
            return ""
        keys = {one.where.key for one in self.findings}
        artifacts = {one.artifact for one in self.findings}
        said = []
        if len(keys) > 1:
            like = quote(shape(self.first.where.key or ""))
            said.append(f"{plural(len(keys), 'key')} like {like}")
        if len(artifacts) > 1:
            like = quote(shape(self.first.artifact))
            said.append(f"{plural(len(artifacts), 'artifact')} like {like}")
        if self.count > 1:
            said.append(f"{self.count:,} times")
        if self.steps is not None and len(self.findings) > 1 and self.steps[0] != self.steps[1]:
            said.append(f"steps {self.steps[0]}..{self.steps[1]}")
        return ", ".join(said)

    def further(self, limit: int = EXAMPLES) -> list[str]:
        """A few more places with what was found there."""
        alone = len(self.findings) == 1
        if alone:
            return [
                one_line(f"{one.where}: {one.got}" if str(one.where) else one.got)
                for one in self.first.examples[1 : limit + 1]
            ]
        return [one_line(f"{one.where}: {one.got}") for one in self.findings[1 : limit + 1]]


@dataclass(frozen=True)
class Group:
    """All findings of one rule with one severity."""

    rule: str
    severity: str
    severity_was: str | None
    summary: str
    expected: str
    fix: str
    places: tuple[Place, ...]

    @property
    def count(self) -> int:
        """How often the rule was broken."""
        return sum(place.count for place in self.places)

    @property
    def findings(self) -> int:
        """How many findings there are, each at a key of an artifact."""
        return sum(len(place.findings) for place in self.places)

    def title(self) -> str:
        """Rule, severity and what is wrong, in one line."""
        was = f", {self.severity_was} by the profile" if self.severity_was else ""
        summary = f": {self.summary}" if self.summary else ""
        return one_line(f"{self.rule} {self.severity}{was}{summary}")


def shape(text: str) -> str:
    """A key or path with its numbers as `*`."""
    return re.sub(r"[0-9]+", "*", text)


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """The groups in the order in which their first findings stand."""
    rules: dict[tuple[str, str], dict[tuple[str, str | None], list[Finding]]] = {}
    for one in findings:
        key = one.where.key
        places = rules.setdefault((one.rule, one.severity), {})
        alike = (shape(one.artifact), None if key is None else shape(key))
        places.setdefault(alike, []).append(one)
    out = []
    for (rule, severity), places in rules.items():
        kept = tuple(Place(tuple(each)) for each in places.values())
        first = kept[0].first
        out.append(
            Group(
                rule, severity, first.severity_was, first.summary, first.expected, first.fix, kept
            )
        )
    return out
