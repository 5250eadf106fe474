"""Small TOML files of a user's, read by the standard library without what can hang or crash it."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MAX_DEPTH = 64
# A dotted key of many parts, where a key can begin: tomllib copies all its parts for each one.
DOTS = re.compile(
    r"""(?:^|[{,])[ \t]*+(?:\[\[?[ \t]*+)?"""
    r"""(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){1000}""",
    re.MULTILINE,
)


def plain_toml(raw: bytes) -> dict[str, Any]:
    """The tables. Raises `ValueError` for text that is no TOML, or nested deeper than any need."""
    text = raw.decode("utf-8")
    try:
        if DOTS.search(text):
            raise RecursionError
        data = tomllib.loads(text)
        _measure(data)
    except RecursionError:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep") from None
    return data


def _measure(data: dict[str, Any]) -> None:
    level: list[Any] = [data]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise RecursionError
