"""The lanes by name, and which of them apply where."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from threadpoolctl import ThreadpoolController

from trueup.oracle.contract import Contract
from trueup.oracle.errors import BackendUnavailable
from trueup.oracle.inputs import parse_case
from trueup.oracle.lanes import canary, exact, numeric, order, poison, repeat, special
from trueup.oracle.lanes.tally import MOST_FAILING_CASES, Tally
from trueup.oracle.session import Session
from trueup.oracle.verdict import LaneVerdict

_MODULES: dict[str, ModuleType] = {
    "numeric": numeric,
    "exact": exact,
    "special": special,
    "poison": poison,
    "canary": canary,
    "repeat": repeat,
    "order": order,
}
LANES = tuple(_MODULES)


def applicable(contract: Contract, backend: str) -> list[str]:
    """List the lanes that apply to a contract on a backend.

    Thread orders can be chosen on the host only; the other lanes run everywhere.
    """
    return [lane for lane in LANES if lane != "order" or backend == "host"]


def case_ids(session: Session, lane: str) -> list[str]:
    """List the ids of a lane's cases."""
    return [case.id for case in _MODULES[lane].cases(session)]


def run_lane(
    session: Session,
    lane: str,
    case: str | None = None,
    seed: int = 0,
    on_case: Callable[[str, int, int], None] | None = None,
    stop_after: int = MOST_FAILING_CASES,
) -> LaneVerdict:
    """Run one lane over its cases, or over the one case named.

    `on_case` is told each case's id, its number and how many there are; after `stop_after` failing
    cases the lane ends. Raises OracleError for a malformed case id.
    """
    module = _MODULES[lane]
    if case is None:
        picked = module.cases(session)
    else:
        picked = [parse_case(session.contract, session.reference, case)]
    done = 0

    def begin(name: str) -> None:
        nonlocal done
        done += 1
        if on_case is not None:
            on_case(name, done, len(picked))

    tally = Tally(lane, session.contract.id, begin, stop_after)
    try:
        with one_blas_thread():
            verdict: LaneVerdict = module.run(session, picked, seed, tally)
    except BackendUnavailable:
        if not tally.findings:
            raise
        tally.notes["the lane ended early: the kernel took the device away"] = None
        verdict = tally.verdict()
    return verdict


def one_blas_thread() -> Any:
    """Keep BLAS to one thread: products here are small, and threads only wait for one another."""
    return _pools().limit(limits=1, user_api="blas")


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
