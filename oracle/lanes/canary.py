"""canary: guard zones around every buffer, unmapped pages beside it, inputs compared afterwards.

The backend reports what it sees as faults; this lane only chooses where buffers lie. An
out-of-bounds read that does not change the result is seen where an unmapped page stands next to
the buffer, which the host backend offers on either side.
"""

from __future__ import annotations

from typing import Any

from trueup.oracle.backends.base import PLAIN_FILL, RunOptions
from trueup.oracle.inputs import Case, all_sizes, draw
from trueup.oracle.lanes.tally import Tally
from trueup.oracle.session import Session
from trueup.oracle.verdict import LaneVerdict

_LONG = 4000


def cases(session: Session) -> list[Case]:
    """Every boundary size."""
    return all_sizes(session.contract)


def run(session: Session, picked: list[Case], seed: int, tally: Tally) -> LaneVerdict:
    """Run each case under every placement the backend offers."""
    for case in picked:
        if tally.enough():
            break
        tally.begin(case.id)
        inputs = draw(session.contract, session.reference, case, seed)
        for options in choices(session, case):
            result = session.run(inputs, options)
            if tally.ran(result, inputs):
                tally.elements += sum(int(b.size) for b in result.buffers.values())
        tally.cases += 1
    return tally.verdict()


def choices(session: Session, case: Case) -> list[RunOptions]:
    """Every placement, and guard zones of two patterns: one may be what the kernel writes.

    Where an axis is long only its end is new.
    """
    if max(case.axes.values(), default=1) > _LONG and "page_end" in session.placements:
        return [RunOptions(placement="page_end")]
    placements: Any = session.placements
    beside = [RunOptions(placement=placement) for placement in placements]
    return [*beside, RunOptions(fill=PLAIN_FILL)]
