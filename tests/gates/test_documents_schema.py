"""JSON Schema as the gates apply it: what the library lets through is closed, and told plainly."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from trueup.gates.documents.model import Document, Subject
from trueup.gates.documents.paths import get, parse_path, select
from trueup.gates.documents.registry import document_checks, every_check
from trueup.gates.documents.schema import MAX_BREAKS, breaks, built_in_schema, whole_text
from trueup.gates.errors import ProfileError
from trueup.gates.profile.rules import Rule

NAN, INF = math.nan, math.inf


def said(data: Any, schema: dict[str, Any]) -> list[str]:
    return [f"{'.'.join(map(str, one.pointer))}: {one}" for one in breaks(data, schema)]


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        pytest.param({"minimum": 0, "maximum": 1}, NAN, id="nan-is-within-no-bounds"),
        pytest.param({"type": "number"}, NAN, id="nan-is-no-number"),
        pytest.param({}, INF, id="infinity-needs-no-keyword-to-be-refused"),
        pytest.param({"minimum": 0}, -INF, id="minus-infinity"),
        pytest.param({"type": "integer"}, 2.0, id="2.0-is-no-integer"),
        pytest.param({"type": "integer"}, True, id="true-is-no-integer"),
        pytest.param({"type": "number"}, "1", id="text-is-no-number"),
        pytest.param(
            {"pattern": "^[0-9a-f]{4}$"}, "00ff\n", id="a-pattern-ends-where-the-text-does"
        ),
        pytest.param({"pattern": r"^\d+$"}, "١٢", id="digits-are-ascii"),
        pytest.param({"format": "date-time"}, "2026-01-01T00:00:00", id="a-time-needs-a-zone"),
        pytest.param({"format": "date-time"}, "2026-01-01", id="a-date-is-no-time"),
        pytest.param({"format": "date-time"}, "2026-02-30T00:00:00Z", id="no-30th-of-february"),
        pytest.param({"format": "date-time"}, "2026-01-01T00:00:00Z\n", id="time-with-line-end"),
        pytest.param({"format": "date-time"}, "1767225600", id="a-number-is-no-time"),
        pytest.param({"multipleOf": 0.1}, 0.25, id="not-a-multiple"),
        pytest.param({"enum": [1]}, True, id="true-is-not-1"),
        pytest.param({"const": 0}, False, id="false-is-not-0"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(schema: dict[str, Any], bad: Any) -> None:
    assert len(breaks(bad, schema)) == 1


@pytest.mark.parametrize(
    ("schema", "good"),
    [
        pytest.param({"multipleOf": 0.1}, 0.3, id="multiples-are-decimal"),
        pytest.param({"multipleOf": 0.1}, 1e300, id="large-multiples"),
        pytest.param({"type": "integer", "minimum": 0}, 2**63, id="integers-stay-exact"),
        pytest.param({"format": "date-time"}, "2026-01-01T00:00:00.25+02:00", id="an-offset"),
        pytest.param({"pattern": "[$]"}, "$", id="a-dollar-in-a-class-is-a-dollar"),
        pytest.param({"pattern": r"\$$"}, "5$", id="an-escaped-dollar-is-a-dollar"),
    ],
)
def test_a_value_that_fits_passes(schema: dict[str, Any], good: Any) -> None:
    assert breaks(good, schema) == []


def test_integers_past_a_double_are_compared_exactly() -> None:
    assert breaks(2**53 + 1, {"maximum": 2**53})
    assert breaks(2**53 + 1, {"const": 2**53})


def test_an_unknown_key_brings_a_suggestion_and_its_own_place() -> None:
    schema = {"properties": {"sha256": {}}, "additionalProperties": False}
    assert said({"a": 1, "sha265": ""}, schema) == [
        "a: an unknown key; expected one of the keys sha256",
        "sha265: an unknown key; expected one of the keys sha256; did you mean sha256?",
    ]


def test_a_missing_key_names_the_key_that_may_stand_for_it() -> None:
    schema = {"required": ["step", "loss"], "properties": {"step": {"title": "the outer step"}}}
    assert said({"steps": 3}, schema) == [
        ": no key step; expected the key step (the outer step); is steps meant?",
        ": no key loss; expected the key loss",
    ]


def test_of_several_forms_the_nearest_is_told() -> None:
    schema = {"oneOf": [{"type": "string"}, {"type": "object", "required": ["path"]}]}
    assert said({"x": {"pth": 1}}, {"properties": {"x": schema}}) == [
        "x: no key path; expected the key path; is pth meant?"
    ]
    assert said(3, schema) == [": 3; expected text or an object"]


def test_more_than_one_form_that_fits_is_told() -> None:
    assert said(3, {"oneOf": [{"type": "number"}, {"minimum": 1}]}) == [
        ": 3; expected exactly one of several forms"
    ]


@pytest.mark.parametrize(
    ("schema", "data", "words"),
    [
        ({"minimum": 1}, 0, "0; expected at least 1"),
        ({"exclusiveMaximum": 1}, 1, "1; expected less than 1"),
        ({"enum": ["a", "b"]}, "c", '"c"; expected one of "a", "b"'),
        ({"minItems": 2}, [1], "a list of 1; expected at least 2 in the list"),
        ({"uniqueItems": True}, [1, 1], "a list of 2; expected each value once"),
        ({"minProperties": 1}, {}, "an empty object; expected at least 1 keys"),
        ({"type": ["string", "null"]}, 1, "1; expected text or null"),
        ({"pattern": "^a", "title": "a word with a"}, "b", '"b"; expected a word with a'),
        ({"not": {"title": "an empty name", "const": ""}}, "", '""; expected not an empty name'),
    ],
)  # fmt: skip
def test_errors_are_told_in_words(schema: dict[str, Any], data: Any, words: str) -> None:
    assert [str(one) for one in breaks(data, schema)] == [words]


def test_nothing_is_fetched_for_a_reference() -> None:
    with pytest.raises(ProfileError, match="refers to another one"):
        breaks(1, {"$ref": "https://example.com/schema.json"})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strin"}, "is no JSON Schema"),
        ({"pattern": "("}, "is no JSON Schema"),
        ({"pattern": "(?u)a"}, "cannot be read"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "without end"),
    ],
)
def test_a_schema_that_is_none_is_an_error(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        breaks("x", schema)


@pytest.mark.parametrize("name", ["checkpoint/none", "sidecar", "../secrets", "os/path", ""])
def test_an_unknown_schema_is_an_error(name: str) -> None:
    with pytest.raises(ProfileError, match="unknown schema"):
        built_in_schema(name)


def test_what_is_wrong_everywhere_is_told_often_enough() -> None:
    assert len(breaks(["x"] * 5000, {"items": {"type": "number"}})) == MAX_BREAKS


def test_whole_text_keeps_other_escapes() -> None:
    assert whole_text(r"^[a-z$]\\$").pattern == r"^[a-z$]\\\Z"


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("train.lr", ("train", "lr")),
        ("evals[0].name", ("evals", 0, "name")),
        ("evals[*].accuracy", ("evals", "*", "accuracy")),
        ('"train.online_updates"', ("train.online_updates",)),
        ('config."a.b"[2]', ("config", "a.b", 2)),
        ("[0]", (0,)),
        ("*.sha256", ("*", "sha256")),
    ],
)
def test_ways_are_parsed(path: str, parts: tuple[str | int, ...]) -> None:
    assert parse_path(path) == parts


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[-1]", "a[x]", '"a', "a.", ".", "a]b"])
def test_what_is_no_way_is_refused(path: str) -> None:
    with pytest.raises(ProfileError, match="no way into a document"):
        parse_path(path)


def test_select_gives_every_value_with_its_own_pointer() -> None:
    data = {"evals": [{"acc": 1}, {"acc": 2}, {"other": 3}, 4]}
    assert list(select(data, parse_path("evals[*].acc"))) == [
        (("evals", 0, "acc"), 1),
        (("evals", 1, "acc"), 2),
    ]


def test_get_takes_anything() -> None:
    assert get({"a": [{"b": 1}]}, "a", 0, "b") == 1
    assert get({"a": "text"}, "a", 0) is None
    assert get([1], 3) is None
    assert get(None, "a") is None


def rule(check: str, **params: Any) -> Rule:
    return Rule("OWN001", "error", "s", "w", "e", "f", check, params=params, on="metadata")


def ask(check: str, data: Any, **params: Any) -> list[str]:
    """The flaws, or `not applied`."""
    subject = Subject("x.json", "metadata", None, Document(data, "JSON", 1), None)  # type: ignore[arg-type]
    answer = document_checks()[check].run(subject, rule(check, **params))
    if not answer.read:
        assert answer.reason
        return ["not applied"]
    return [f"{flaw.where.key}: {flaw.got}" for flaw in answer.flaws]


@pytest.mark.parametrize(
    ("check", "data", "params", "flaws"),
    [
        ("schema", {"a": 1}, {"schema": {"required": ["a"]}}, []),
        ("schema", {}, {"schema": {"required": ["a"]}}, ["None: no key a; expected the key a"]),
        ("has_keys", {"a": 0}, {"keys": ["a"]}, []),
        ("has_keys", {"a": None}, {"keys": ["a", "b.c"]}, ["a: null", "b.c: absent"]),
        ("has_no_keys", {"a": {"b": 1}}, {"pattern": "version"}, []),
        ("has_no_keys", {}, {"pattern": "version"}, []),
        ("has_no_keys", {"a": [{"schema_version": 1}]}, {"pattern": "version"},
         ['a[0].schema_version: the key "schema_version"']),
        ("value_between", {"v": [0, 0.5, 1]}, {"keys": ["v[*]"], "min": 0, "max": 1}, []),
        ("value_between", {"v": [NAN, "1", True, None, 2]}, {"keys": ["v[*]"], "min": 0, "max": 1},
         ["v[0]: NaN, which is no number", 'v[1]: "1", which is no number',
          "v[2]: true, which is no number", "v[3]: null, which is no number", "v[4]: 2"]),
        ("value_between", {"a": 1}, {"keys": ["b"], "min": 0}, ["not applied"]),
        ("value_one_of", {"m": "l2"}, {"keys": ["m"], "values": ["l2", "loss"]}, []),
        ("value_one_of", {"m": True}, {"keys": ["m"], "values": [1]}, ["m: true"]),
        ("values_equal", {"a": 1, "b": 1}, {"keys": ["a", "b"]}, []),
        ("values_equal", {"a": 1, "b": 1.0}, {"keys": ["a", "b"]}, ["b: 1.0, but a is 1"]),
        ("values_equal", {"a": 1}, {"keys": ["a", "b"]}, ["not applied"]),
    ],
)  # fmt: skip
def test_common_checks(check: str, data: Any, params: dict[str, Any], flaws: list[str]) -> None:
    assert ask(check, data, **params) == flaws


@pytest.mark.parametrize(
    ("check", "params"),
    [
        ("has_keys", {"keys": ["a..b"]}),
        ("has_keys", {"keys": [1]}),
        ("has_no_keys", {"pattern": "("}),
    ],
)
def test_parameters_that_mean_nothing_are_errors(check: str, params: dict[str, Any]) -> None:
    with pytest.raises(ProfileError):
        ask(check, json.loads('{"a": 1}'), **params)


def test_no_two_checks_share_a_name() -> None:
    assert len(document_checks()) == len(every_check())
