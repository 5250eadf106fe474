"""Profiles: what they must be, and what is said of one that is not."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest

from trueup.gates import ProfileError
from trueup.gates.catalogue.kinds import Kind, kinds
from trueup.gates.profile.load import _validator, built_in, load_profile, parse_profile
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry.registry import CHECKS

RULE = """
[[rule]]
id = "OWN001"
severity = "error"
summary = "s"
why = "w"
check = "finite"
keys = ["x"]
expected = "e"
fix = "f"
"""
HEAD = """
[profile]
id = "mine"
summary = "s"
[[artifact]]
kind = "telemetry"
patterns = ["*.json"]
"""
RECORD = r"pattern = '^a\.(?P<field>b)$'"


def test_built_in_profiles_load() -> None:
    assert "nl" in built_in()
    profile = load_profile("nl")
    assert len(profile.rules) >= 29
    assert re.fullmatch("[0-9a-f]{64}", profile.digest)


def test_rules_and_kinds_say_all_a_reader_needs() -> None:
    entries: list[Rule | Kind] = [*load_profile("nl").rules, *kinds().values()]
    for entry in entries:
        for part in (entry.summary, entry.why, entry.expected, entry.fix):
            assert part.strip() == part
            assert part


def test_ids_are_unique_over_rules_and_kinds() -> None:
    ids = [rule.id for rule in load_profile("nl").rules] + [kind.id for kind in kinds().values()]
    assert len(ids) == len(set(ids))


def test_every_check_is_used_or_reachable_by_name() -> None:
    assert {rule.check for rule in load_profile("nl").rules_on("telemetry")} <= CHECKS.keys()
    for name, check in CHECKS.items():
        assert name == check.name
        assert check.build or (check.observe and check.finish)


def test_users_profile_is_loaded_from_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + RULE)
    profile = load_profile(str(path))
    assert (profile.id, profile.rules[0].check, profile.step) == ("mine", "finite", "step")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[profile", "is not TOML", id="syntax"),
        pytest.param(HEAD, "has no rules", id="no-rules"),
        pytest.param(
            HEAD + RULE.replace('"finite"', '"finit"'),
            r"rule\[0\] \(OWN001\)\.check: unknown check.*did you mean finite",
            id="unknown-check",
        ),
        pytest.param(
            HEAD + RULE.replace("severity", "severety"), "did you mean severity", id="misspelt-key"
        ),
        pytest.param(HEAD + RULE.replace('"error"', '"fatal"'), "rule.0..severity", id="severity"),
        pytest.param(HEAD + RULE.replace('"OWN001"', '"TEL"'), "rule.0..id", id="bad-id"),
        pytest.param(
            HEAD + RULE.replace('"OWN001"', '"RDR900"'), "belong to trueup", id="reserved"
        ),
        pytest.param(HEAD + RULE + RULE, "used before", id="twice"),
        pytest.param(
            HEAD + RULE.replace('keys = ["x"]', 'pattern = "x"'), "rule.0..pattern", id="unanchored"
        ),
        pytest.param(
            HEAD + RULE.replace('keys = ["x"]', 'pattern = "^(x$"'),
            "unterminated",
            id="bad-pattern",
        ),
        pytest.param(
            HEAD + RULE.replace('keys = ["x"]', ""), "exactly one of keys or pattern", id="none"
        ),
        pytest.param(
            HEAD + RULE + "params = { low = 1 }\n", "unknown parameter of finite", id="parameter"
        ),
        pytest.param(
            HEAD + RULE.replace('"finite"', '"at_least"'), r"params\.min.*got nothing", id="missing"
        ),
        pytest.param(
            HEAD + RULE.replace('"finite"', '"at_least"') + "params = { min = true }\n",
            r"params\.min.*got True.*expected int or float",
            id="boolean-for-number",
        ),
        pytest.param(
            HEAD + RULE.replace('"finite"', '"record"') + 'params = { required = ["b"] }\n',
            "compares the keys of one record",
            id="record-without-pattern",
        ),
    ],
)
def test_faulty_profile_is_refused_with_file_and_key(text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=re.compile(message, re.DOTALL)) as caught:
        parse_profile(text.encode(), "mine.toml")
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"a" * (1 << 21), b"a = " + b"[" * 5000])
def test_hostile_profile_is_refused(raw: bytes) -> None:
    with pytest.raises(ProfileError):
        parse_profile(raw, "mine.toml")


def test_unknown_name_suggests_a_built_in_one(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="did you mean nl"):
        load_profile("nll")
    with pytest.raises(ProfileError, match="cannot be read"):
        load_profile(str(tmp_path / "gone.toml"))


def test_record_pattern_is_taken(tmp_path: Path) -> None:
    text = RULE.replace('"finite"', '"record"').replace('keys = ["x"]', RECORD)
    profile = parse_profile((HEAD + text + 'params = { required = ["b"] }\n').encode(), "x")
    assert profile.rules[0].pattern == r"^a\.(?P<field>b)$"


def test_profile_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(_validator().schema)
