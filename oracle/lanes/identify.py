"""Which reading of the equation does a failing kernel follow?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup.oracle.backends.base import AnyArray
from trueup.oracle.bounds import judge
from trueup.oracle.inputs import Draw
from trueup.oracle.inputs.draw import widened
from trueup.oracle.lanes.judging import failing
from trueup.oracle.session import Session
from trueup.reference import NotApplicable

# Failing cases that a reading must fit, all of them, to be named.
CASES = 4


def matching_readings(
    session: Session, failed: Sequence[tuple[Draw, Sequence[AnyArray]]]
) -> list[str]:
    """Name the readings and known wrong variants that explain every failing case given."""
    names = [name for name in session.reference.others()]
    for draw, outputs in list(failed)[:CASES]:
        names = [name for name in names if _fits(session, name, draw, outputs)]
    return names if failed else []


def _fits(session: Session, name: str, draw: Draw, outputs: Sequence[AnyArray]) -> bool:
    try:
        with np.errstate(all="ignore"):
            evaluation = session.evaluator(draw, name).evaluation()
    except NotApplicable:
        return False
    judgements = judge(evaluation, [widened(np.asarray(o)) for o in outputs])
    return not any(
        failing(session, draw, j, arg).any()
        for j, arg in zip(judgements, session.contract.outputs, strict=True)
    )
