"""numeric: boundary shapes and input families, each element within its derived bound."""

from __future__ import annotations

from trueup.oracle.backends.base import AnyArray, RunOptions
from trueup.oracle.contract import Contract
from trueup.oracle.inputs import Case, Draw, draw, numeric_cases
from trueup.oracle.lanes.identify import name_reading
from trueup.oracle.lanes.judging import judged
from trueup.oracle.lanes.power import Power, weigh
from trueup.oracle.lanes.tally import Tally
from trueup.oracle.session import Session
from trueup.oracle.verdict import CaseScore, LaneVerdict


def cases(session: Session) -> list[Case]:
    """Every boundary size, and every input family at several of them."""
    return numeric_cases(session.contract, session.reference)


def run(session: Session, picked: list[Case], seed: int, tally: Tally) -> LaneVerdict:
    """Run and judge the cases; name the reading a failing kernel follows."""
    power, weak, told = Power(), 0, 0
    failed: list[tuple[Draw, list[AnyArray]]] = []
    for case in picked:
        if tally.enough():
            break
        tally.begin(case.id)
        inputs = draw(session.contract, session.reference, case, seed)
        result = session.run(inputs, RunOptions())
        if not tally.ran(result, inputs):
            continue
        before, worst = tally.elements, tally.worst
        tally.worst = None
        good = judged(session, tally, inputs, result)
        strong = case.right_kernel_only or weigh(
            session, inputs, session.evaluator(inputs).evaluation(), power
        )
        told += strong and not case.right_kernel_only
        _score(tally, case)
        tally.worst = max(
            (w for w in (worst, tally.worst) if w is not None),
            key=lambda w: w.ratio,
            default=None,
        )
        if not good:
            failed.append((inputs, session.outputs(result)))
        if strong or not good:
            tally.cases += 1
        else:  # it judged nothing that could have failed, so it does not count
            weak += 1
            tally.elements = before
    if failed:
        name_reading(session, tally, failed)
    alone = all(case.right_kernel_only for case in picked)  # one such case, replayed
    return _close(session, tally, power, weak, len(picked), bool(told) or alone)


def _score(tally: Tally, case: Case) -> None:
    if tally.worst is not None:
        tally.scores.append(CaseScore(case.id, case.family, tally.worst.ratio))


def claims(contract: Contract) -> list[str]:
    """Say in words every claim of a contract that makes the checks ask less."""
    said = []
    precision = contract.precision
    for name in ("storage", "multiply", "accumulate", "compute"):
        value = getattr(precision, name)
        if value not in (None, "f32", "f64"):
            said.append(f"precision.{name} = {value}")
    said += [f"precision.stored.{name} = {fmt}" for name, fmt in precision.stored.items()]
    if precision.rounding != "nearest":
        said.append(f"rounding = {precision.rounding}")
    if precision.approximate:
        said.append(f"approximate = {', '.join(precision.approximate)}")
    if contract.determinism != "bitwise":
        said.append(f"determinism = {contract.determinism}")
    if contract.nan == "ignore":
        said.append("nan = ignore")
    for axis, limit in contract.limits.items():
        said.append(f"limits of {axis}: {limit}")
    for axis, largest in contract.tried.items():
        said.append(f"sizes of {axis} tried: up to {largest}")
    said += [f"only part of {arg.name} is written" for arg in contract.outputs if arg.written]
    return said


def _close(
    session: Session, tally: Tally, power: Power, weak: int, wanted: int, told: bool
) -> LaneVerdict:
    for claim in claims(session.contract):
        tally.notes[f"taken from the contract: {claim}"] = None
    if weak:
        tally.notes[
            f"{weak} of {wanted} cases cannot tell a plainly wrong output and do not count"
        ] = None
    same = power.never_different()
    if same and wanted > 1:
        tally.notes[f"never different on this contract's inputs: {', '.join(same)}"] = None
    blind = power.never_rejected()
    if blind and wanted > 1:
        return tally.verdict(
            "no case rejects " + ", ".join(blind) + "; add sizes, or an input family that tells "
            "them apart, to the reference",
            inconclusive=True,
        )
    if not told and not tally.findings:
        return tally.verdict("no case can tell a plainly wrong output", inconclusive=True)
    return tally.verdict()
