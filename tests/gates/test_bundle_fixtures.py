"""The committed bundles lead to the findings that are stated beside them, and to no others."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trueup.gates import judge
from trueup.gates.bundle.make import make_bundle

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
BUNDLES = FIXTURES / "bundles"
FOLDERS = sorted(path.parent for path in BUNDLES.glob("*/expected.toml"))
PROFILE = str(BUNDLES / "profile.toml")


def test_there_are_many_and_all_rules_are_among_them() -> None:
    assert len(FOLDERS) >= 28
    stated = {
        rule
        for folder in FOLDERS
        for rule in tomllib.loads((folder / "expected.toml").read_text())["rules"]
    }
    assert {f"BND{number:03}" for number in range(1, 13)} <= stated


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_findings_are_those_that_are_stated(folder: Path) -> None:
    expected = tomllib.loads((folder / "expected.toml").read_text())
    verdict = judge(folder / "bundle", PROFILE)
    assert {finding.rule for finding in verdict.findings} == set(expected["rules"])
    assert verdict.verdict == expected["verdict"]
    assert verdict.checks > 0


def test_the_files_are_what_the_script_makes() -> None:
    done = subprocess.run(
        [sys.executable, str(BUNDLES / "make.py"), "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_lists_what_the_script_lists(tmp_path: Path) -> None:
    """The whole bundle's manifest was put together by other code than is under test."""
    whole = BUNDLES / "passes_whole" / "bundle"
    profile = tmp_path / "mine.toml"
    patterns = {"metadata": "*.meta.json", "weights": "*.safetensors"}
    more = "".join(f'[[artifact]]\nkind = "{k}"\npatterns = ["{p}"]\n' for k, p in patterns.items())
    profile.write_text((BUNDLES / "profile.toml").read_text() + more)
    make_bundle([FIXTURES / "runs" / "memory_small"], tmp_path / "out", str(profile))
    made = (tmp_path / "out" / "manifest.json").read_bytes()
    assert json.loads(made) == json.loads((whole / "manifest.json").read_bytes())
