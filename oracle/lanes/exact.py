"""exact: integer inputs, where every operation is exact and the bits must be equal.

It draws small integers and dyadic scalars. Where the worst case of an element is 0 in every form
of the reference no operation rounds, and the element must be equal; that takes no samples. Where a
decision hangs on rounding, or the worst case cannot be followed, the sampled bound says which
elements have no allowance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.oracle.backends.base import AnyArray, RunOptions
from trueup.oracle.bounds import Evaluator, certain, judge
from trueup.oracle.inputs import Case, Draw, all_sizes, draw, with_native
from trueup.oracle.inputs.draw import widened
from trueup.oracle.lanes.identify import name_reading
from trueup.oracle.lanes.judging import shown_number
from trueup.oracle.lanes.tally import Tally, element, first, skipped
from trueup.oracle.memory import written_mask
from trueup.oracle.session import Session
from trueup.oracle.verdict import LaneVerdict, Worst


def cases(session: Session) -> list[Case]:
    """Every boundary size with integer inputs."""
    return all_sizes(session.contract, "integers")


def run(session: Session, picked: list[Case], seed: int, tally: Tally) -> LaneVerdict:
    """Demand equal bits wherever the arithmetic is exact; name the reading a kernel follows."""
    failed: list[tuple[Draw, list[AnyArray]]] = []
    for case in picked:
        if tally.enough():
            break
        tally.begin(case.id)
        inputs = dyadic(session, draw(session.contract, session.reference, case, seed))
        evaluator = session.evaluator(inputs)
        values = evaluator.values()
        result = session.run(inputs, RunOptions())
        if not tally.ran(result, inputs):
            continue
        outputs = session.outputs(result)
        wide = [widened(np.asarray(o)) for o in outputs]
        counted, found = 0, len(tally.findings) + tally.more
        for told, arg, value, out in zip(
            _exactly(evaluator, wide), session.contract.outputs, values, outputs, strict=True
        ):
            exact = told[0] & written_mask(arg, case.axes)
            counted += int(exact.sum())
            wrong = exact & told[1]
            if wrong.any():
                index = first(wrong)
                error = abs(float(out[index]) - float(value[index]))
                tally.weigh(Worst(np.inf, element(arg.name, index), error, 0.0, case.id))
                tally.find(
                    "bits",
                    inputs,
                    element(arg.name, index),
                    f"{shown_number(out[index])}, error {error:.3g}; "
                    f"{int(wrong.sum())} of {int(exact.sum())} exact elements differ",
                    f"{shown_number(value[index])} exactly",
                    "every operation is exact on these inputs in any order; an index, a term or "
                    "a constant is wrong, or a value is rounded that the contract does not name",
                )
        if len(tally.findings) + tally.more > found:
            failed.append((inputs, outputs))
        tally.elements += counted
        tally.cases += bool(counted)
    if failed:
        name_reading(session, tally, failed)
    if tally.cases == 0 and not tally.findings:
        return skipped("exact", "no element of this equation is exact on integers")
    return tally.verdict()


def _exactly(evaluator: Evaluator, outputs: list[AnyArray]) -> list[tuple[AnyArray, AnyArray]]:
    """Per output which elements are exact, and which of all differ from the reference."""
    forms = [certain(evaluator, i) for i in range(len(evaluator.forms))]
    known = [form for form in forms if form is not None and all(x.clear for x in form)]
    if len(known) < len(forms):
        return [(j.exact, j.failed) for j in judge(evaluator.evaluation(), outputs)]
    told = []
    for of_forms, output in zip(zip(*known, strict=True), outputs, strict=True):
        value = of_forms[0].value
        exact = np.all([x.largest == 0 for x in of_forms], axis=0)
        same = (output == value) | (np.isnan(output) & np.isnan(value))
        told.append((exact, ~same))
    return told


def dyadic(session: Session, inputs: Draw) -> Draw:
    """Replace floating-point scalars by powers of two inside their domains."""
    domains = {}
    if session.reference.equation is not None:
        domains = {s.name: s.domain.kind for s in session.reference.equation.inputs}
    changes: dict[str, Any] = {}
    for arg in session.contract.with_role("scalar"):
        if arg.numpy.kind in "iub":
            continue
        value = 0.5 if domains.get(arg.name, "real") in ("unit", "positive") else 2.0
        if arg.legal is not None and not arg.legal[0] <= value <= arg.legal[1]:
            continue
        changes[arg.name] = np.asarray(value, dtype=arg.numpy)
    return with_native(inputs, session.contract, changes)
