"""The path to one value of a document: a JSON pointer (RFC 6901), or the part of JSONPath
(RFC 9535) that names exactly one value: `$.results["piqa"].acc`, `$.runs[0].loss`."""

from __future__ import annotations

import re
from typing import Any

from trueup.gates.documents.model import Pointer, dotted

_NAME = r"[A-Za-z_\u0080-\U0010ffff][\w\u0080-\U0010ffff-]*"
_SEGMENT = re.compile(
    rf"\.(?P<name>{_NAME})|\[(?P<index>0|-?[1-9][0-9]{{0,9}})\]"
    r"""|\['(?P<single>(?:[^'\\]|\\.)*)'\]|\["(?P<double>(?:[^"\\]|\\.)*)"\]"""
)
_MANY = re.compile(r"\.\.|\.?\*|\[[*?]|\[[^\]'\"]*[:,]")


def parse_pointer(text: str) -> Pointer | str:
    """The way to the value, or what is wrong with the text."""
    if text.startswith("/"):
        if re.search(r"~(?![01])", text):
            return f"{text!r}: ~ stands before 0 or 1 in a JSON pointer"
        parts = text[1:].split("/")
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
    if not text.startswith("$"):
        return f"{text!r} starts neither with / nor with $"
    way: list[str | int] = []
    at = 1
    while at < len(text):
        match = _SEGMENT.match(text, at)
        if match is None:
            rest = text[at : at + 20]
            if _MANY.match(rest):
                return f"{text!r} may name many values; a criterion reads one"
            return f"{text!r} cannot be read from {rest!r} on"
        way.append(_step(match))
        at = match.end()
    return tuple(way) if way else f"{text!r} names the whole document"


def _step(match: re.Match[str]) -> str | int:
    if match["index"] is not None:
        return int(match["index"])
    if match["name"] is not None:
        return match["name"]
    quoted = match["single"] if match["single"] is not None else match["double"]
    return re.sub(r"\\(.)", r"\1", quoted)


def follow(data: Any, way: Pointer) -> tuple[Any, Pointer] | str:
    """The value and the exact way to it, or where the way ends."""
    value: Any = data
    gone: Pointer = ()
    for step in way:
        if isinstance(value, dict) and str(step) in value and not isinstance(step, int):
            value, gone = value[step], (*gone, step)
        elif isinstance(value, list) and (index := _index(step, len(value))) is not None:
            value, gone = value[index], (*gone, index)
        else:
            return f"no {step!r} in {dotted(gone) or 'the document'}, which is {_kind(value)}"
    return value, gone


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, dict) else "a plain value"


def _index(step: str | int, length: int) -> int | None:
    """A place in a list: JSON pointers write it as text, JSONPath may count from the end."""
    if isinstance(step, str):
        if not re.fullmatch(r"0|[1-9][0-9]{0,9}", step, re.ASCII):
            return None
        step = int(step)
    index = step + length if step < 0 else step
    return index if 0 <= index < length else None
