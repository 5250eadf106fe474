"""Compares two runs that should agree: bit for bit, or within bounds where that is declared."""

from __future__ import annotations

from trueup.oracle.backends.base import RunResult
from trueup.oracle.inputs import Draw
from trueup.oracle.lanes.judging import judged, shown_number
from trueup.oracle.lanes.tally import Tally, element, first
from trueup.oracle.memory import same_bits, written_mask
from trueup.oracle.session import Session


def agree(
    session: Session,
    tally: Tally,
    draw: Draw,
    kind: str,
    what: str,
    runs: tuple[RunResult, RunResult],
    fix: str,
) -> bool:
    """Report the first output element in which two runs differ.

    A contract with `determinism = "tolerance"` promises no equal bits; then the second run is
    judged against its bounds instead.
    """
    reference, other = runs
    if session.contract.determinism == "tolerance":
        return judged(session, tally, draw, other, kind)
    for arg in session.contract.outputs:
        a, b = reference.buffers[arg.name], other.buffers[arg.name]
        mask = written_mask(arg, draw.case.axes)
        tally.elements += int(mask.sum())
        differ = ~same_bits(a, b) & mask
        if differ.any():
            index = first(differ)
            tally.find(
                kind,
                draw,
                element(arg.name, index),
                f"{shown_number(b[index])} {what}; {int(differ.sum())} of {differ.size} differ",
                f'{shown_number(a[index])}, bit for bit (determinism = "bitwise")',
                fix,
            )
            return False
    return True
