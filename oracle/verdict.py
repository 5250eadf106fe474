"""The shape of a judgement: findings, lane verdicts, contract verdicts, a whole verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What a lane, a contract or a whole verification came to."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True)
class Finding:
    """One thing found: the same fields as a gate's finding, so that reports treat both alike."""

    rule: str  # the lane, and the kind within it: "numeric.bound", "canary.guard"
    severity: str  # "error" | "warning"
    artifact: str  # the contract's id
    where: str  # output and element, or source line, block and thread
    got: str
    expected: str
    fix: str
    case: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Worst:
    """The element nearest to (or furthest beyond) its bound."""

    ratio: float
    where: str
    error: float
    allowed: float
    case: str


@dataclass(frozen=True)
class CaseScore:
    """One case of the numeric lane, for plots: its worst ratio and the quantiles of the rest."""

    case: str
    family: str
    ratio: float
    quantiles: tuple[float, ...] = ()  # of error/allowed at 0, 25, 50, 75, 100 per cent


@dataclass(frozen=True)
class LaneVerdict:
    """What one lane found over all its cases."""

    lane: str
    verdict: Outcome
    cases: int = 0
    elements: int = 0
    launches: int = 0
    worst: Worst | None = None
    findings: tuple[Finding, ...] = ()
    reason: str | None = None  # why SKIPPED or INCONCLUSIVE
    scores: tuple[CaseScore, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    matches: tuple[str, ...] = ()  # other forms of the equation that explain every failing case


@dataclass(frozen=True)
class ContractVerdict:
    """All lanes of one contract on one backend."""

    id: str
    verdict: Outcome
    reading: str
    backend: str
    device: str
    lanes: tuple[LaneVerdict, ...]
    path: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()  # not of one lane: minimums not reached
    seconds: float = 0.0


@dataclass(frozen=True)
class Judged:
    """What came of one contract: a verdict, or a message why there is none."""

    contract: str
    verdict: ContractVerdict | None = None
    error: str | None = None
    lost: bool = False  # the kernel took the device away from this process
    hung: bool = False  # and still runs on it


@dataclass(frozen=True)
class Skip:
    """A contract or lane that was not run, and why; always counted, never a pass."""

    contract: str
    lane: str | None
    reason: str


@dataclass(frozen=True)
class Verification:
    """Everything one `verify` did."""

    verdict: Outcome
    backend: str
    contracts: tuple[ContractVerdict, ...]
    skipped: tuple[Skip, ...] = ()
    errors: tuple[str, ...] = ()  # contracts that could not be judged, as messages
    environment: Mapping[str, Any] = field(default_factory=dict)
    hung: bool = False  # a kernel never came back: only leaving the process ends it
    # What was asked for: backend, lanes (None: all that apply), case (None: all), seed.
    scope: Mapping[str, Any] = field(default_factory=dict)
