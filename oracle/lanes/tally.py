"""Counts what a lane did, keeps its worst element, and turns faults into findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.backends.base import Fault, RunResult
from trueup.oracle.inputs import Draw
from trueup.oracle.verdict import CaseScore, Finding, LaneVerdict, Outcome, Worst

# After this many findings, or failing cases, a lane has made its point and stops.
MOST_FINDINGS = 12
MOST_FAILING_CASES = 6

_FIX = {
    "crash": "the message says what happened: memory the kernel does not own (check guards and "
    "indices), a trap, or an exception of its own",
    "time limit": "the kernel does not return; check loop conditions and waits on other blocks",
    "deadlock": "every thread that takes part must reach the barrier; check branches around it",
    "divergent barrier": "move the barrier out of the branch, so that all threads reach the same",
    "undefined behaviour": "the C++ standard gives this no meaning; correct the expression",
    "out of bounds": "check the index against the array's extent",
    "guard overwritten": "the kernel writes outside this buffer; check the guard on the last block",
    "slot overwritten": "touch only the contract's slots, and copy no other word of the bus as a "
    "float: the last two are the fingerprint's bits",
    "input changed": "the kernel writes to an argument of role `in`; write elsewhere or declare it",
    "launch refused": "the device does not take this launch; check grid, block and shared memory",
    "misuse": "follow the expectation in the message",
}


@dataclass
class Tally:
    """Running totals of one lane."""

    lane: str
    contract: str
    on_case: Callable[[str], None] | None = None
    stop_after: int = MOST_FAILING_CASES
    cases: int = 0
    elements: int = 0
    launches: int = 0
    worst: Worst | None = None
    findings: list[Finding] = field(default_factory=list)
    more: int = 0
    scores: list[CaseScore] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    matches: tuple[str, ...] = ()  # other forms of the equation that explain the failing cases
    doubts: dict[str, None] = field(default_factory=dict)  # what makes the lane inconclusive
    started: float = field(default_factory=perf_counter)

    def begin(self, draw_id: str) -> None:
        """Tell the watcher which case runs now."""
        if self.on_case is not None:
            self.on_case(draw_id)

    def enough(self) -> bool:
        """Whether so much has failed that further cases would add nothing."""
        failing = {finding.case for finding in self.findings}
        if self.hung():
            self.notes["ended at the first launch that did not return"] = None
            return True
        if len(failing) < self.stop_after and len(self.findings) < MOST_FINDINGS:
            return False
        self.notes[f"stopped: {len(failing)} cases fail"] = None
        return True

    def hung(self) -> bool:
        """Whether a launch met the time limit: every further one would take as long."""
        return any(finding.rule.endswith(".time_limit") for finding in self.findings)

    def ran(self, result: RunResult, draw: Draw) -> bool:
        """Count a run's launches and report its faults; whether it went without any."""
        self.launches += result.launches
        for fault in result.faults:
            self._fault(fault, draw)
        return not result.faults

    def find(self, kind: str, draw: Draw, where: str, got: str, expected: str, fix: str) -> None:
        """Report one thing found in a case."""
        if len(self.findings) >= MOST_FINDINGS:
            self.more += 1
            return
        self.findings.append(
            Finding(
                f"{self.lane}.{kind}",
                "error",
                self.contract,
                where,
                got,
                expected,
                fix,
                draw.case.id,
                draw.seed,
            )
        )

    def weigh(self, worst: Worst) -> None:
        """Keep the worst element seen."""
        if self.worst is None or worst.ratio > self.worst.ratio:
            self.worst = worst

    def verdict(self, reason: str | None = None, inconclusive: bool = False) -> LaneVerdict:
        """Close the lane."""
        if self.more:
            self.notes[f"{self.more} further findings of this lane are not listed"] = None
        outcome = Outcome.PASS
        if inconclusive or self.doubts:
            outcome = Outcome.INCONCLUSIVE
            reason = "; ".join([*([reason] if reason else []), *self.doubts])
        if self.findings:
            outcome, reason = Outcome.FAIL, None
        elif self.cases == 0:
            outcome, reason = Outcome.FAIL, reason or "no case was run: nothing was checked"
        return LaneVerdict(
            self.lane,
            outcome,
            self.cases,
            self.elements,
            self.launches,
            self.worst,
            tuple(self.findings),
            reason,
            tuple(self.scores),
            tuple(self.notes),
            perf_counter() - self.started,
            self.matches,
        )

    def _fault(self, fault: Fault, draw: Draw) -> None:
        place = [fault.location] if fault.location else []
        place += [f"buffer {fault.buffer}"] if fault.buffer else []
        place += [f"block {fault.block}"] if fault.block else []
        place += [f"thread {fault.thread}"] if fault.thread else []
        self.find(
            fault.kind.replace(" ", "_"),
            draw,
            ", ".join(place) or "the launch",
            fault.message,
            "a launch without faults",
            _FIX[fault.kind],
        )


def skipped(lane: str, reason: str) -> LaneVerdict:
    """Return the verdict of a lane that cannot be run here; it counts as skipped, not passed."""
    return LaneVerdict(lane, Outcome.SKIPPED, reason=reason)


def element(name: str, index: tuple[int, ...]) -> str:
    """Name one element of an output."""
    return f"{name}[{', '.join(map(str, index))}]" if index else name


def first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first true element."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
