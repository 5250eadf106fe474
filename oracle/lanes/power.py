"""Can this comparison fail? Every case must reject what is plainly wrong.

A bound that accepts zeros, twice the value or another reading of the equation proves nothing. So
each case is also judged with wrong outputs that nobody computed by accident: zeros, the double,
the negative, rows shifted by one, the inputs handed back unchanged, and every other reading and
known wrong variant of the equation.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueup.oracle.backends.base import AnyArray
from trueup.oracle.bounds import Evaluation
from trueup.oracle.bounds.judge import COHERENT, judge_output
from trueup.oracle.contract import Arg
from trueup.oracle.errors import OracleError
from trueup.oracle.inputs import Draw
from trueup.oracle.inputs.draw import rounded, widened
from trueup.oracle.lanes.judging import failing
from trueup.oracle.memory import written_mask
from trueup.oracle.session import Session
from trueup.reference import NotApplicable

PLAIN = frozenset(
    {"zeros", "twice the value", "sign flipped", "rows shifted by one", "inputs unchanged"}
)


@dataclass
class Power:
    """Which wrong outputs some case has told apart, and which it met without telling."""

    rejected: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)
    equal: set[str] = field(default_factory=set)

    def never_rejected(self) -> list[str]:
        """Name the wrong outputs that differ from the right one, yet no case rejects."""
        return sorted(self.accepted - self.rejected)

    def never_different(self) -> list[str]:
        """Name the other readings that give the right output itself in every case."""
        names = self.equal - self.accepted - self.rejected
        return sorted(name for name in names if name.split(" in ")[0] not in PLAIN)


def weigh(session: Session, draw: Draw, evaluation: Evaluation, power: Power) -> bool:
    """Try every wrong output against a case's bounds; whether the case rejects the plain ones."""
    args = session.contract.outputs
    found: list[bool | None] = []
    for index, arg in enumerate(args):
        for name, output in plainly_wrong(session, draw, arg, evaluation.values[index]):
            label = f"{name} in {arg.name}" if len(args) > 1 else name
            found.append(_rejects(session, draw, evaluation, index, output))
            _count(power, label, found[-1])
    for name, outputs in other_readings(session, draw, power.rejected):
        each = [_rejects(session, draw, evaluation, i, o) for i, o in enumerate(outputs)]
        told = [answer for answer in each if answer is not None]
        _count(power, name, any(told) if told else None)
    return True in found and False not in found


def _count(power: Power, name: str, answer: bool | None) -> None:
    names = {True: power.rejected, False: power.accepted, None: power.equal}[answer]
    names.add(name)


def _rejects(
    session: Session, draw: Draw, evaluation: Evaluation, index: int, output: AnyArray
) -> bool | None:
    """Judge one wrong output: whether it fails, or None where it is the right one after all."""
    arg = session.contract.outputs[index]
    mask = written_mask(arg, draw.case.axes)
    wrong = widened(rounded(output, arg.numpy, None))
    right = widened(rounded(evaluation.values[index], arg.numpy, None))
    if np.array_equal(wrong[mask], right[mask], equal_nan=True):
        return None
    judgement = judge_output(evaluation, index, wrong)
    # As the lane itself judges: by an element, or by all of them together.
    together = judgement.coherent > COHERENT and bool(mask.all())
    return together or bool(failing(session, draw, judgement, arg).any())


def plainly_wrong(
    session: Session, draw: Draw, arg: Arg, value: AnyArray
) -> Iterator[tuple[str, AnyArray]]:
    """Yield outputs that no kernel may pass with, for one output."""
    yield "zeros", np.zeros_like(value)
    if value.dtype.kind == "f":
        yield "twice the value", value * 2
        yield "sign flipped", -value
    if value.ndim:
        yield "rows shifted by one", np.roll(value, 1, axis=0)
    if arg.role == "inout":
        yield "inputs unchanged", np.asarray(draw.wide[arg.name])


def other_readings(
    session: Session, draw: Draw, known: Container[str] = ()
) -> Iterator[tuple[str, list[Any]]]:
    """Yield what every other reading and known wrong variant gives, where it applies.

    One case that rejects a variant is enough, so the `known` ones are not computed again.
    """
    for name in session.reference.others():
        if name in known:
            continue
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = session.reference.forms_of(name)[0](**draw.wide)
        except NotApplicable:
            continue
        except Exception as error:
            raise OracleError(
                f"the variant `{name}` of the reference raised {type(error).__name__}: {error}",
                where=session.reference.id,
                got=f"case {draw.case.id}",
                fix="correct it, or raise trueup.reference.NotApplicable where it has no meaning",
            ) from error
        outputs = list(result) if isinstance(result, tuple) else [result]
        shapes = [np.shape(output) for output in outputs]
        wanted = [arg.sizes(draw.case.axes) for arg in session.contract.outputs]
        if shapes != wanted:
            raise OracleError(
                f"the variant `{name}` of the reference returns other shapes",
                where=session.reference.id,
                got=f"{shapes} in case {draw.case.id}",
                expected=str(wanted),
            )
        yield name, [np.asarray(output) for output in outputs]
