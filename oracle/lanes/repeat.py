"""repeat: the same launch again, and again over a workspace that the last one left dirty."""

from __future__ import annotations

from trueup.oracle.backends.base import RunOptions
from trueup.oracle.inputs import Case, draw, few_cases
from trueup.oracle.lanes.same import agree
from trueup.oracle.lanes.tally import Tally
from trueup.oracle.session import Session
from trueup.oracle.verdict import LaneVerdict

LAUNCHES = 3


def cases(session: Session) -> list[Case]:
    """A few boundary sizes."""
    return few_cases(session.contract)


def run(session: Session, picked: list[Case], seed: int, tally: Tally) -> LaneVerdict:
    """Compare repeated runs, then a run on dirty memory, with the first."""
    for case in picked:
        if tally.enough():
            break
        tally.begin(case.id)
        inputs = draw(session.contract, session.reference, case, seed)
        first = session.run(inputs, RunOptions())
        tally.cases += 1
        if not tally.ran(first, inputs):
            continue
        for _ in range(LAUNCHES - 1):
            again = session.run(inputs, RunOptions())
            if not tally.ran(again, inputs) or not agree(
                session,
                tally,
                inputs,
                "repeat",
                "on a second launch",
                (first, again),
                "the result depends on the order in which threads run; sum in a fixed order",
            ):
                break
        dirty = {
            arg.name: first.buffers[arg.name]
            for arg in session.contract.with_role("workspace", "out")
        }
        if not dirty:
            continue
        over = session.run(inputs, RunOptions(dirty=dirty))
        if tally.ran(over, inputs):
            agree(
                session,
                tally,
                inputs,
                "dirty",
                "over the last launch's workspace",
                (first, over),
                "the kernel adds to memory it should first set",
            )
    return tally.verdict()
