"""poison: two different fills of outputs and workspace.

An element that still holds the fill was never written; an element that differs between the two
runs was computed from memory that nobody wrote. What the contract says stays unwritten must keep
what it held.
"""

from __future__ import annotations

import numpy as np

from trueup.oracle.backends.base import NAN_FILL, PLAIN_FILL, AnyArray, RunOptions, RunResult
from trueup.oracle.contract import Arg
from trueup.oracle.inputs import Case, Draw, all_sizes, draw
from trueup.oracle.lanes.tally import Tally, element, first
from trueup.oracle.memory import filled, same_bits, written_mask
from trueup.oracle.session import Session
from trueup.oracle.verdict import LaneVerdict


def cases(session: Session) -> list[Case]:
    """Every boundary size: tails go unwritten at some of them only."""
    return all_sizes(session.contract)


def run(session: Session, picked: list[Case], seed: int, tally: Tally) -> LaneVerdict:
    """Run each case under both fills and compare."""
    for case in picked:
        if tally.enough():
            break
        tally.begin(case.id)
        inputs = draw(session.contract, session.reference, case, seed)
        nan = session.run(inputs, RunOptions(fill=NAN_FILL))
        plain = session.run(inputs, RunOptions(fill=PLAIN_FILL))
        tally.cases += 1
        if not (tally.ran(nan, inputs) & tally.ran(plain, inputs)):
            continue
        for arg in session.contract.outputs:
            _compare(session, tally, inputs, arg, nan, plain)
    return tally.verdict()


def _compare(
    session: Session, tally: Tally, inputs: Draw, arg: Arg, nan: RunResult, plain: RunResult
) -> None:
    a, b = nan.buffers[arg.name], plain.buffers[arg.name]
    mask = written_mask(arg, inputs.case.axes)
    tally.elements += int(mask.sum())
    untouched = _untouched(arg, inputs, a, NAN_FILL) & _untouched(arg, inputs, b, PLAIN_FILL)
    if arg.role == "out" and (untouched & mask).any():
        index = first(untouched & mask)
        tally.find(
            "unwritten",
            inputs,
            element(arg.name, index),
            f"the fill; {int((untouched & mask).sum())} of {int(mask.sum())} elements unwritten",
            "a written element",
            "cover the ragged tail, or state in `written` what the kernel leaves alone",
        )
    if (~mask & ~untouched).any():
        index = first(~mask & ~untouched)
        tally.find(
            "overwritten",
            inputs,
            element(arg.name, index),
            "a changed element",
            "what was there: the contract's `written` leaves it out",
            "narrow the kernel's writes, or widen `written`",
        )
    if session.contract.determinism == "tolerance":
        return
    differ = ~same_bits(a, b) & mask & ~untouched
    if differ.any():
        index = first(differ)
        tally.find(
            "uninitialised",
            inputs,
            element(arg.name, index),
            f"{a[index]} under one fill, {b[index]} under another",
            "the same result whatever memory held before",
            "the kernel reads an output, workspace or shared memory before anyone wrote it",
        )


def _untouched(arg: Arg, inputs: Draw, array: AnyArray, fill: int) -> np.ndarray:
    if arg.role == "inout":
        return same_bits(array, np.asarray(inputs.native[arg.name]))
    return same_bits(array, filled(array.shape, array.dtype, fill))
