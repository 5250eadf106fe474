"""Holds a TOML file of the user's to a JSON Schema, and says what is wrong in words.

One problem is told, the most telling one: an unknown key first, with the key it may have meant.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_SHOWN = 200  # characters of a value in a message
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list, or tables with a head in two brackets: [[name]]",
    "object": "a table",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a file: where in it, what, and what may have been meant."""

    place: str  # `waiver[0].expires`; empty for the file itself
    what: str
    fix: str


def first_problem(schema: dict[str, Any], data: Any) -> Problem | None:
    """The most telling way in which `data` is not what the schema asks for."""
    from jsonschema import FormatChecker

    validator = _judge()(schema, format_checker=FormatChecker(["date"]))
    errors = sorted(validator.iter_errors(data), key=lambda error: list(map(str, error.path)))
    if not errors:
        return None
    unknown = [error for error in errors if error.validator == "additionalProperties"]
    error = _inner((unknown or errors)[0])
    more = f"{len(errors)} problems in this file" if len(errors) > 1 else ""
    what, fix = _told(error)
    return Problem(dotted(error.absolute_path), what, fix or more)


@functools.cache
def _judge() -> Any:
    """The library's judge, but 2.0 is no integer, and `$` is the very end of a text."""
    from jsonschema import Draft202012Validator, validators

    from trueup.gates.documents.schema import whole_text

    def pattern(_: Any, rule: str, value: Any, __: Any) -> Iterator[Any]:
        from jsonschema import ValidationError

        if isinstance(value, str) and not whole_text(rule).search(value):
            yield ValidationError(f"{value!r} does not match {rule!r}")

    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int
    )
    return validators.extend(Draft202012Validator, {"pattern": pattern}, type_checker=types)


def _inner(error: Any) -> Any:
    """Of alternatives that all fail, the first that is of the value's own type."""
    while error.validator in ("anyOf", "oneOf") and error.context:
        fit = [one for one in error.context if one.validator != "type" or one.relative_path]
        if not fit:
            return error
        error = fit[0]
    return error


def _told(error: Any) -> tuple[str, str]:
    """What is wrong, and a suggestion."""
    value, rule = error.instance, error.validator_value
    kind = error.validator
    if kind == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        first = next((key for key in value if key not in known), "")
        return f"unknown key {short(first)}", closest(str(first), known) or _one_of(known)
    if kind == "required":
        missing = next((key for key in rule if key not in value), "?")
        return f"lacks the key {missing}", ""
    if kind == "enum":
        return f"is {short(value)}, expected {_one_of(rule)}", closest(str(value), rule)
    if kind == "type":
        return f"is {short(value)}, expected {_types(rule)}", ""
    if kind in ("anyOf", "oneOf"):
        return f"is {short(value)}, which is of none of the types it may have", ""
    if kind == "format":
        return f"is {short(value)}, expected a {rule} such as 2026-12-31", ""
    if kind == "pattern" and rule == "\\S":
        return "is blank", "say it in words"
    if kind == "pattern":
        like = f" such as {error.schema['examples'][0]}" if error.schema.get("examples") else ""
        return f"is {short(value)}, expected text of the form {rule}{like}", ""
    if kind in ("minItems", "minLength") and not value:
        return "is empty", ""
    return error.message[:_SHOWN], ""


def _types(rule: str | list[str]) -> str:
    return " or ".join(_TYPES[one] for one in ([rule] if isinstance(rule, str) else rule))


def _one_of(known: Iterable[str]) -> str:
    return f"one of {', '.join(map(str, known))}"


def short(value: Any) -> str:
    """A value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def dotted(path: Iterable[str | int]) -> str:
    """`waiver[0].rule`."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")


def closest(word: str, known: Iterable[str]) -> str:
    """A suggestion, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=2)
    return f"did you mean {' or '.join(near)}?" if near else ""
