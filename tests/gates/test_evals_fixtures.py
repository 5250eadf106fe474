"""The committed results lead to the findings that are stated beside them, and to no others."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trueup.gates import judge

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
EVALS = FIXTURES / "evals"
FOLDERS = sorted(path.parent for path in EVALS.glob("*/expected.toml"))
PROFILE = str(EVALS / "profile.toml")


def test_there_are_many_and_all_rules_are_among_them() -> None:
    assert len(FOLDERS) >= 55
    stated = {
        rule
        for folder in FOLDERS
        for rule in tomllib.loads((folder / "expected.toml").read_text())["rules"]
    }
    assert {f"EVAL{number:03}" for number in range(1, 22)} <= stated


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_findings_are_those_that_are_stated(folder: Path) -> None:
    expected = tomllib.loads((folder / "expected.toml").read_text())
    verdict = judge(folder, PROFILE)
    assert {finding.rule for finding in verdict.findings} == set(expected["rules"])
    assert verdict.verdict == expected["verdict"]
    assert verdict.checks > 0


def test_the_files_are_what_the_script_makes() -> None:
    done = subprocess.run(
        [sys.executable, str(EVALS / "make.py"), "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("variant", ["teach", "no_teach"])
def test_real_results_pass_with_nothing_to_say(variant: str) -> None:
    verdict = judge(FIXTURES / "runs" / "memory_small" / variant, PROFILE)
    assert (verdict.verdict, verdict.findings) == ("pass", ())
    applied = {one.id for one in verdict.rules if one.status == "true"}
    assert len(applied) >= 18


def test_both_variants_in_one_directory_pass() -> None:
    verdict = judge(FIXTURES / "runs" / "memory_small", PROFILE)
    assert (verdict.verdict, verdict.findings) == ("pass", ())
    (copied,) = (one for one in verdict.rules if one.id == "EVAL020")
    assert copied.status == "true"


def test_of_two_copies_the_later_name_is_told() -> None:
    verdict = judge(EVALS / "copied_result", PROFILE)
    (found,) = (finding for finding in verdict.findings if finding.rule == "EVAL020")
    assert found.artifact.endswith("teach/eval/pg19.json")
    assert "no_teach" not in found.artifact
    assert "no_teach/eval/pg19.json" in found.got
