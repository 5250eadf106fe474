"""Which reading of the equation does a failing kernel follow?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trueup.oracle.backends.base import AnyArray
from trueup.oracle.bounds import judge_confirmed
from trueup.oracle.bounds.judge import COHERENT
from trueup.oracle.inputs import Draw
from trueup.oracle.inputs.draw import widened
from trueup.oracle.lanes.tally import Tally
from trueup.oracle.memory import written_mask
from trueup.oracle.session import Session
from trueup.reference import NotApplicable

# Failing cases that a reading must fit, all of them, to be named.
CASES = 4
# A form that fits none is named as the nearest where it is that many times nearer than the
# declared one: below, the ratios differ by what rounding allows each of them.
_NEARER = 10.0


@dataclass(frozen=True)
class Matches:
    """The other forms that explain every failing case; if none does, the nearest one."""

    names: tuple[str, ...] = ()
    nearest: str | None = None
    ratio: float = 0.0  # error/allowed of the nearest, in the first of the cases


Failed = Sequence[tuple[Draw, Sequence[AnyArray]]]
"""Failing cases, and what the kernel computed in them."""


def name_reading(session: Session, tally: Tally, failed: Failed) -> None:
    """Add to a lane's findings which other reading explains its failing cases, largest first."""
    by_size = sorted(failed, key=lambda pair: -min(np.size(output) for output in pair[1]))
    matches = matching_readings(session, by_size)
    declared = session.reference.reading
    if matches.nearest is not None:
        tally.notes[
            f"no other known form explains the failing cases; nearest: `{matches.nearest}`, "
            f"{matches.ratio:.3g} times the allowed error, ahead of the declared `{declared}`"
        ] = None
    if not matches.names:
        return
    names = " or ".join(f"`{name}`" for name in matches.names)
    text = f"the kernel matches {names}, the contract declares `{declared}`"
    tally.findings = [replace(f, fix=f"{text}; {f.fix}") for f in tally.findings]
    tally.matches = matches.names
    tally.notes[text] = None


def matching_readings(session: Session, failed: Failed) -> Matches:
    """Name the readings and known wrong variants that explain every failing case given.

    The nearest is named where it is much nearer to the first case than the declared reading is.
    """
    if not failed:
        return Matches()
    (draw, outputs), *more = list(failed)[:CASES]
    found = {name: case_ratio(session, name, draw, outputs) for name in session.reference.others()}
    ratios = {name: ratio for name, ratio in found.items() if ratio is not None}
    names = [name for name, ratio in ratios.items() if ratio <= 1]
    for draw, outputs in more:
        names = [name for name in names if _fits(session, name, draw, outputs)]
    if names or not ratios:
        return Matches(tuple(names))
    nearest = min(ratios, key=lambda name: ratios[name])
    declared = case_ratio(session, session.reference.reading, *failed[0])
    better = declared is not None and _NEARER * ratios[nearest] < declared
    return Matches((), nearest, ratios[nearest]) if better else Matches()


def _fits(session: Session, name: str, draw: Draw, outputs: Sequence[AnyArray]) -> bool:
    ratio = case_ratio(session, name, draw, outputs)
    return ratio is not None and ratio <= 1


def case_ratio(
    session: Session, name: str, draw: Draw, outputs: Sequence[AnyArray]
) -> float | None:
    """Give the largest error/allowed of one form in one case, None where it has no meaning.

    At 1 or less the form fits: no element tells it from what the kernel computed.
    """
    reading = None if name == session.reference.reading else name
    try:
        with np.errstate(all="ignore"):
            evaluator = session.evaluator(draw, reading)
            judgements = judge_confirmed(evaluator, [widened(np.asarray(o)) for o in outputs])
    except NotApplicable:
        return None
    worst = 0.0
    for judgement, arg in zip(judgements, session.contract.outputs, strict=True):
        mask = written_mask(arg, draw.case.axes)
        judged = mask & ~judgement.not_judged
        worst = max(worst, float(np.max(judgement.ratio[judged], initial=0.0)))
        if mask.all():  # an error that all elements share shows in their sum alone
            worst = max(
                worst, judgement.coherent / COHERENT if judgement.coherent > COHERENT else 0
            )
    return worst
