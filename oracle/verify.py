"""Verifies contracts: opens a session for each, runs its lanes, and sums up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from trueup.oracle.backends.base import Backend
from trueup.oracle.backends.choose import choose
from trueup.oracle.contract import Contract
from trueup.oracle.errors import BackendUnavailable, OracleError
from trueup.oracle.evidence import digests, environment
from trueup.oracle.lanes.registry import LANES, applicable, case_ids, run_lane
from trueup.oracle.lanes.tally import MOST_FAILING_CASES
from trueup.oracle.lanes.tally import skipped as skipped_lane
from trueup.oracle.session import Session
from trueup.oracle.verdict import (
    ContractVerdict,
    Finding,
    LaneVerdict,
    Outcome,
    Skip,
    Verification,
)

__all__ = ["LANES", "Progress", "applicable_lanes", "case_ids", "open_session", "verify"]


@dataclass(frozen=True)
class Progress:
    """What runs now: the case `done` of `total` of one lane of one contract."""

    contract: str
    lane: str
    case: str
    done: int
    total: int


def applicable_lanes(contract: Contract, backend: str) -> list[str]:
    """List the lanes that apply to a contract on a backend."""
    return applicable(contract, backend)


@dataclass
class OpenSession:
    """A contract ready to be run lane by lane on one backend."""

    session: Session

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

        return run_lane(self.session, lane, case, seed, on_case, stop_after)


def open_session(contract: Contract, backend: str | Backend = "auto") -> OpenSession:
    """Compile a contract's kernel on a backend and resolve its reference.

    Raises ContractError, CompileError or BackendUnavailable.
    """
    chosen = choose(backend, contract.backends) if isinstance(backend, str) else backend
    return OpenSession(Session.open(contract, chosen))


def verify(
    contracts: Sequence[Contract],
    backend: str = "auto",
    lanes: Sequence[str] | None = None,
    case: str | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Verification:
    """Run the lanes of every contract and sum up.

    A contract that cannot be judged becomes an error message of the result, and the others are
    still judged. Raises OracleError for an unknown lane or an empty list of contracts, and
    BackendUnavailable where the backend asked for cannot run on this machine at all.
    """
    _check(contracts, lanes)
    verdicts: list[ContractVerdict] = []
    skipped: list[Skip] = []
    errors: list[str] = []
    hung = False
    for contract in contracts:
        if hung:
            skipped.append(
                Skip(contract.id, None, "an earlier kernel did not give back the device")
            )
            continue
        if backend not in ("auto", *contract.backends):
            skipped.append(Skip(contract.id, None, f"the contract does not run on {backend}"))
            continue
        try:
            verdict, hung = _one(contract, backend, lanes, case, seed, progress)
        except BackendUnavailable:
            if len(contracts) == 1 or backend != "auto":
                raise
            errors.append(_unavailable(contract, backend))
            continue
        except OracleError as error:
            errors.append(error.message())
            continue
        verdicts.append(verdict)
        skipped += [
            Skip(contract.id, lane.lane, lane.reason or "")
            for lane in verdict.lanes
            if lane.verdict is Outcome.SKIPPED
        ]
    names = list(dict.fromkeys(v.backend for v in verdicts))
    return Verification(
        _sum([v.verdict for v in verdicts], errors),
        "+".join(names) or backend,
        tuple(verdicts),
        tuple(skipped),
        tuple(errors),
        environment(),
        hung,
    )


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


def _unavailable(contract: Contract, backend: str) -> str:
    try:
        choose(backend, contract.backends)
    except BackendUnavailable as error:
        return f"{contract.id}: {error.message()}"
    return f"{contract.id}: no backend"


def _one(
    contract: Contract,
    backend: str,
    lanes: Sequence[str] | None,
    case: str | None,
    seed: int,
    progress: Callable[[Progress], None] | None,
) -> tuple[ContractVerdict, bool]:
    """Judge one contract; also say whether its kernel took the device away for good."""
    started = perf_counter()
    opened = open_session(contract, backend)
    wanted = [
        lane for lane in applicable(contract, opened.backend.name) if lanes is None or lane in lanes
    ]
    if not wanted:
        raise OracleError(
            f"none of the lanes {', '.join(lanes or ())} applies on {opened.backend.name}",
            where=contract.id,
        )
    results = tuple(_lane(opened, lane, case, seed, progress) for lane in wanted)
    findings = () if case is not None else minimums(contract, results)
    outcomes = [result.verdict for result in results] + [Outcome.FAIL] * bool(findings)
    verdict = ContractVerdict(
        id=contract.id,
        verdict=_sum(outcomes, ()),
        reading=opened.session.reference.reading,
        backend=opened.backend.name,
        device=opened.backend.device,
        lanes=results,
        path=str(contract.path),
        digests=digests(opened.session),
        findings=findings,
        seconds=perf_counter() - started,
    )
    return verdict, _hung(opened)


def _hung(opened: OpenSession) -> bool:
    return bool(getattr(opened.backend, "hung", False))


def _lane(
    opened: OpenSession,
    lane: str,
    case: str | None,
    seed: int,
    progress: Callable[[Progress], None] | None,
) -> LaneVerdict:
    if _hung(opened):
        return skipped_lane(lane, "an earlier launch of this kernel did not give back the device")
    return opened.run(lane, case, seed, progress)


def minimums(contract: Contract, lanes: Sequence[LaneVerdict]) -> tuple[Finding, ...]:
    """Hold the numeric lane's counts against what the contract demands at least."""
    found = []
    for lane in lanes:
        if lane.lane != "numeric" or lane.verdict is Outcome.FAIL:
            continue
        for what, got, least in (
            ("cases", lane.cases, contract.minimum_cases),
            ("elements", lane.elements, contract.minimum_elements),
        ):
            if got < least:
                found.append(
                    Finding(
                        f"minimum.{what}",
                        "error",
                        contract.id,
                        str(contract.path),
                        f"{got} {what} judged",
                        f"at least {least}",
                        "too little was checked to call it verified: widen [contract] limits, "
                        "or correct `minimum`",
                    )
                )
    return tuple(found)


def _sum(outcomes: Sequence[Outcome], errors: Sequence[str]) -> Outcome:
    """FAIL beats INCONCLUSIVE beats PASS; nothing judged, or an error, is no pass."""
    judged = [outcome for outcome in outcomes if outcome is not Outcome.SKIPPED]
    if Outcome.FAIL in judged:
        return Outcome.FAIL
    if Outcome.INCONCLUSIVE in judged or errors or not judged:
        return Outcome.INCONCLUSIVE
    return Outcome.PASS
