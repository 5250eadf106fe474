"""The examples of the rules on checkpoints are true: what fails is found, what passes is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.gates import Verdict, judge
from trueup.gates.checkpoint.checks import CHECKS
from trueup.gates.profile.load import parse_profile
from trueup.gates.profile.rules import Rule

PROFILE = """
[profile]
id = "mine"
summary = "checkpoints, with the log they are held against"
include = ["checkpoint", "sidecar", "sidecar_dqn"]
[[artifact]]
kind = "telemetry"
patterns = ["telemetry.jsonl"]
"""
# For user profiles: no rule that ships asks for it.
UNUSED = {"metadata_states"}


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
    lay_out(rule.passes, "it.meta.json", "passes")
    passing = judge(tmp_path / "passes", str(profile))
    assert outcome(passing, rule.id) == "true"
    assert rule.id not in {finding.rule for finding in passing.findings}
    lay_out(rule.fails, "it.meta.json", "fails")
    failing = judge(tmp_path / "fails", str(profile))
    assert outcome(failing, rule.id) == "false"
    found = next(finding for finding in failing.findings if finding.rule == rule.id)
    assert (found.severity, found.expected, found.fix) == (rule.severity, rule.expected, rule.fix)


@pytest.mark.parametrize("rule", RULES)
def test_examples_are_read_without_a_fault(
    rule: Rule, profile: Path, tmp_path: Path, lay_out: Callable[..., list[Path]]
) -> None:
    for name, example in (("passes", rule.passes), ("fails", rule.fails)):
        lay_out(example, "it.meta.json", name)
        verdict = judge(tmp_path / name, str(profile))
        assert not [one for one in verdict.findings if one.rule.startswith(("DOC", "RDR"))], name


def test_every_check_is_used_by_a_rule() -> None:
    assert {rule.check for rule in rules()} == {check.name for check in CHECKS} - UNUSED
