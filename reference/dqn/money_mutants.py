"""Money as it must not be done: each named mistake as a function, for tests to tell apart."""

from __future__ import annotations

import numpy as np

from trueup.reference.dqn.money import UNIT, Micro, rounded_quotient

_HALF = 1 << 63


def _wrapped(value: int) -> int:
    """Keep the low 64 bits as a signed number."""
    return (value + _HALF) % (2 * _HALF) - _HALF


def half_up(numerator: int, denominator: int) -> int:
    """Round ties away from zero."""
    size: int = (2 * abs(numerator) + abs(denominator)) // (2 * abs(denominator))
    return size if (numerator < 0) == (denominator < 0) else -size


def truncated(numerator: int, denominator: int) -> int:
    """Drop the fraction."""
    size = abs(numerator) // abs(denominator)
    return size if (numerator < 0) == (denominator < 0) else -size


def multiply_in_64_bits(a: Micro, b: Micro) -> Micro:
    """Let the product wrap at 64 bits before it is divided."""
    return rounded_quotient(_wrapped(a * b), UNIT)


def parse_through_float(text: str) -> Micro:
    """Read a decimal as float64 and multiply."""
    return round(float(text) * UNIT)


def float_ledger(fills: list[Micro]) -> float:
    """Add amounts up as float32 values."""
    amounts = np.array([fill / UNIT for fill in fills], dtype=np.float32)
    return float(np.sum(amounts, dtype=np.float32))


def through_float32(micro: Micro) -> Micro:
    """Store an amount as one float32: divide and multiply in float64, round the store alone."""
    return round(float(np.float32(micro / UNIT)) * UNIT)


def in_float32(micro: Micro) -> Micro:
    """Store an amount as float32, and divide and multiply in float32 as well."""
    unit = np.float32(UNIT)
    return round(float(np.float32(np.float32(np.float32(micro) / unit) * unit)))
