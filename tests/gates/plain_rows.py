"""A slow and strict reader of JSON rows, made of the standard library alone: a second opinion."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any


class Refused(Exception):
    """The text is not one object with unique keys and exact finite values."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise Refused("a key stands twice")
    return dict(pairs)


def _refuse(text: str) -> float:
    raise Refused(text)


def _finite(text: str) -> float:
    value = float(text)
    mantissa = text.lower().split("e")[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("-0.")):
        raise Refused(text)
    return value


def _has_half(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def exact(text: bytes) -> Any:
    """The value of a JSON text, or `Refused`."""
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError):
        raise Refused("no JSON") from None
    for name, cell in places(value):
        if _has_half(name) or (isinstance(cell, str) and _has_half(cell)):
            raise Refused("half a character")
    return value


def row(line: bytes) -> dict[str, Any]:
    """One line as one object, or `Refused`."""
    if b"\r" in line:
        raise Refused("a carriage return")
    value = exact(line)
    if not isinstance(value, dict):
        raise Refused("no object")
    return value


def places(value: Any, name: str | None = None) -> Iterator[tuple[str, Any]]:
    """All plain values with the names of their places: `a.b[0]`."""
    if isinstance(value, dict):
        for key, cell in value.items():
            yield from places(cell, key if name is None else f"{name}.{key}")
    elif isinstance(value, list):
        for index, cell in enumerate(value):
            yield from places(cell, f"{name or ''}[{index}]")
    else:
        yield name or "", value


def flat(value: dict[str, Any]) -> dict[str, Any]:
    """A nested row by the names of its places, or `Refused` if two have one name."""
    found = list(places(value))
    if len({name for name, _ in found}) != len(found):
        raise Refused("two places of one name")
    return dict(found)


def same(one: Any, two: Any) -> bool:
    """Whether two values are the same, to the last digit, and of the same kind."""
    if isinstance(one, bool | str) or isinstance(two, bool | str):
        return type(one) is type(two) and bool(one == two)
    return bool(one == two)


def same_row(got: dict[str, Any], want: dict[str, Any]) -> bool:
    """Whether a delivered row (absent cells are None) is exactly the one that was written."""
    known = {key: value for key, value in got.items() if value is not None}
    said = {key: value for key, value in want.items() if value is not None}
    return known.keys() == said.keys() and all(same(known[key], said[key]) for key in said)
