from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import pytest
from jsonschema import Draft202012Validator, ValidationError

from trueup.oracle.verdict import Verification
from trueup.render.json import dumps, jsonable, load_schema, verify_document


def _strictly(text: str) -> Any:
    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def validator() -> Draft202012Validator:
    schema = load_schema("verify")
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("name", ["failed", "passed"])
def test_the_document_is_strict_json_that_its_schema_accepts(
    name: str, validator: Draft202012Validator, request: pytest.FixtureRequest
) -> None:
    text = dumps(verify_document(request.getfixturevalue(name)))
    assert text.isascii()
    validator.validate(_strictly(text))


def test_the_keys_promised_to_users_are_there(failed: Verification) -> None:
    document = verify_document(failed)
    assert {"verdict", "backend", "contracts", "skipped"} <= set(document)
    contract = document["contracts"][0]
    assert {"id", "verdict", "reading", "lanes"} <= set(contract)
    lane = contract["lanes"][0]
    promised = {"lane", "verdict", "cases", "elements", "launches", "worst", "findings"}
    assert promised <= set(lane)
    assert {"ratio", "where", "error", "allowed"} <= set(lane["worst"])


def test_a_ratio_without_a_number_is_null_and_beyond(failed: Verification) -> None:
    worst = verify_document(failed)["contracts"][0]["lanes"][1]["worst"]
    assert worst["ratio"] is None
    assert worst["error"] is None
    assert worst["allowed"] == 0.0
    assert worst["beyond"] is True


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param(("verdict",), "pass", id="verdict-in-lower-case"),
        pytest.param(("contracts", 0, "lanes", 0, "cases"), -1, id="negative-count"),
        pytest.param(("contracts", 0, "lanes", 0, "worst", "ratio"), None, id="null-not-beyond"),
        pytest.param(("contracts", 0, "lanes", 0, "worst", "beyond"), True, id="beyond-a-number"),
        pytest.param(("contracts", 0, "backend"), "auto", id="a-contract-runs-somewhere"),
        pytest.param(("contracts", 0, "lanes", 0, "findings", 0, "fix"), None, id="no-fix"),
    ],
)
def test_the_schema_rejects(
    path: tuple[Any, ...], value: Any, failed: Verification, validator: Draft202012Validator
) -> None:
    document = verify_document(failed)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ValidationError):
        validator.validate(document)


def test_jsonable_keeps_numbers_and_drops_what_json_cannot_say() -> None:
    data = {1: (1.5, math.nan, -math.inf), "b": {"c": True, "d": None}, "e": {3}}
    assert jsonable(data) == {"1": [1.5, None, None], "b": {"c": True, "d": None}, "e": [3]}
