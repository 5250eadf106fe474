"""The examples of the rules on evaluations are true: what fails is found, what passes is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.gates import Verdict, judge
from trueup.gates.evals.checks import CHECKS
from trueup.gates.profile.load import parse_profile
from trueup.gates.profile.rules import Rule

PROFILE = """
[profile]
id = "mine"
summary = "evaluations, with the metadata and the log they are held against"
include = ["evals"]
[[artifact]]
kind = "metadata"
patterns = ["*.meta.json"]
[[artifact]]
kind = "telemetry"
patterns = ["telemetry.jsonl"]
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "mine.toml"
    path.write_text(PROFILE)
    return path


def rules() -> tuple[Rule, ...]:
    return parse_profile(PROFILE.encode(), "mine").rules


RULES = [pytest.param(rule, id=rule.id) for rule in rules()]


def outcome(verdict: Verdict, rule: str) -> str:
    return next(one.status for one in verdict.rules if one.id == rule)


@pytest.mark.parametrize("rule", RULES)
def test_the_examples_of_a_rule_are_true(
    rule: Rule, profile: Path, tmp_path: Path, lay_out: Callable[..., list[Path]]
) -> None:
    lay_out(rule.passes, "eval/it.json", "passes")
    passing = judge(tmp_path / "passes", str(profile))
    assert outcome(passing, rule.id) == "true"
    assert rule.id not in {finding.rule for finding in passing.findings}
    lay_out(rule.fails, "eval/it.json", "fails")
    failing = judge(tmp_path / "fails", str(profile))
    assert outcome(failing, rule.id) == "false"
    found = next(finding for finding in failing.findings if finding.rule == rule.id)
    assert (found.severity, found.expected, found.fix) == (rule.severity, rule.expected, rule.fix)


def test_every_check_is_used_by_a_rule() -> None:
    assert {rule.check for rule in rules()} == {check.name for check in CHECKS}
