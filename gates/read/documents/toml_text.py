"""Reads a TOML document with the standard library, and checks what that lets through."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trueup.gates.documents.model import Pointer, dotted
from trueup.gates.findings import show
from trueup.gates.read.documents.json_text import Parsed
from trueup.gates.read.documents.places import Lines, Places
from trueup.gates.read.documents.source import Report, Text
from trueup.gates.read.documents.toml_places import statements, tree_of, twin
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.numbers import fits_int64, flaw_of_float, is_huge
from trueup.gates.read.toml import DOTS

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_Fault = Callable[[str, str, int | None, Pointer], None]
_TWICE = ("Cannot overwrite", "Cannot declare", "Cannot mutate", "Duplicate inline")


@dataclass(frozen=True, slots=True)
class _Real:
    """A float as it was written."""

    text: str


def parse_toml(source: Text, report: Report, limits: Limits) -> Parsed:
    """The tables of a TOML text."""
    lines = Lines(source.text, source.shift)

    def fault(kind: str, got: str, at: int | None, pointer: Pointer = ()) -> None:
        line, byte = (None, None) if at is None else (lines.line(at), lines.byte(at))
        report(Fault(kind, got, line, byte, key=dotted(pointer)))

    dots = DOTS.search(source.text)
    if dots is not None:
        fault("document_too_deep", f"more than {limits.max_depth} levels", dots.start())
        return Parsed(None, Places(None, lines), False, 1)
    try:
        data = tomllib.loads(source.text, parse_float=_Real)
    except tomllib.TOMLDecodeError as error:
        members = _broken(source.text, str(error), fault, lines)
        return Parsed(None, Places(None, lines), False, members)
    except RecursionError:
        fault("document_too_deep", f"more than {limits.max_depth} levels", None)
        return Parsed(None, Places(None, lines), False, 1)
    except ValueError as error:  # the interpreter's own limit on the digits of an integer
        fault("document_number_too_long", str(error).split(";")[0], None)
        return Parsed(None, Places(None, lines), False, 1)
    places = Places(tree_of(source.text), lines)
    walk = _Walk(lambda kind, got, way: fault(kind, got, _nearest(places, way), way), limits)
    complete = walk.run(data)
    return Parsed(data, places, complete, walk.members)


def _nearest(places: Places, pointer: Pointer) -> int | None:
    for end in range(len(pointer), 0, -1):
        at = places.offset(pointer[:end])
        if at is not None:
            return at
    return None


def _broken(text: str, message: str, fault: _Fault, lines: Lines) -> int:
    """Report why a text is no TOML; give how many values stand before that place."""
    found = _AT.search(message)
    said = message[: found.start()] if found else message
    at = len(text)
    if found and found[1]:
        at = lines.start(int(found[1])) + int(found[2]) - 1
    if said.startswith(_TWICE):
        _twice(text, said, at, fault, lines)
    else:
        cut = not (found and found[1])
        fault("document_truncated" if cut else "document_syntax", said, at, ())
    return sum(1 for one in statements(text) if not one.header and one.at < at)


def _twice(text: str, said: str, at: int, fault: _Fault, lines: Lines) -> None:
    """Show both places of a key that is set twice."""
    found = twin(text, at)
    if found is None:
        fault("document_duplicate_key", said, at, ())
        return
    after = _rest_of_line(text, found.second)
    got = f"{after} again"
    if found.first is not None:
        got = f"{_rest_of_line(text, found.first)} at line {lines.line(found.first)}, then {after}"
    fault("document_duplicate_key", got, found.second, found.pointer)


def _rest_of_line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return show(text[at : len(text) if end < 0 else end].strip().encode())


@dataclass(slots=True)
class _Walk:
    """Goes through the values without recursion, judges them, and makes them plain data."""

    fault: Callable[[str, str, Pointer], None]
    limits: Limits
    members: int = 0

    def run(self, data: dict[str, Any]) -> bool:
        """False if the document passes a limit."""
        waiting: list[tuple[Pointer, Any]] = [((), data)]
        while waiting:
            way, holder = waiting.pop()
            if len(way) >= self.limits.max_depth:
                self.fault("document_too_deep", f"more than {self.limits.max_depth} levels", way)
                return False
            pairs = holder.items() if isinstance(holder, dict) else enumerate(holder)
            for key, value in list(pairs):
                self.members += 1
                if isinstance(value, dict | list):
                    waiting.append(((*way, key), value))
                else:
                    holder[key] = self.scalar(value, (*way, key))
            if self.members > self.limits.max_nodes:
                self.fault("document_too_large", f"more than {self.limits.max_nodes} values", way)
                return False
        return True

    def scalar(self, value: Any, way: Pointer) -> Any:
        """A value as JSON could hold it."""
        if isinstance(value, _Real):
            return self.real(value.text, way)
        if type(value) is int:
            if is_huge(value, self.limits.max_digits):
                got = f"about {value.bit_length() * 3 // 10} digits"
                self.fault("document_number_too_long", got, way)
                return float("nan")
            if not fits_int64(value):
                self.fault("document_past_int64", str(value), way)
            return value
        if isinstance(value, datetime.datetime | datetime.date | datetime.time):
            text = value.isoformat()
            if not isinstance(value, datetime.datetime) or value.tzinfo is None:
                self.fault("document_naive_time", text, way)
            return text
        return value

    def real(self, text: str, way: Pointer) -> float:
        """A float, with what its literal hides."""
        plain = text.replace("_", "")
        value = float(plain)
        if plain.lstrip("+-") in ("nan", "inf"):
            self.fault("document_non_finite", text, way)
            return value
        kind = flaw_of_float(plain.lstrip("+"), value)
        if kind is not None:
            self.fault(f"document_{kind}", text, way)
        return value
