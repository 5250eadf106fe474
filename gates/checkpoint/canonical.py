"""The digest of a configuration: SHA-256 over one text that every writer can make again.

The text is that of RFC 8785 (JSON Canonicalization Scheme): UTF-8, no white space, keys in the
order of their UTF-16 code units, the shortest escapes, numbers as ECMAScript writes a double. It
differs in one point: an integer keeps all its digits, also past 2^53. So 1, 1.0 and 1e0 are the
same, and so are 0 and -0.0.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from trueup.gates.errors import GateError


class NotCanonical(GateError):
    """A value that JSON has no text for."""


def canonical(value: Any) -> str:
    """The canonical text of a value."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return f"{{{','.join(f'{_string(key)}:{canonical(value[key])}' for key in keys)}}}"
    raise NotCanonical("has no canonical form", got=f"a {type(value).__name__}", expected="JSON")


def canonical_digest(value: Any) -> str:
    """SHA-256 of the canonical text, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode("utf-8")).hexdigest()


def _string(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotCanonical("has no canonical form", got="half of a surrogate pair") from None
    return json.dumps(text, ensure_ascii=False)


def _double(value: float) -> str:
    """As `Number.prototype.toString` writes it: plain digits within 1e-7 and 1e21."""
    if not math.isfinite(value):
        raise NotCanonical("has no canonical form", got=str(value), expected="a finite number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, part = mantissa.partition(".")
    part = "" if part == "0" else part
    digits = (whole + part).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return f"{sign}{digits}{'0' * (point - count)}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return f"{sign}{digits[0]}{'.' if count > 1 else ''}{digits[1:]}{power}"
