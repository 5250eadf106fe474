"""What the text of a cell is: CSV has no types, so a column's cells decide together.

An empty cell is an absent key. Numbers are those of JSON. What other readers take for a number as
well (`+3`, `03`, `1.`, `.5`, ` 3.5`) is handed on with a finding; `0x10` and `1_000`, of which they
make different numbers, are text in a column of numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trueup.gates.findings import show
from trueup.gates.read.numbers import flaw_of_float
from trueup.gates.read.rows.table import CellFlaw

INTEGER = r"-?(?:0|[1-9][0-9]*)"
NUMBER = INTEGER + r"(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
BOOLEANS = {"true": True, "false": False}  # in lower case: True and TRUE are written as well

_INTEGER = re.compile(INTEGER)
_NUMBER = re.compile(NUMBER)
_LAX = re.compile(r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*")
_PROGRAM = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+(?:_[0-9]+)+)")
_DIGITS = re.compile(r"[+-]?[0-9]+")
_NON_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_PYTHON = re.compile(r"None|[A-Za-z_][\w.]*\([^()]*\)")
_NULLS = frozenset({"null", "NULL", "Null", "NA", "N/A", "n/a", "<NA>", "#N/A"})

ABSENT = object()


def is_like_a_number(text: str) -> bool:
    """Whether some reader would take it for a number."""
    return any(one.fullmatch(text) for one in (_LAX, _PROGRAM, _NON_FINITE))


def group_of(texts: Sequence[str]) -> str | None:
    """What most cells of a new column are: number, bool or str; numbers win a tie."""
    counts = {"number": 0, "bool": 0, "str": 0}
    for text in texts:
        if text and text not in _NULLS:
            number = is_like_a_number(text) or _PYTHON.fullmatch(text)
            counts["number" if number else "bool" if text.lower() in BOOLEANS else "str"] += 1
    best = max(counts, key=lambda group: counts[group])
    return best if counts[best] else None


def typed(
    texts: Sequence[str], group: str | None, key: str, max_digits: int
) -> Iterator[tuple[Any, CellFlaw | None]]:
    """The value of each cell (ABSENT where it is empty), and what is wrong with its text."""
    for index, text in enumerate(texts):
        if not text:
            yield ABSENT, None
        elif group == "str":
            yield text, None
        elif text in _NULLS:
            yield None, None
        elif group == "bool" and text.lower() in BOOLEANS:
            yield BOOLEANS[text.lower()], None
        elif len(text) > max_digits and _DIGITS.fullmatch(text.strip()):
            got = f"{len(text)} characters"
            yield ABSENT, CellFlaw(index, "number_too_long", key, got, True)
        else:
            value, kind = _number(text)
            yield value, _flaw(index, kind, key, text, value is ABSENT) if kind else None


def _flaw(index: int, kind: str, key: str, text: str, withheld: bool) -> CellFlaw:
    got = show(text if text != text.strip() else text.encode())
    return CellFlaw(index, kind, key, got, withheld)


def _number(text: str) -> tuple[Any, str | None]:
    """The value of a cell of a column of numbers (ABSENT if in doubt), and the kind of its flaw."""
    if _INTEGER.fullmatch(text):
        return int(text), None
    if _NUMBER.fullmatch(text):
        value = float(text)
        return value, flaw_of_float(text, value)
    if _NON_FINITE.fullmatch(text):
        return float(text), "non_finite_literal"
    if _LAX.fullmatch(text):
        plain = text.strip()
        return int(plain) if _DIGITS.fullmatch(plain) else float(plain), "lax_number"
    if _PYTHON.fullmatch(text):
        return ABSENT, "python_literal"
    return BOOLEANS.get(text.lower(), text), None  # its column will not take it


def is_complete_number(text: str) -> bool:
    """Whether a number that ends here may have been meant to."""
    return _NUMBER.fullmatch(text) is not None
