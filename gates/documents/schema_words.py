"""Says in plain words what a schema's error means, and where."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trueup.gates.documents.model import Pointer
from trueup.gates.documents.schema import Break
from trueup.gates.findings import show

_TYPES = {
    "object": "an object", "array": "a list", "string": "text", "number": "a number",
    "integer": "a whole number", "boolean": "true or false", "null": "null",
}  # fmt: skip
_FORMATS = {
    "date-time": "a date and time with a zone, such as 2026-03-01T12:00:00Z",
    "date": "a date such as 2026-03-01",
    "uri": "a URI",
    "uuid": "a UUID",
    "email": "an e-mail address",
}


def in_words(error: Any) -> list[Break]:
    """One error of the schema library as breaks; an unknown key is a break of its own."""
    at: Pointer = tuple(error.absolute_path)
    if error.validator in ("anyOf", "oneOf") and error.context:
        return _nearest_branch(error, at)
    if error.validator in ("additionalProperties", "unevaluatedProperties"):
        return _unknown(error, at)
    if error.validator == "required":
        return _missing(error, at)
    said = _SAID.get(error.validator, _other)
    return [Break(at, _shown(error.instance), _titled(error) or said(error.validator_value, error))]


def _titled(error: Any) -> str:
    """A schema's `title` says in words what fits; bounds say more by their numbers."""
    schema = error.schema if isinstance(error.schema, Mapping) else {}
    if error.validator in ("pattern", "format", "type", "enum", "const", "not"):
        return str(schema.get("title", ""))
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return show(value)


def _or(words: Iterable[str]) -> str:
    return " or ".join(words)


def _unknown(error: Any, at: Pointer) -> list[Break]:
    """Each key that the schema does not know."""
    known = set(error.schema.get("properties", {}))
    every = sorted(known)
    listed = ", ".join(every[:12]) + (", ..." if len(every) > 12 else "")
    patterns = error.schema.get("patternProperties", {})
    from trueup.gates.documents.schema import whole_text

    found = []
    for key in error.instance:
        if key in known or any(whole_text(pattern).search(key) for pattern in patterns):
            continue
        expected = f"one of the keys {listed}" if known else "no key"
        found.append(Break((*at, key), "an unknown key", expected, _did_you_mean(key, known)))
    return found


def _missing(error: Any, at: Pointer) -> list[Break]:
    """A key that is required, with the key that may have been meant for it."""
    known = error.schema.get("properties", {})
    unknown = [key for key in error.instance if key not in known]
    found = []
    for key in error.validator_value:
        # The library gives one error for each missing key; only its message says which.
        if error.message.startswith(f"{key!r} is a required"):
            title = known.get(key, {}).get("title", "") if isinstance(known, Mapping) else ""
            near = difflib.get_close_matches(key, unknown, n=1)
            fix = f"is {near[0]} meant?" if near else ""
            expected = f"the key {key}" + (f" ({title})" if title else "")
            found.append(Break(at, f"no key {key}", expected, fix))
    return found


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=2)
    return f"did you mean {_or(near)}?" if near else ""


def _nearest_branch(error: Any, at: Pointer) -> list[Break]:
    """Of several forms that could fit, say what the nearest one lacks."""
    branches: dict[int, list[Any]] = {}
    for inner in error.context:
        branches.setdefault(inner.schema_path[0], []).append(inner)

    def distance(errors: list[Any]) -> tuple[bool, int, int]:
        wrong_type = any(one.validator in ("type", "const") and not one.path for one in errors)
        deepest = max(len(one.absolute_path) for one in errors)
        return wrong_type, -deepest, len(errors)

    title = str(error.schema.get("title", ""))
    best = min(branches.values(), key=distance)
    if all(distance(errors)[0] for errors in branches.values()):
        types = [one.validator_value for one in error.context if one.validator == "type"]
        kinds = [_TYPES.get(kind, kind) for kind in types if isinstance(kind, str)]
        return [Break(at, _shown(error.instance), title or _or(kinds) or "one of several forms")]
    found = [one for inner in best for one in in_words(inner)]
    if title:
        found = [Break(one.pointer, one.got, one.expected, one.fix or title) for one in found]
    return found


def _type(value: Any, _: Any) -> str:
    kinds = [value] if isinstance(value, str) else value
    return _or(_TYPES.get(kind, kind) for kind in kinds)


def _one_of(value: Any, _: Any) -> str:
    return f"one of {', '.join(show(one) for one in value)}"


def _other(value: Any, error: Any) -> str:
    return f"{error.validator} {show(value)}"


_SAID: dict[str, Callable[[Any, Any], str]] = {
    "type": _type,
    "enum": _one_of,
    "const": lambda value, _: show(value),
    "minimum": lambda value, _: f"at least {value}",
    "maximum": lambda value, _: f"at most {value}",
    "exclusiveMinimum": lambda value, _: f"more than {value}",
    "exclusiveMaximum": lambda value, _: f"less than {value}",
    "multipleOf": lambda value, _: f"a multiple of {value}",
    "minLength": lambda value, _: f"at least {value} characters",
    "maxLength": lambda value, _: f"at most {value} characters",
    "minItems": lambda value, _: f"at least {value} in the list",
    "maxItems": lambda value, _: f"at most {value} in the list",
    "minProperties": lambda value, _: f"at least {value} keys",
    "maxProperties": lambda value, _: f"at most {value} keys",
    "uniqueItems": lambda value, _: "each value once",
    "pattern": lambda value, _: f"text that matches {value}",
    "format": lambda value, _: _FORMATS.get(value, value),
    "contains": lambda value, _: f"a list that holds {value.get('title', 'such a value')}",
    "dependentRequired": lambda value, error: error.message,
    "not": lambda value, _: f"not {value.get('title', 'this')}",
    "oneOf": lambda value, _: "exactly one of several forms",
}
