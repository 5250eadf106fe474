"""Every rule on telemetry and logs has two examples, and both are true."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from trueup.gates.collector import Collector
from trueup.gates.findings import RuleOutcome
from trueup.gates.judge import judge
from trueup.gates.profile.load import load_profile
from trueup.gates.profile.rules import Profile, Rule
from trueup.gates.read.rows.reader import Reader
from trueup.gates.telemetry.example import expanded
from trueup.gates.telemetry.registry import CHECKS
from trueup.gates.telemetry.table import TableJudge

PROFILES = {name: load_profile(name) for name in ("nl", "dqn")}
RULES = [
    pytest.param(profile, rule, id=rule.id)
    for profile in PROFILES.values()
    for rule in profile.rules_on("telemetry")
]
LOGS = [pytest.param(rule, id=rule.id) for rule in PROFILES["dqn"].rules_on("log")]


def outcome(profile: Profile, rule: Rule, example: str, folder: Path) -> RuleOutcome:
    """What becomes of one rule on the telemetry of its example, read as any other is."""
    path = folder / "telemetry.jsonl"
    path.write_text(expanded(example, profile.step))
    alone = dataclasses.replace(profile, rules=(rule,))
    collector = Collector()
    reader = Reader(
        path, report=lambda fault: collector.of_fault(path.name, fault),
        nullable=profile.nullable, step_key=profile.step, nesting=profile.nesting,
    )  # fmt: skip
    table = TableJudge(alone, path.name, collector)
    for batch in reader.batches():
        table.batch(batch, reader.engine.table.null_keys)
    (told,) = table.finish()
    found = {finding.rule for finding in collector.findings()}
    assert (rule.id in found) == (told.status == "false")
    return told


@pytest.mark.parametrize(("profile", "rule"), RULES)
def test_examples_of_a_rule_are_true(profile: Profile, rule: Rule, tmp_path: Path) -> None:
    kept = outcome(profile, rule, rule.passes, tmp_path)
    assert (kept.status, kept.reason) == ("true", "")
    assert outcome(profile, rule, rule.fails, tmp_path).status == "false"


@pytest.mark.parametrize("name", PROFILES)
def test_examples_are_judged_alike_by_the_whole_profile(name: str, tmp_path: Path) -> None:
    """One rule alone and all rules together: none of them changes what another one says."""
    path = tmp_path / "telemetry.jsonl"
    for rule in PROFILES[name].rules_on("telemetry")[::7]:
        for example, status in ((rule.passes, "true"), (rule.fails, "false")):
            path.write_text(expanded(example))
            told = {one.id: one.status for one in judge(path, name).rules}
            assert told[rule.id] == status, rule.id


@pytest.mark.parametrize("rule", LOGS)
def test_examples_of_rules_on_logs_are_true(rule: Rule, tmp_path: Path) -> None:
    for index, (example, status) in enumerate(((rule.passes, "true"), (rule.fails, "false"))):
        _, *files = re.split(r"(?m)^== (.+) ==\n", example)
        for name, content in zip(files[::2], files[1::2], strict=True):
            path = tmp_path / str(index) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        told = {one.id: one.status for one in judge(tmp_path / str(index), "dqn").rules}
        assert told[rule.id] == status


def test_every_check_on_telemetry_has_a_rule() -> None:
    used = {rule.check for one in PROFILES.values() for rule in one.rules_on("telemetry")}
    assert used == CHECKS.keys()


def test_a_repeated_row_counts_on() -> None:
    text = '\n3x {"step": 7, "loss": 1.5}\n{"step": -1}\n'
    assert expanded(text).splitlines() == [
        '{"step": 7, "loss": 1.5}', '{"step": 8, "loss": 1.5}', '{"step": 9, "loss": 1.5}',
        '{"step": -1}',
    ]  # fmt: skip


def test_other_lines_are_left_as_they_are() -> None:
    text = '{"step": 0, "loss": NaN}\nnot JSON\n3x\n'
    assert expanded(text) == text


def test_runs_have_a_profile_of_their_own() -> None:
    """A folder can be a run of either profile: ids do not clash, and no rule is in both."""
    nl, dqn = ({rule.id for rule in PROFILES[name].rules_on("telemetry")} for name in ("nl", "dqn"))
    assert not nl & dqn
