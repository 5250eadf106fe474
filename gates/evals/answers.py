"""What the rules on evaluations answer with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup.gates.documents.model import Answer, Flaw, Pointer, Subject
from trueup.gates.evals.numbers import Cell
from trueup.gates.profile.rules import Rule

DECIMALS = 4


def least_decimals(rule: Rule) -> int:
    """How many decimals a value is printed with at least, unless it shows more."""
    return int(rule.params.get("decimals", DECIMALS))


def flaw(subject: Subject, one: Cell | Pointer, got: str) -> Flaw:
    """A flaw at a value."""
    pointer = one.pointer if isinstance(one, Cell) else one
    return Flaw(subject.document.where(*pointer), got)


def unsure(subject: Subject, one: Cell | Pointer, got: str) -> Flaw:
    """A place where it cannot be told."""
    pointer = one.pointer if isinstance(one, Cell) else one
    return Flaw(subject.document.where(*pointer), got, "undetermined")


def answer(read: int, flaws: list[Flaw], reason: str) -> Answer:
    """What was found; the reason stands only where nothing was read."""
    return Answer(read, tuple(flaws), "" if read else reason)


def parameters_problem(params: Mapping[str, Any]) -> str | None:
    """What is wrong with parameters beyond their types: no list of names, a negative number."""
    for name, value in params.items():
        if isinstance(value, list) and not (value and all(_is_name(one) for one in value)):
            return f"{name} is {value!r}, expected a list of names"
        if isinstance(value, int | float) and value < 0:
            return f"{name} is {value!r}, expected a number of 0 or more"
    return None


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
