"""Holds a document to a JSON Schema (2020-12), without what schema libraries let through.

Closed here: NaN and infinity satisfy every bound; `format` is asserted, and a date-time ends where
its text does; `$` does not match before a last newline and `\\d` is 0-9 only; 2.0 is no integer;
`multipleOf` is decimal; references lead to the schema itself only.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import Any

from trueup.gates.documents.model import Pointer
from trueup.gates.errors import ProfileError
from trueup.gates.findings import show

MAX_BREAKS = 200  # of one document; what is wrong everywhere is told often enough
_NAME = re.compile(r"[a-z]+/[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Break:
    """One place where a document does not fit its schema."""

    pointer: Pointer
    got: str
    expected: str
    fix: str = ""

    def __str__(self) -> str:
        """As one sentence."""
        return f"{self.got}; expected {self.expected}" + (f"; {self.fix}" if self.fix else "")


@functools.cache
def built_in_schema(name: str) -> Mapping[str, Any]:
    """A schema that ships with the gates, such as `checkpoint/sidecar`."""
    folder, _, file = name.partition("/")
    try:
        if not _NAME.fullmatch(name):
            raise FileNotFoundError
        text = (resources.files(f"trueup.gates.{folder}") / f"{file}.schema.json").read_text(
            "utf-8"
        )
    except (FileNotFoundError, ModuleNotFoundError):
        raise ProfileError(
            "unknown schema", got=show(name), expected="a schema of the gates, or a table",
            fix="write it as FOLDER/NAME, such as checkpoint/sidecar",
        ) from None  # fmt: skip
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def breaks(data: Any, schema: str | Mapping[str, Any]) -> list[Break]:
    """Where a document does not fit a schema: one that ships with the gates, or a table."""
    from trueup.gates.documents.schema_words import in_words

    found: list[Break] = [
        Break(pointer, show(value), "a finite number") for pointer, value in non_finite(data)
    ]
    odd = {one.pointer for one in found}
    for error in _errors(data, schema):
        found.extend(one for one in in_words(error) if one.pointer not in odd)
        if len(found) >= MAX_BREAKS:
            break
    return found[:MAX_BREAKS]


def non_finite(data: Any) -> Iterator[tuple[Pointer, float]]:
    """Every NaN and infinity of a document."""
    waiting: list[tuple[Pointer, Any]] = [((), data)]
    while waiting:
        pointer, value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield pointer, value
        elif isinstance(value, dict):
            waiting.extend(((*pointer, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            waiting.extend(((*pointer, index), inner) for index, inner in enumerate(value))


def _errors(data: Any, schema: str | Mapping[str, Any]) -> Iterator[Any]:
    from referencing.exceptions import Unresolvable

    judge = _named(schema) if isinstance(schema, str) else compiled(schema)
    try:
        yield from judge.iter_errors(data)
    except Unresolvable as error:
        raise ProfileError(
            "a schema refers to another one", got=show(str(error)), expected="#/$defs/NAME",
            fix="put what it refers to into its own $defs",
        ) from None  # fmt: skip
    except RecursionError:
        raise ProfileError("a schema refers to itself without end") from None
    except (re.error, ValueError) as error:
        raise ProfileError("a pattern of a schema cannot be read", got=str(error)) from None


@functools.cache
def _named(name: str) -> Any:
    return compiled(built_in_schema(name))


def compiled(schema: Mapping[str, Any]) -> Any:
    """A validator; raises `ProfileError` if the schema is none."""
    from jsonschema.exceptions import SchemaError
    from referencing.jsonschema import EMPTY_REGISTRY

    judge = _judge()
    try:
        judge.check_schema(schema)
    except SchemaError as error:
        place = ".".join(str(part) for part in error.path)
        raise ProfileError(
            "is no JSON Schema", where=f"schema.{place}" if place else "schema",
            got=show(error.message), expected="JSON Schema 2020-12",
        ) from None  # fmt: skip
    return judge(schema, registry=EMPTY_REGISTRY, format_checker=_formats())


@functools.cache
def _judge() -> Any:
    from jsonschema import Draft202012Validator, validators

    types = Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: type(value) is int,
            "number": lambda _, value: (
                type(value) is int or (type(value) is float and math.isfinite(value))
            ),
        }
    )
    words = {"pattern": _pattern, "multipleOf": _multiple_of}
    return validators.extend(Draft202012Validator, words, type_checker=types)


@functools.cache
def _formats() -> Any:
    from jsonschema import FormatChecker

    checker = FormatChecker()
    if "date-time" not in checker.checkers:
        raise ProfileError("the library for date-time is not installed", fix="install trueup again")
    strict = FormatChecker(())
    for name, (check, raises) in checker.checkers.items():
        strict.checks(name, raises=raises)(functools.partial(_whole, check))
    return strict


def _whole(check: Any, value: Any) -> bool:
    """A format's check, of text without line ends and in ASCII digits."""
    if isinstance(value, str) and ("\n" in value or "\r" in value):
        return False
    return bool(check(value))


@functools.lru_cache(maxsize=512)
def whole_text(pattern: str) -> re.Pattern[str]:
    """A schema's pattern as JSON Schema means it: `$` at the very end, \\d for 0-9."""
    out, inside, at = [], False, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            out.append(pattern[at : at + 2])
            at += 2
            continue
        inside = (inside or char == "[") and char != "]"
        out.append(r"\Z" if char == "$" and not inside else char)
        at += 1
    return re.compile("".join(out), re.ASCII)


def _pattern(validator: Any, pattern: str, value: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "string") and not whole_text(pattern).search(value):
        yield ValidationError(f"{show(value)} does not match {pattern}")


def _multiple_of(validator: Any, unit: float, value: Any, _: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(unit)):
        yield ValidationError(f"{value} is not a multiple of {unit}")
