"""Groups what is found: one `Finding` for each rule, artifact and key, however often it occurs."""

from __future__ import annotations

from dataclasses import dataclass, field

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.findings import Example, Finding, Severity, Where
from trueup.gates.profile.rules import Rule
from trueup.gates.read.limits import Fault

EXAMPLES = 5
MAX_GROUPS = 2_000  # distinct keys a file can make us remember


@dataclass(slots=True)
class _Group:
    rule: str
    severity: Severity
    artifact: str
    key: str | None
    expected: str
    fix: str
    summary: str
    count: int = 0
    low: int | None = None
    high: int | None = None
    examples: list[Example] = field(default_factory=list)

    def finding(self) -> Finding:
        """The group as one finding, placed at its first occurrence."""
        first = self.examples[0]
        where = first.where
        if self.low is not None and self.high is not None:
            steps = (self.low, self.high)
            where = Where(where.line, where.byte, where.row, where.step, where.key, steps)
        return Finding(
            self.rule, self.severity, self.artifact, where, first.got, self.expected, self.fix,
            self.summary, self.count, tuple(self.examples),
        )  # fmt: skip


class Collector:
    """Takes occurrences, gives findings."""

    def __init__(self) -> None:
        """Start empty."""
        self._groups: dict[tuple[str, str, str | None], _Group] = {}

    def of_rule(
        self,
        rule: Rule,
        artifact: str,
        examples: list[Example],
        count: int = 1,
        steps: tuple[int, int] | None = None,
    ) -> None:
        """A rule of a profile was broken at the key of its first example."""
        self._add(
            (rule.id, rule.severity, artifact, examples[0].where.key, rule.expected, rule.fix,
             rule.summary), examples, count, steps,
        )  # fmt: skip

    def of_kind(self, name: str, artifact: str, where: Where, got: str, count: int = 1) -> None:
        """The reader or the gate itself found something."""
        kind = kinds()[name]
        steps = None if where.step is None else (where.step, where.step)
        self._add(
            (kind.id, kind.severity, artifact, where.key, kind.expected, kind.fix, kind.summary),
            [Example(where, got)], count, steps,
        )  # fmt: skip

    def of_fault(self, artifact: str, fault: Fault) -> None:
        """The reader found a fault of the text."""
        where = Where(fault.line, fault.byte, fault.row, fault.step, fault.key)
        self.of_kind(fault.kind, artifact, where, fault.got, fault.count)

    def _add(
        self,
        head: tuple[str, Severity, str, str | None, str, str, str],
        examples: list[Example],
        count: int,
        steps: tuple[int, int] | None,
    ) -> None:
        rule, _, artifact, key = head[:4]
        if (rule, artifact, key) not in self._groups and len(self._groups) >= MAX_GROUPS:
            key = None  # too many keys to tell apart: count them together
            head = (*head[:3], key, *head[4:])
        group = self._groups.setdefault((rule, artifact, key), _Group(*head))
        group.count += count
        group.examples.extend(examples[: EXAMPLES - len(group.examples)])
        if steps is not None:
            group.low = steps[0] if group.low is None else min(group.low, steps[0])
            group.high = steps[1] if group.high is None else max(group.high, steps[1])

    def findings(self) -> tuple[Finding, ...]:
        """Errors first; within a severity in the order they were found."""
        order = {"error": 0, "warning": 1, "note": 2}
        found = [group.finding() for group in self._groups.values()]
        return tuple(sorted(found, key=lambda finding: order[finding.severity]))
