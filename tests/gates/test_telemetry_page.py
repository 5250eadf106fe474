"""docs/telemetry.md says of each key which rules read it, and of each parameter where it is."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from trueup.gates.profile.load import load_profile, parse_profile
from trueup.gates.telemetry.registry import CHECKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "telemetry.md").read_text("utf-8")


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("telemetry_keys", DOCS / "telemetry_keys.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["telemetry_keys"] = module
    spec.loader.exec_module(module)
    return module


keys = _script()


def table(profile: str) -> list[list[str]]:
    found = re.search(rf"<!-- {profile} -->\n(.*?)<!-- end {profile} -->", PAGE, re.DOTALL)
    assert found is not None
    rows = found[1].strip().split("\n")[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_page_is_filled_in_as_the_profiles_are() -> None:
    assert keys.filled(PAGE) == PAGE, "run python docs/telemetry_keys.py"


@pytest.mark.parametrize("profile", ["nl", "dqn"])
def test_each_key_is_read_by_a_rule_and_each_rule_reads_a_key(profile: str) -> None:
    read: set[str] = set()
    for cell, meaning, ids in table(profile):
        assert meaning
        for key in re.findall(r"`([^`]+)`", cell):
            assert keys.rules_on(key, profile), key
        read |= set(ids.split(", "))
    rules = {rule.id: rule for rule in load_profile(profile).rules_on("telemetry")}
    everything = {name for name, rule in rules.items() if rule.pattern == "^.*$"}
    patterns_alone = {"DQN042", "DQN046"}  # a static monitor; keys that must not be there
    assert rules.keys() - everything - patterns_alone == read


def test_a_rule_on_records_reads_the_fields_it_names() -> None:
    assert "TEL014" in keys.rules_on("layer{L}.cms.{level}.chunk_tokens", "nl")
    assert "TEL014" not in keys.rules_on("layer{L}.cms.{level}.grad_norm", "nl")
    assert keys.rules_on("loss", "nl")[:2] == ["TEL005", "TEL007"]
    assert "TEL018" not in keys.rules_on("loss", "nl")  # a value of surprise_metric, no key


def test_declared_parameters_are_those_of_the_rules() -> None:
    rules = {rule.id: rule for rule in load_profile("nl").rules}
    rows = re.findall(r"^\| (TEL[^|]*) \| ([^|]*) \| [^|]* \|$", PAGE, re.MULTILINE)
    assert len(rows) > 12
    for ids, params in rows:
        for rule in ids.split(", "):
            for name in re.findall(r"`(\w+)`", params):
                checks = CHECKS[rules[rule].check].params
                assert name in checks or len(ids.split(", ")) > 1, (rule, name)
        named = {n for rule in ids.split(", ") for n in CHECKS[rules[rule].check].params}
        assert set(re.findall(r"`(\w+)`", params)) <= named


def test_example_of_a_profile_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    profile = parse_profile(text.encode(), "mine.toml")
    (rule,) = [rule for rule in profile.rules if rule.id == "TEL014"]
    assert rule.params["agg"] == "sum"
    assert tomllib.loads(text)["profile"]["include"] == ["nl"]
