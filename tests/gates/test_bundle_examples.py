"""The examples of the rules on bundles are true: what fails is found, what passes is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trueup.gates import judge
from trueup.gates.bundle.checks import CHECKS
from trueup.gates.profile.load import parse_profile
from trueup.gates.profile.rules import Rule

PROFILE = """
[profile]
id = "mine"
summary = "bundles, with the results in them"
include = ["bundle", "evals"]
"""
RULES = [rule for rule in parse_profile(PROFILE.encode(), "mine").rules if rule.on == "manifest"]


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.id) for rule in RULES])
def test_the_examples_of_a_rule_are_true(
    rule: Rule, tmp_path: Path, lay_out: Callable[..., list[Path]]
) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(PROFILE)
    for folder, text, status in (("yes", rule.passes, "true"), ("no", rule.fails, "false")):
        lay_out(text, "manifest.json", folder)
        verdict = judge(tmp_path / folder, str(profile))
        (outcome,) = (one for one in verdict.rules if one.id == rule.id)
        assert outcome.status == status
        found = [finding for finding in verdict.findings if finding.rule == rule.id]
        assert bool(found) == (status == "false")


def test_every_check_is_used_by_a_rule() -> None:
    assert {rule.check for rule in RULES} == {check.name for check in CHECKS}
