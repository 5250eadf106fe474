"""Money as whole millionths in 64 bits: exact, checked, never a float in a ledger.

Source: DQN programme, money. A value is micro = value 10^6 with |micro| <= 2^63 - 1; the lowest
64-bit number is refused, so that negation never overflows. Whatever does not fit is an error, never
wrapped or saturated; whatever lies between two micros is rounded to nearest, ties to even.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import TypeAlias

from trueup.reference.errors import BadInputs

Micro: TypeAlias = int
"""An amount in millionths, between -LARGEST and LARGEST."""

DECIMALS = 6
UNIT: int = 10**DECIMALS
LARGEST: Micro = 2**63 - 1
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_BEYOND = 9.223372036854775e12  # float64 values from here on may not fit


def checked(micro: int, what: str) -> Micro:
    """Give an amount back, or raise `BadInputs` where 64 bits do not hold it."""
    if not -LARGEST <= micro <= LARGEST:
        raise BadInputs(
            "amount out of range", where=what, got=f"{micro} micro", expected=f"up to {LARGEST}"
        )
    return micro


def rounded_quotient(numerator: int, denominator: int) -> int:
    """Divide whole numbers, rounding to nearest and ties to even. Raises `BadInputs` for 0."""
    if denominator == 0:
        raise BadInputs("division by zero", where="money", expected="a divisor that is not 0")
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    whole, rest = divmod(numerator, denominator)
    up = 2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1)
    return whole + up


def parse(text: str) -> Micro:
    """Read a decimal number exactly; further decimals are rounded once, ties to even."""
    if not _NUMBER.fullmatch(text):
        raise BadInputs(
            "not an amount", where="money", got=repr(text[:40]), expected="digits, such as -12.50"
        )
    with localcontext(Context(prec=len(text) + 20)):
        micro = (Decimal(text) * UNIT).to_integral_value(ROUND_HALF_EVEN)
    return checked(int(micro), "parse")


def to_text(micro: Micro) -> str:
    """Write an amount with its six decimals; `parse` gives it back."""
    whole, rest = divmod(abs(checked(micro, "to_text")), UNIT)
    return f"{'-' if micro < 0 else ''}{whole}.{rest:0{DECIMALS}d}"


def from_float(value: float) -> Micro:
    """Take a float64: multiply in float64 and round half to even.

    Raises `BadInputs` for what is not finite and from 9.223372036854775e12 on. The product is
    rounded by float64 before, so that a decimal written by people belongs to `parse`.
    """
    if not abs(value) < _BEYOND:
        raise BadInputs(
            "amount out of range", where="from_float", got=repr(value), expected=f"below {_BEYOND}"
        )
    return checked(round(value * UNIT), "from_float")


def add(a: Micro, b: Micro) -> Micro:
    """Add, checked."""
    return checked(a + b, "add")


def subtract(a: Micro, b: Micro) -> Micro:
    """Subtract, checked."""
    return checked(a - b, "subtract")


def negate(a: Micro) -> Micro:
    """Negate; every amount has its opposite."""
    return -checked(a, "negate")


def multiply(a: Micro, b: Micro) -> Micro:
    """Multiply with a 128-bit product, rounded once."""
    return checked(rounded_quotient(a * b, UNIT), "multiply")


def divide(a: Micro, b: Micro) -> Micro:
    """Divide with a 128-bit numerator, rounded once. Raises `BadInputs` for a divisor of 0."""
    return checked(rounded_quotient(a * UNIT, b), "divide")
