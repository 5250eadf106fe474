"""Takes what an acceptance finds: faults of the texts, and kinds of its own with their bounds."""

from __future__ import annotations

from dataclasses import replace

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.collector import EXAMPLES, Collector
from trueup.gates.findings import Example, Finding, Where
from trueup.gates.read.limits import Fault

_MOST = 2_000  # findings of one acceptance that are told one by one


class Found:
    """Findings in the order they were found."""

    def __init__(self) -> None:
        """Start empty."""
        self._faults = Collector()
        self._own: dict[tuple[str, str, str, str], Finding] = {}

    def fault(self, artifact: str, fault: Fault) -> None:
        """A reader found a fault of the text."""
        self._faults.of_fault(artifact, fault)

    def add(
        self, kind: str, artifact: str, where: Where, got: str, expected: str = "",
        *, mild: bool = False,
    ) -> None:  # fmt: skip
        """Something of a kind in the catalogue; `expected` says it in this case's numbers.

        `mild`: the acceptance asks only to be told, so an error becomes a warning.
        """
        entry = kinds()[kind]
        key = (entry.id, artifact, str(where.key), got if len(self._own) < _MOST else "")
        known = self._own.get(key)
        if known is not None:
            examples = (*known.examples, Example(where, got))[:EXAMPLES]
            self._own[key] = replace(known, count=known.count + 1, examples=examples)
            return
        self._own[key] = Finding(
            entry.id, "warning" if mild and entry.severity == "error" else entry.severity,
            artifact, where, got, expected or entry.expected, entry.fix, entry.summary, 1,
            (Example(where, got),),
        )  # fmt: skip

    def findings(self) -> tuple[Finding, ...]:
        """Errors first; within a severity in the order they were found."""
        order = {"error": 0, "warning": 1, "note": 2}
        found = [*self._faults.findings(), *self._own.values()]
        return tuple(sorted(found, key=lambda finding: order[finding.severity]))
