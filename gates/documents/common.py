"""Checks that fit every kind of document: its JSON Schema, keys, values, relations."""

from __future__ import annotations

import math
import re
from typing import Any

from trueup.gates.documents.model import Answer, DocumentCheck, Flaw, Pointer, Subject, dotted
from trueup.gates.documents.paths import parse_path, select
from trueup.gates.errors import ProfileError
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

TEXTS = ("metadata", "eval", "manifest")  # kinds whose artifacts are JSON, YAML or TOML


def number(value: Any) -> int | float | None:
    """A finite number; None for anything else, true and false included."""
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return value
    return None


def fits_schema(subject: Subject, rule: Rule) -> Answer:
    """Hold the whole document to a schema that ships with the gates, or to a table."""
    from trueup.gates.documents.schema import breaks

    document = subject.document
    flaws = tuple(
        Flaw(document.where(*one.pointer), str(one))
        for one in breaks(document.data, rule.params["schema"])
    )
    return Answer(1, flaws)


def has_keys(subject: Subject, rule: Rule) -> Answer:
    """Every way leads to a value that is not null."""
    document = subject.document
    flaws = []
    for path in _paths(rule, "keys"):
        found = list(select(document.data, parse_path(path, rule.id)))
        if not found:
            flaws.append(Flaw(document.where(*parse_path(path)), "absent"))
        flaws += [Flaw(document.where(*p), "null") for p, value in found if value is None]
    return Answer(len(rule.params["keys"]), tuple(flaws))


def has_no_keys(subject: Subject, rule: Rule) -> Answer:
    """No key anywhere in the document matches the pattern."""
    try:
        refused = re.compile(rule.params["pattern"])
    except re.error as error:
        raise ProfileError(f"params.pattern: {error}", where=rule.id) from None
    read, flaws = 0, []
    waiting: list[tuple[Pointer, Any]] = [((), subject.document.data)]
    while waiting:
        pointer, value = waiting.pop()
        pairs = (
            value.items() if isinstance(value, dict)
            else enumerate(value) if isinstance(value, list) else ()
        )  # fmt: skip
        for key, inner in pairs:
            read += 1
            if isinstance(key, str) and refused.search(key):
                flaws.append(Flaw(subject.document.where(*pointer, key), f"the key {show(key)}"))
            waiting.append(((*pointer, key), inner))
    return Answer(max(read, 1), tuple(flaws))


def is_between(subject: Subject, rule: Rule) -> Answer:
    """Each value is a number within the bounds that are given."""
    low, high = rule.params.get("min", -math.inf), rule.params.get("max", math.inf)

    def flaw(value: Any) -> str | None:
        known = number(value)
        if known is None:
            return f"{show(value)}, which is no number"
        return None if low <= known <= high else show(value)

    return _each(subject, rule, flaw)


def is_one_of(subject: Subject, rule: Rule) -> Answer:
    """Each value is one of those listed, of the same type."""
    known = rule.params["values"]
    fits = [(type(one), one) for one in known]
    return _each(
        subject, rule, lambda value: None if (type(value), value) in fits else show(value)
    )  # fmt: skip


def are_equal(subject: Subject, rule: Rule) -> Answer:
    """All values that the ways lead to are the same, in type as well."""
    document = subject.document
    found = [
        pair for path in _paths(rule, "keys") for pair in select(document.data, parse_path(path))
    ]
    if len(found) < 2:
        return Answer(0, reason=f"fewer than two of {', '.join(rule.params['keys'])} are there")
    first, expected = found[0]
    flaws = tuple(
        Flaw(document.where(*pointer), f"{show(value)}, but {dotted(first)} is {show(expected)}")
        for pointer, value in found[1:]
        if type(value) is not type(expected) or value != expected
    )
    return Answer(len(found), flaws)


def _each(subject: Subject, rule: Rule, flaw: Any) -> Answer:
    """Ask of every value that the ways lead to; a way that leads nowhere is no flaw here."""
    document = subject.document
    read, flaws = 0, []
    for path in _paths(rule, "keys"):
        for pointer, value in select(document.data, parse_path(path, rule.id)):
            read += 1
            got = flaw(value)
            if got is not None:
                flaws.append(Flaw(document.where(*pointer), got))
    return Answer(read, tuple(flaws), "" if read else f"none of {', '.join(rule.params['keys'])}")


def _paths(rule: Rule, name: str) -> list[str]:
    paths = rule.params[name]
    if not paths or not all(isinstance(path, str) for path in paths):
        raise ProfileError(
            f"params.{name}", where=rule.id, got=show(paths), expected="ways, as text"
        )
    return list(paths)


CHECKS: tuple[DocumentCheck, ...] = (
    DocumentCheck(
        "schema", TEXTS, "the document fits a JSON Schema: one of the gates by name, or a table",
        fits_schema, {"schema": (str, dict)},
    ),
    DocumentCheck(
        "has_keys", TEXTS, "each of `keys` (ways such as `train.lr`, `evals[*].name`) is there",
        has_keys, {"keys": (list,)},
    ),
    DocumentCheck(
        "has_no_keys", TEXTS, "no key at any depth matches the regular expression `pattern`",
        has_no_keys, {"pattern": (str,)},
    ),
    DocumentCheck(
        "value_between", TEXTS, "each value at `keys` is a number within [`min`, `max`]",
        is_between, {"keys": (list,), "min": (int, float), "max": (int, float)}, ("min", "max"),
    ),
    DocumentCheck(
        "value_one_of", TEXTS, "each value at `keys` is one of `values`",
        is_one_of, {"keys": (list,), "values": (list,)},
    ),
    DocumentCheck(
        "values_equal", TEXTS, "all values at `keys` are the same", are_equal, {"keys": (list,)},
    ),
)  # fmt: skip
