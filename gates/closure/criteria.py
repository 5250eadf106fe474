"""Decides every acceptance criterion: it holds, it does not hold, or it cannot be determined."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trueup.gates.closure.exact import printed, rational
from trueup.gates.closure.model import Criterion, Source
from trueup.gates.closure.outcome import CriterionOutcome
from trueup.gates.closure.values import Measured, Unmeasured, Values
from trueup.gates.findings import Where, show


@dataclass(frozen=True, slots=True)
class _Answer:
    status: str
    reason: str = ""


def decide(criterion: Criterion, values: Values) -> CriterionOutcome:
    """The outcome of one criterion on one run."""
    found = values.measure(criterion.source, criterion.unit_path)
    baseline: Any = criterion.baseline
    if isinstance(baseline, Source):
        base = values.measure(baseline)
        if isinstance(base, Unmeasured):
            return _outcome(criterion, found, None, _unknown(f"baseline: {base.reason}"))
        baseline = base.value
        if base.unit is not None and base.unit != criterion.unit:
            reason = f"the baseline is given in {base.unit}, the criterion in {criterion.unit}"
            return _outcome(criterion, found, baseline, _unknown(reason))
    if isinstance(found, Unmeasured):
        return _outcome(criterion, found, baseline, _unknown(found.reason))
    answer = _wrong_unit(criterion, found) or compare(criterion, found.value, baseline)
    return _outcome(criterion, found, baseline, answer)


def _unknown(reason: str) -> _Answer:
    return _Answer("cannot be determined", reason)


def _outcome(
    criterion: Criterion, found: Measured | Unmeasured, baseline: Any, answer: _Answer
) -> CriterionOutcome:
    value = printed(found.value) if isinstance(found, Measured) else None
    where = found.where if isinstance(found, Measured | Unmeasured) else Where()
    return CriterionOutcome(
        id=criterion.id,
        text=criterion.text,
        status=answer.status,  # type: ignore[arg-type]
        source=str(criterion.source),
        value=None if value is None else show_value(value),
        threshold=threshold(criterion, baseline),
        unit=criterion.unit,
        artifact=found.shown,
        where=where,
        reason=answer.reason,
        blocker=criterion.blocker,
    )


def show_value(text: str, limit: int = 80) -> str:
    """A value for people, with what would break a line made visible."""
    return show(text.encode("utf-8", "backslashreplace"), limit)


def threshold(criterion: Criterion, baseline: Any = None) -> str:
    """What is asked for, in words and signs."""
    value = printed(criterion.value)
    if criterion.comparison == "between":
        low, high = criterion.value
        return f"between {printed(low)} and {printed(high)}"
    if criterion.comparison.endswith("-within"):
        base = criterion.baseline if baseline is None else baseline
        shown = str(base) if isinstance(base, Source) else printed(base)
        times = " times it" if criterion.comparison == "rel-within" else ""
        return f"within {value}{times} of {shown}"
    return f"{criterion.comparison} {value}"


def _wrong_unit(criterion: Criterion, found: Measured) -> _Answer | None:
    """A value in another unit is no answer, and is never converted."""
    if found.unit is not None and found.unit != criterion.unit:
        return _unknown(f"the artifact gives it in {found.unit}, the criterion in {criterion.unit}")
    number = rational_of(found.value)
    if criterion.unit == "fraction" and number is not None and not 0 <= number <= 1:
        return _unknown(f"{printed(found.value)} is no fraction: one lies between 0 and 1")
    return None


def rational_of(value: object) -> Fraction | None:
    """A measured number, exact."""
    return value if isinstance(value, Fraction) else rational(value)


def compare(criterion: Criterion, value: Any, baseline: Any) -> _Answer:
    """Three-valued: what is no finite number never satisfies a comparison of numbers."""
    wanted = criterion.value
    if criterion.comparison in ("==", "!=") and isinstance(wanted, str | bool):
        if type(value) is not type(wanted):
            return _unknown(f"{printed(value)} is {_kind(value)}, not {_kind(wanted)}")
        same = value == wanted
        return _told(same == (criterion.comparison == "=="))
    number = rational_of(value)
    if number is None:
        return _unknown(f"{printed(value)} is {_kind(value)}, no finite number")
    if criterion.comparison.endswith("-within"):
        base = rational_of(baseline)
        if base is None:
            return _unknown(f"the baseline {printed(baseline)} is no finite number")
        allowed = _exact(wanted) * (abs(base) if criterion.comparison == "rel-within" else 1)
        return _told(abs(number - base) <= allowed)
    if criterion.comparison == "between":
        low, high = wanted
        return _told(_exact(low) <= number <= _exact(high))
    return _told(_ORDER[criterion.comparison](number, _exact(wanted)))


_ORDER = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _exact(value: Any) -> Fraction:
    number = rational(value)
    if number is None:  # the ticket was refused if its value is no number
        raise ValueError(f"{value!r} is no number")
    return number


def _told(holds: bool) -> _Answer:
    return _Answer("holds" if holds else "does not hold")


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if value is None:
        return "null"
    for kind, name in ((str, "text"), (list, "a list"), (dict, "an object")):
        if isinstance(value, kind):
            return name
    return "not finite" if rational(value) is None else "a number"
