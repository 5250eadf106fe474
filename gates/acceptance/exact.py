"""Numbers as they were written: decimals compared as rationals, never as doubles.

In doubles `abs(0.85 - 1.0) <= 0.15` is false, although the band is inclusive and 0.85 lies on it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from trueup.gates.findings import show

Flaw = Literal["", "missing", "null", "not finite", "not a number"]

_LONGEST = 400  # characters of a literal; no metric needs more
_BEYOND = 400  # decimal exponents; a double ends at 308
_DECIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]+)?(?:[eE]([-+]?[0-9]+))?")


@dataclass(frozen=True, slots=True)
class Number:
    """A metric's value. `exact` is None where there is no finite number, and `flaw` says why."""

    exact: Fraction | None
    text: str
    flaw: Flaw = ""


MISSING = Number(None, "nothing", "missing")


def number(value: Any, literal: str | None = None) -> Number:
    """A value of a document; `literal` is its text in the file, where that is known."""
    if value is None:
        return Number(None, "null", "null")
    if isinstance(value, Fraction):
        return Number(value, decimal_text(value))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return Number(None, show(value, 40), "not a number")
    if not isinstance(value, int) and not math.isfinite(value):
        return Number(None, "NaN" if math.isnan(value) else show(float(value)), "not finite")
    text = literal if literal is not None else str(value)
    exact = from_text(text)
    if exact is None:
        return Number(None, show(text, 40), "not finite")
    return Number(exact, text)


def from_text(text: str) -> Fraction | None:
    """The rational that a decimal literal stands for; None if it is none, or is out of bounds."""
    found = _DECIMAL.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or (found[1] is not None and abs(int(found[1])) > _BEYOND):
        return None
    return Fraction(text.replace("_", ""))


def decimal_text(value: Fraction) -> str:
    """A rational for people: all its digits if it is a short decimal, else twelve of them."""
    if value.denominator == 1:
        return str(value.numerator) if abs(value) < 10**15 else f"{to_float(value):.12g}"
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest == 1:
        text = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
        if len(text) <= 24:
            return text
    return f"{to_float(value):.12g}"


def to_float(value: Fraction) -> float:
    """The nearest double; infinite where there is none."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def parameter(value: Any) -> Fraction:
    """A number of an acceptance file, which was read with decimals."""
    return Fraction(value)
