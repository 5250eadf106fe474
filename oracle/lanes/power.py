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
from trueup.oracle.inputs import Draw
from trueup.oracle.inputs.draw import rounded, widened
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
        return sorted(self.equal - self.accepted - self.rejected - PLAIN)


def weigh(session: Session, draw: Draw, evaluation: Evaluation, power: Power) -> bool:
    """Try every wrong output against a case's bounds; whether the case rejects the plain ones."""
    strong = True
    for name, outputs in plainly_wrong(session, draw, evaluation.values):
        strong &= _try(session, evaluation, name, outputs, power)
    for name, outputs in other_readings(session, draw, power.rejected):
        _try(session, evaluation, name, outputs, power)
    return strong


def _try(
    session: Session, evaluation: Evaluation, name: str, outputs: Sequence[AnyArray], power: Power
) -> bool:
    """Judge a wrong output; true where it is rejected or is no different from the right one."""
    dtypes = [arg.numpy for arg in session.contract.outputs]
    stored = [widened(rounded(o, d, None)) for o, d in zip(outputs, dtypes, strict=True)]
    right = [widened(rounded(v, d, None)) for v, d in zip(evaluation.values, dtypes, strict=True)]
    if all(np.array_equal(a, b, equal_nan=True) for a, b in zip(stored, right, strict=True)):
        power.equal.add(name)
        return True
    found = any(bool((j.failed | j.nonfinite_mismatch).any()) for j in judge(evaluation, stored))
    (power.rejected if found else power.accepted).add(name)
    return found


def plainly_wrong(
    session: Session, draw: Draw, values: Sequence[AnyArray]
) -> Iterator[tuple[str, list[Any]]]:
    """Yield outputs that no kernel may pass with."""
    yield "zeros", [np.zeros_like(v) for v in values]
    numbers = [v for v in values if v.dtype.kind == "f"]
    if numbers:
        yield "twice the value", [v * 2 if v.dtype.kind == "f" else v for v in values]
        yield "sign flipped", [-v if v.dtype.kind == "f" else v for v in values]
    yield "rows shifted by one", [np.roll(v, 1, axis=0) if v.ndim else v for v in values]
    inout = session.contract.with_role("inout")
    if inout:
        unchanged = {arg.name for arg in inout}
        yield (
            "inputs unchanged",
            [
                np.asarray(draw.wide[arg.name]) if arg.name in unchanged else value
                for arg, value in zip(session.contract.outputs, values, strict=True)
            ],
        )


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
        yield name, list(result) if isinstance(result, tuple) else [result]
