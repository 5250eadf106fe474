"""What can go wrong in a number that is written correctly."""

from __future__ import annotations

import math
import re

EXACT = 2**53  # past it, a double no longer holds every integer
INT64 = 2**63
INT128 = 2**127

_MANTISSA = re.compile(r"^-?([0-9.]*)")
# The shortest ways to write a non-zero number below the smallest double: an exponent of three
# digits, or hundreds of leading zeros.
_MAY_UNDERFLOW = re.compile(rb"[eE]-[0-9]{3}")
_ZEROS = b"0" * 200
_LONG = 1 << 14  # bytes from which counting in arrays is faster
_BLOCK = 1 << 18


def flaw_of_float(text: str, value: float) -> str | None:
    """The kind of fault of a float literal, given the double it became."""
    if math.isinf(value):
        return "overflow"
    if value == 0.0:
        mantissa = _MANTISSA.match(text)
        if mantissa and mantissa.group(1).strip("0."):
            return "underflow"
    return None


def may_underflow(text: bytes) -> bool:
    """Whether some literal in the text could have become 0.0 although it is not zero."""
    if _ZEROS in text:
        return True
    return _small_in(text) if len(text) > _LONG else _MAY_UNDERFLOW.search(text) is not None


def _small_in(text: bytes) -> bool:
    """The pattern's search in a long text, 20 times as fast: from its minus signs."""
    import numpy as np

    raw = np.frombuffer(text, dtype=np.uint8)
    mask = np.empty(_BLOCK, dtype=np.bool_)
    for start in range(0, len(raw), _BLOCK):
        block = raw[start : start + _BLOCK]
        at = np.flatnonzero(np.equal(block, 45, out=mask[: len(block)])) + start  # -
        at = at[(at > 0) & (at < len(raw) - 3)]
        at = at[(raw[at - 1] | 32) == 101]  # e, E
        for place in (1, 2, 3):
            at = at[(raw[at + place] - np.uint8(48)) < 10]
        if len(at):
            return True
    return False


def is_too_long(text: str, max_digits: int) -> bool:
    """Whether an integer has more digits than any type holds."""
    return len(text) > max_digits


def is_huge(value: int, max_digits: int) -> bool:
    """The same of an integer that is parsed already; its digits need not be written out."""
    return value.bit_length() * 3 // 10 > max_digits


def fits_int64(value: int) -> bool:
    """Whether an ordinary integer holds it, in any language."""
    return -INT64 <= value < INT64


def fits_int128(value: int) -> bool:
    """Whether the widest integer column can hold it."""
    return -INT128 <= value < INT128


def exact_as_float(value: int) -> bool:
    """Whether an integer survives as a double."""
    if -EXACT <= value <= EXACT:
        return True
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
