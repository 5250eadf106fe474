"""Can this comparison fail? Every case must reject what is plainly wrong.

A bound that accepts zeros, twice the value or another reading of the equation proves nothing. So
each case is also judged with wrong outputs that nobody computed by accident: zeros, the double,
the negative, rows shifted by one, the inputs handed back unchanged, and every other reading and
known wrong variant of the equation.
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueup.oracle.backends.base import AnyArray
from trueup.oracle.bounds import Evaluation, judge
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
    found: list[bool | None] = []
    for index, arg in enumerate(session.contract.outputs):
        for name, output in plainly_wrong(session, draw, arg, evaluation.values[index]):
            outputs = [*evaluation.values]
            outputs[index] = output
            label = f"{name} in {arg.name}" if len(outputs) > 1 else name
            found.append(_try(session, draw, evaluation, label, outputs, power))
    for name, outputs in other_readings(session, draw, power.rejected):
        _try(session, draw, evaluation, name, outputs, power)
    return True in found and False not in found


def _try(
    session: Session,
    draw: Draw,
    evaluation: Evaluation,
    name: str,
    outputs: Sequence[AnyArray],
    power: Power,
) -> bool | None:
    """Judge a wrong output: rejected, accepted, or None where it is the right one after all."""
    args = session.contract.outputs
    masks = [written_mask(arg, draw.case.axes) for arg in args]
    dtypes = [arg.numpy for arg in args]
    stored = [widened(rounded(o, d, None)) for o, d in zip(outputs, dtypes, strict=True)]
    right = [widened(rounded(v, d, None)) for v, d in zip(evaluation.values, dtypes, strict=True)]
    if all(
        np.array_equal(a[m], b[m], equal_nan=True)
        for a, b, m in zip(stored, right, masks, strict=True)
    ):
        power.equal.add(name)
        return None
    judgements = judge(evaluation, stored)
    found = any(
        bool(failing(session, draw, j, arg).any()) for j, arg in zip(judgements, args, strict=True)
    )
    (power.rejected if found else power.accepted).add(name)
    return found


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
