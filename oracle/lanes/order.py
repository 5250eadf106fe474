"""order: the order of threads and blocks is an input: natural, reversed, random.

A correct kernel gives the same bits in every order. A missing barrier, or a sum whose order
depends on scheduling, shows as a result that changes with the seed of the order.
"""

from __future__ import annotations

from trueup.oracle.backends.base import RunOptions
from trueup.oracle.inputs import Case, draw, few_cases, long_cases
from trueup.oracle.lanes.same import agree
from trueup.oracle.lanes.tally import Tally
from trueup.oracle.session import Session
from trueup.oracle.verdict import LaneVerdict

# 1 is reversed; every larger number seeds a random order. A racy kernel may give equal
# natural and reversed results, so random orders are not optional.
ORDERS = (1, 2, 3, 4, 5)
# Where one run takes a second: an odd seed lets single warps run ahead of all the others.
LONG_ORDERS = (3,)


def cases(session: Session) -> list[Case]:
    """A few boundary sizes, and the long ones, where loops over the grid take further turns."""
    return [*few_cases(session.contract), *long_cases(session.contract)]


def run(session: Session, picked: list[Case], seed: int, tally: Tally) -> LaneVerdict:
    """Run each case in every order and compare with the natural one."""
    long = long_cases(session.contract)
    for case in picked:
        if tally.enough():
            break
        tally.begin(case.id)
        inputs = draw(session.contract, session.reference, case, seed)
        natural = session.run(inputs, RunOptions())
        tally.cases += 1
        if not tally.ran(natural, inputs):
            continue
        for order in LONG_ORDERS if case in long else ORDERS:
            other = session.run(inputs, RunOptions(order=order))
            if not tally.ran(other, inputs) or not agree(
                session,
                tally,
                inputs,
                "order",
                f"in thread order {order}",
                (natural, other),
                "a barrier is missing, or a sum takes its order from the scheduler",
            ):
                break
    return tally.verdict()
