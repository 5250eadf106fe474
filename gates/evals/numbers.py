"""Compares numbers of a result exactly, granting no more than the rounding they were written with.

A claimed number may differ from the exact one by half a unit in its last printed decimal, and by
what storing it in single precision costs. Nothing else is granted, and no tolerance is typed: a
writer who rounds to d decimals is held to d decimals, where d is at least what the rule declares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeGuard

from trueup.gates.documents.model import Pointer
from trueup.gates.read.numbers import fits_int64

SINGLE = Fraction(1, 1 << 24)  # half a unit in the last place of a float32, relative
_MOST_DECIMALS = 400  # of the least double; more cannot be printed


@dataclass(frozen=True, slots=True)
class Cell:
    """A finite number, and where it stands in the document."""

    value: int | float
    pointer: Pointer

    @property
    def exact(self) -> Fraction:
        """The number as it is, without any rounding."""
        return Fraction(self.value)


def is_number(value: Any) -> TypeGuard[int | float]:
    """A finite number; booleans and text are none, nor is what the reader found past int64."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return fits_int64(value) if isinstance(value, int) else math.isfinite(value)


def cell(parent: Any, *pointer: str | int) -> Cell | None:
    """The finite number at the last part of a pointer, if `parent` holds one there."""
    key = pointer[-1]
    if isinstance(parent, dict):
        value = parent.get(key)
    elif isinstance(parent, list) and isinstance(key, int) and 0 <= key < len(parent):
        value = parent[key]
    else:
        return None
    return Cell(value, pointer) if is_number(value) else None


def decimals(value: int | float) -> int:
    """How many decimals a number is printed with: 0.0156 has 4, 1e-7 has 7, 12 has none."""
    if isinstance(value, int):
        return 0
    exponent = Decimal(repr(value)).as_tuple().exponent
    places = -exponent if isinstance(exponent, int) else 0
    return 0 if value.is_integer() else min(max(places, 0), _MOST_DECIMALS)


def half_unit(places: int) -> Fraction:
    """Half a unit in the last of so many decimals."""
    return Fraction(1, 2 * 10**places)


def allowed(
    claimed: int | float, terms: Iterable[tuple[Fraction, int | float]], least: int
) -> Fraction:
    """How far a claimed sum of weighted terms may be from the exact one.

    All numbers of one relation are taken to be printed with the most decimals that one of them
    shows, and at least `least`: a trailing zero is not printed.
    """
    pairs = list(terms)
    places = max([least, decimals(claimed), *(decimals(value) for _, value in pairs)])
    weight = 1 + sum((abs(factor) for factor, _ in pairs), Fraction())
    sizes = sum((abs(factor * Fraction(value)) for factor, value in pairs), Fraction())
    return half_unit(places) * weight + SINGLE * (abs(Fraction(claimed)) + sizes)


def total(terms: Iterable[tuple[Fraction, int | float]]) -> Fraction:
    """The exact sum of weighted terms."""
    return sum((factor * Fraction(value) for factor, value in terms), Fraction())


def say(value: Fraction | float) -> str:
    """An exact number for a message."""
    try:
        return f"{float(value):.10g}"
    except OverflowError:
        return "past the largest double"
