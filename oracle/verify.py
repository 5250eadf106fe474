"""Verifies contracts: opens a session for each, runs its lanes, and sums up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from trueup.oracle.backends.base import Backend
from trueup.oracle.backends.choose import choose
from trueup.oracle.contract import Contract
from trueup.oracle.errors import OracleError
from trueup.oracle.evidence import digests, environment
from trueup.oracle.isolate import isolated, many
from trueup.oracle.lanes.registry import LANES, applicable, case_ids, run_lane
from trueup.oracle.lanes.tally import MOST_FAILING_CASES
from trueup.oracle.lanes.tally import skipped as skipped_lane
from trueup.oracle.minimums import minimums
from trueup.oracle.session import Session
from trueup.oracle.verdict import (
    ContractVerdict,
    Judged,
    LaneVerdict,
    Outcome,
    Skip,
    Verification,
)

TIME_LIMIT = 20.0  # seconds; a case takes milliseconds

__all__ = [
    "LANES",
    "Progress",
    "Task",
    "applicable_lanes",
    "case_ids",
    "minimums",
    "open_session",
    "verify",
]


@dataclass(frozen=True)
class Progress:
    """What runs now: the case `done` of `total` of one lane of one contract.

    Where several contracts run at once there is no such thing; then an event comes after each
    contract, with an empty lane and case.
    """

    contract: str
    lane: str
    case: str
    done: int
    total: int


@dataclass(frozen=True)
class Task:
    """How contracts are to be verified."""

    backend: str = "auto"
    lanes: tuple[str, ...] | None = None
    case: str | None = None
    seed: int = 0
    time_limit: float = TIME_LIMIT


def applicable_lanes(contract: Contract, backend: str) -> list[str]:
    """List the lanes that apply to a contract on a backend."""
    return applicable(contract, backend)


@dataclass
class OpenSession:
    """A contract ready to be run lane by lane on one backend."""

    session: Session
    hung: bool = False  # a launch met the time limit

    @property
    def backend(self) -> Backend:
        """Where the kernel runs."""
        return self.session.backend

    @property
    def contract(self) -> Contract:
        """What is verified."""
        return self.session.contract

    def cases(self, lane: str) -> list[str]:
        """List the ids of a lane's cases."""
        return case_ids(self.session, lane)

    def lost(self) -> bool:
        """Whether a kernel took the device away from this process, by a crash or for good."""
        return any(getattr(self.backend, name, None) for name in ("hung", "dead"))

    def run(
        self,
        lane: str,
        case: str | None = None,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
        stop_after: int = MOST_FAILING_CASES,
    ) -> LaneVerdict:
        """Run one lane, over all its cases or over one. Raises OracleError for a bad case id."""

        def on_case(name: str, done: int, total: int) -> None:
            if progress is not None:
                progress(Progress(self.contract.id, lane, name, done, total))

        if self.hung:
            return skipped_lane(lane, "an earlier launch of this kernel did not return in time")
        if self.lost():
            return skipped_lane(lane, "an earlier launch of this kernel took the device away")
        verdict = run_lane(self.session, lane, case, seed, on_case, stop_after)
        self.hung = any(f.rule.endswith(".time_limit") for f in verdict.findings)
        return verdict


def open_session(
    contract: Contract, backend: str | Backend = "auto", time_limit: float = TIME_LIMIT
) -> OpenSession:
    """Compile a contract's kernel on a backend and resolve its reference.

    `time_limit` is what the launches of one run may take, in seconds. Raises ContractError,
    CompileError or BackendUnavailable.
    """
    chosen = choose(backend, contract.backends) if isinstance(backend, str) else backend
    session = Session.open(contract, chosen)
    session.time_limit = time_limit
    return OpenSession(session)


def verify(
    contracts: Sequence[Contract],
    backend: str = "auto",
    lanes: Sequence[str] | None = None,
    case: str | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    jobs: int = 1,
    time_limit: float = TIME_LIMIT,
) -> Verification:
    """Run the lanes of every contract and sum up.

    A contract that cannot be judged becomes an error message of the result, and the others are
    still judged. With `jobs` above 1 that many contracts run at once, each in a process of its
    own; a contract after one that lost the device always does. Raises OracleError for an unknown
    lane, two contracts of one id, or an empty list of contracts.
    """
    _check(contracts, lanes)
    task = Task(backend, None if lanes is None else tuple(lanes), case, seed, time_limit)
    wanted = [c for c in contracts if backend in ("auto", *c.backends)]
    skipped = [
        Skip(c.id, None, f"the contract does not run on {backend}")
        for c in contracts
        if c not in wanted
    ]
    if jobs > 1 and len(wanted) > 1:
        results = many(wanted, task, jobs, _told(progress, len(wanted)))
    else:
        results = []
        for contract in wanted:
            lost = any(result.lost for result in results)
            results.append(isolated(contract, task) if lost else judge(contract, task, progress))
    skipped += [
        Skip(c.id, None, f"declared aliasing of {a} and {b} is not checked: no lane does it yet")
        for c in wanted
        for a, b in c.alias
    ]
    return _sum_up(task, results, skipped)


