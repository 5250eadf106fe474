"""Paths to metrics: `best_sharpe`, `cells[*].metrics.val`, `cells[fold=0].metrics."layer0.norm"`.

`[*]` goes through a list; what tells its elements apart (their seed, fold, task ...) becomes part
of a value's name, so that values are compared by what they are of and never by their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trueup.gates.documents.model import Pointer

# Keys that tell the elements of a list apart, where every element has them.
IDENTITIES = ("seed", "fold", "arm", "layer", "task", "name", "id", "kind", "length")

_KEY = re.compile(r'([^."\[\]\s=]+)|"((?:[^"\\]|\\["\\])+)"')
_INDEX = re.compile(r"\[(\*|\d{1,6}|[^\]*]+)\]")
_TEST = re.compile(r'\s*([^=\s"\[\]]+)\s*=\s*("[^"]*"|[^",\[\]\s]+)\s*')


class PathError(ValueError):
    """A path that is not one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: into a key, an index, the elements that pass a test, or every element."""

    key: str | None = None
    index: int | None = None
    test: Mapping[str, str] | None = None  # empty: every element


@dataclass(frozen=True, slots=True)
class Hit:
    """One value a path leads to. `found` is false where the last key is not there."""

    pointer: Pointer
    of: Mapping[str, str] = field(default_factory=dict)  # seed=7, fold=0
    value: Any = None
    found: bool = True

    @property
    def label(self) -> str:
        """`[fold=0]`, or nothing."""
        return label(self.of)


def label(of: Mapping[str, str]) -> str:
    """What a value is of, as names show it."""
    return "[" + ",".join(f"{key}={value}" for key, value in of.items()) + "]" if of else ""


def parse_path(text: str) -> tuple[Step, ...]:
    """The steps of a path. Raises `PathError`."""
    steps: list[Step] = []
    pos = 0
    while pos < len(text):
        if text[pos] == "[":
            found = _INDEX.match(text, pos)
            if found is None:
                raise PathError(f"no index, * or key=value in brackets at character {pos + 1}")
            steps.append(_bracket(found[1]))
        else:
            if steps:
                if text[pos] != ".":
                    raise PathError(f"expected . or [ at character {pos + 1}")
                pos += 1
            found = _KEY.match(text, pos)
            if found is None:
                raise PathError(f"no key at character {pos + 1}")
            quoted = found[2]
            steps.append(Step(key=found[1] or re.sub(r"\\(.)", r"\1", quoted)))
        pos = found.end()
    if not steps:
        raise PathError("is empty")
    return tuple(steps)


def _bracket(text: str) -> Step:
    if text == "*":
        return Step(test={})
    if text.isdigit():
        return Step(index=int(text))
    test: dict[str, str] = {}
    for part in text.split(","):
        found = _TEST.fullmatch(part)
        if found is None:
            raise PathError(f"[{text}] is no index, * or key=value")
        test[found[1]] = found[2].strip('"')
    return Step(test=test)


def follow(data: Any, path: tuple[Step, ...]) -> Iterator[Hit]:
    """Every value a path leads to; what is missing on the way is one hit that found nothing."""
    yield from _follow(data, path, (), {})


def _follow(
    data: Any, path: tuple[Step, ...], pointer: Pointer, of: dict[str, str]
) -> Iterator[Hit]:
    if not path:
        yield Hit(pointer, of, data)
        return
    step, rest = path[0], path[1:]
    if step.key is not None or step.index is not None:
        part: str | int = step.key if step.key is not None else step.index or 0
        inner = _child(data, part)
        if inner is None:
            yield Hit((*pointer, part), of, None, False)
        else:
            yield from _follow(inner[0], rest, (*pointer, part), of)
        return
    if not isinstance(data, list):
        yield Hit(pointer, of, None, False)
        return
    names = identities(data)
    hits = 0
    for index, element in enumerate(data):
        told = told_apart(element, index, names)
        if all(told.get(key, _text(element, key)) == value for key, value in
               (step.test or {}).items()):  # fmt: skip
            hits += 1
            yield from _follow(element, rest, (*pointer, index), _joined(of, told))
    if not hits:
        yield Hit(pointer, {**of, **(step.test or {})}, None, False)


def _child(data: Any, part: str | int) -> tuple[Any] | None:
    if isinstance(part, str):
        return (data[part],) if isinstance(data, dict) and part in data else None
    return (data[part],) if isinstance(data, list) and part < len(data) else None


def _text(element: Any, key: str) -> str | None:
    value = element.get(key) if isinstance(element, dict) else None
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def identities(elements: list[Any]) -> tuple[str, ...]:
    """The keys that all elements have and that tell them apart; none where they are numbered."""
    return tuple(key for key in IDENTITIES if elements and all(_text(e, key) for e in elements))


def told_apart(element: Any, index: int, names: tuple[str, ...]) -> dict[str, str]:
    """What an element is of."""
    if not names:
        return {"index": str(index)}
    return {key: _text(element, key) or "" for key in names}


def _joined(outer: dict[str, str], inner: dict[str, str]) -> dict[str, str]:
    """Both; a name that is taken (a list in a list) gets a number."""
    joined = dict(outer)
    for key, value in inner.items():
        name, turn = key, 1
        while name in joined:
            turn += 1
            name = f"{key}{turn}"
        joined[name] = value
    return joined


def leaves(data: Any) -> Iterator[tuple[str, Hit]]:
    """Every number of a document, with its path; what a locked baseline keeps."""
    yield from _leaves(data, "", (), {})


def _leaves(
    data: Any, path: str, pointer: Pointer, of: dict[str, str]
) -> Iterator[tuple[str, Hit]]:
    if isinstance(data, dict):
        for key, value in data.items():
            if not path and key in ("format", "started_at", "finished_at"):
                continue
            shown = key if _KEY.fullmatch(key) and '"' not in key else _quoted(key)
            yield from _leaves(value, f"{path}.{shown}".lstrip("."), (*pointer, key), of)
    elif isinstance(data, list):
        names = identities(data)
        for index, element in enumerate(data):
            inner = _joined(of, told_apart(element, index, names))
            yield from _leaves(element, f"{path}[*]", (*pointer, index), inner)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        last = pointer[-1] if pointer else None
        if last not in of:  # an identity is a name, not a metric
            yield path, Hit(pointer, of, data)


def _quoted(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
