"""Ways into a document: `train.lr`, `evals[0].name`, `evals[*].accuracy`, `"a.b".c`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trueup.gates.documents.model import Pointer
from trueup.gates.errors import ProfileError

EVERY = "*"
_PART = re.compile(r'\[(\d{1,9}|\*)\]|(?:^|\.)(?:"([^"]*)"|([^.\[\]"]+))')


def parse_path(path: str, where: str = "") -> Pointer:
    """The parts of a way; `*` stands for every key or place. Raises `ProfileError`."""
    parts: list[str | int] = []
    at = 0
    while at < len(path):
        found = _PART.match(path, at)
        if found is None:
            break
        index, quoted, plain = found.groups()
        if index is not None:
            parts.append(int(index) if index != EVERY else EVERY)
        else:
            parts.append(quoted if plain is None else plain)
        at = found.end()
    if at < len(path) or not parts:
        raise ProfileError(
            "is no way into a document", where=where, got=repr(path),
            expected='keys and places such as train.lr, evals[0].name, evals[*].accuracy, "a.b".c',
        )  # fmt: skip
    return tuple(parts)


def select(data: Any, way: Pointer) -> Iterator[tuple[Pointer, Any]]:
    """All values a way leads to, each with its own pointer; none if the way ends before."""
    waiting: list[tuple[Pointer, Any, int]] = [((), data, 0)]
    while waiting:
        pointer, value, depth = waiting.pop()
        if depth == len(way):
            yield pointer, value
            continue
        part = way[depth]
        inner = [((*pointer, key), one, depth + 1) for key, one in _inside(value, part)]
        waiting.extend(reversed(inner))


def _inside(value: Any, part: str | int) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        if part == EVERY:
            yield from value.items()
        elif part in value:
            yield part, value[part]
    elif isinstance(value, list):
        if part == EVERY:
            yield from enumerate(value)
        elif isinstance(part, int) and part < len(value):
            yield part, value[part]


def get(data: Any, *pointer: str | int) -> Any:
    """The value at a pointer, or None. Types are never assumed: anything may stand there."""
    for part in pointer:
        if isinstance(data, dict) and isinstance(part, str):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data