def judge(
    contract: Contract, task: Task, progress: Callable[[Progress], None] | None = None
) -> Judged:
    """Judge one contract; what prevents a judgement becomes a message."""
    started = perf_counter()
    try:
        opened = open_session(contract, task.backend, task.time_limit)
        names = [
            lane
            for lane in applicable(contract, opened.backend.name)
            if task.lanes is None or lane in task.lanes
        ]
        if not names:
            raise OracleError(
                f"none of the lanes {', '.join(task.lanes or ())} applies on {opened.backend.name}",
                where=contract.id,
            )
        lanes = tuple(opened.run(name, task.case, task.seed, progress) for name in names)
    except OracleError as error:
        return Judged(contract.id, error=f"{contract.id}: {error.message()}")
    except SystemExit:
        message = "its reference or its kernel left the process by sys.exit; remove the call"
        return Judged(contract.id, error=f"{contract.id}: {message}")
    findings = () if task.case is not None else minimums(contract, lanes)
    verdict = ContractVerdict(
        id=contract.id,
        verdict=_sum([r.verdict for r in lanes] + [Outcome.FAIL] * bool(findings), ()),
        reading=opened.session.reference.reading,
        backend=opened.backend.name,
        device=opened.backend.device,
        lanes=lanes,
        path=str(contract.path),
        digests=digests(opened.session),
        findings=findings,
        seconds=perf_counter() - started,
    )
    hung = bool(getattr(opened.backend, "hung", False))
    return Judged(contract.id, verdict, lost=opened.lost(), hung=hung)


def _check(contracts: Sequence[Contract], lanes: Sequence[str] | None) -> None:
    if not contracts:
        raise OracleError("nothing to verify", expected="at least one contract")
    unknown = [lane for lane in lanes or () if lane not in LANES]
    if unknown:
        raise OracleError(
            f"no such lane: {', '.join(unknown)}", expected="one of " + ", ".join(LANES)
        )
    by_id: dict[str, Contract] = {}
    for contract in contracts:
        other = by_id.setdefault(contract.id, contract)
        if other is not contract:
            raise OracleError(
                "two contracts have the same id",
                where=str(contract.path),
                got=f"`{contract.id}`, as {other.path}",
                fix="give each contract an id of its own",
            )


def _told(
    progress: Callable[[Progress], None] | None, total: int
) -> Callable[[str, int], None] | None:
    if progress is None:
        return None
    return lambda contract, done: progress(Progress(contract, "", "", done, total))


def _sum_up(task: Task, results: Sequence[Judged], skipped: Sequence[Skip]) -> Verification:
    verdicts = tuple(result.verdict for result in results if result.verdict is not None)
    errors = tuple(result.error for result in results if result.error is not None)
    lanes = [
        Skip(verdict.id, lane.lane, lane.reason or "")
        for verdict in verdicts
        for lane in verdict.lanes
        if lane.verdict is Outcome.SKIPPED
    ]
    return Verification(
        _sum([verdict.verdict for verdict in verdicts], errors),
        "+".join(dict.fromkeys(verdict.backend for verdict in verdicts)) or task.backend,
        verdicts,
        (*skipped, *lanes),
        errors,
        environment(),
        any(result.hung for result in results),
        {
            "backend": task.backend,
            "lanes": None if task.lanes is None else list(task.lanes),
            "case": task.case,
            "seed": task.seed,
        },
    )


def _sum(outcomes: Sequence[Outcome], errors: Sequence[str]) -> Outcome:
    """FAIL beats INCONCLUSIVE beats PASS; nothing judged, or an error, is no pass."""
    judged = [outcome for outcome in outcomes if outcome is not Outcome.SKIPPED]
    if Outcome.FAIL in judged:
        return Outcome.FAIL
    if Outcome.INCONCLUSIVE in judged or errors or not judged:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS
