"""`ci/gate-job.sh` and the examples: the worse code decides, and nothing judged is no pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

SCRIPT = Path(__file__).resolve().parents[2] / "ci" / "gate-job.sh"

# Says what it was called with, and writes what is said to where the JUnit is asked for.
_STAND_IN = """#!/bin/bash
echo "$@" >>calls
case $1 in
  verify) {verify} ;;
  gate)
    for word in "$@"; do
      case $word in junit=*|markdown=*) exec 3>"${{word#*=}}"; (eval '{gate}') >&3 ;; esac
    done
    {gate} ;;
esac
"""


def _job(
    folder: Path, verify: str, gate: str, *words: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the script with a stand-in for `trueup` that does what is asked."""
    bin = folder / "bin"
    bin.mkdir()
    (bin / "trueup").write_text(_STAND_IN.format(verify=verify, gate=gate))
    (bin / "trueup").chmod(0o755)
    path = f"{bin}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPT), *words],
        cwd=folder,
        env={**_plain(), "PATH": path, "REPORT": "out", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def _plain() -> dict[str, str]:
    """The environment without what the script looks at."""
    looked = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "PROFILE", "BACKEND")
    return {name: value for name, value in os.environ.items() if name not in looked}


@pytest.mark.parametrize(
    ("verify", "gate", "code"),
    [
        ("echo x; exit 0", "echo x; exit 0", 0),
        ("echo x; exit 1", "echo x; exit 0", 1),
        ("echo x; exit 0", "echo x; exit 1", 1),
        ("echo x; exit 1", "exit 3", 3),
        ("exit 0", "echo x; exit 0", 2),
        ("echo x; exit 0", "exit 0", 2),
        ("echo x; exit 0", "exit 1", 2),
    ],
)
def test_the_worse_code_decides(verify: str, gate: str, code: int, tmp_path: Path) -> None:
    result = _job(tmp_path, verify, gate, "run")
    assert result.returncode == code, result.stderr
    for name, does in (("verify", verify), ("gate", gate)):
        said = f"out/{name}.xml is empty: nothing was judged" in result.stderr
        assert said is ("echo" not in does)


def test_without_a_run_it_says_how_it_is_called(tmp_path: Path) -> None:
    result = _job(tmp_path, "exit 0", "exit 0")
    assert result.returncode == 2
    assert "usage" in result.stderr


def test_the_profile_is_left_to_the_settings_unless_it_is_given(tmp_path: Path) -> None:
    _job(tmp_path, "echo x", "echo x", "run")
    _, gate = (tmp_path / "calls").read_text().splitlines()
    assert gate == (
        "gate run --report out --write junit=out/gate.xml --write sarif=out/gate.sarif "
        "--write markdown=out/gate.md"
    )
    (tmp_path / "calls").unlink()
    (tmp_path / "bin" / "trueup").unlink()
    (tmp_path / "bin").rmdir()
    _job(tmp_path, "echo x", "echo x", "run", PROFILE="mine.toml", GITHUB_ACTIONS="true")
    _, gate = (tmp_path / "calls").read_text().splitlines()
    assert gate.endswith(" --profile mine.toml --format github")


def test_on_github_the_summary_is_added_to(tmp_path: Path) -> None:
    (tmp_path / "summary").write_text("before\n")
    _job(tmp_path, "echo x", "echo judged", "run", GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
    assert (tmp_path / "summary").read_text() == "before\njudged\n"


def test_a_report_of_an_earlier_run_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("gate.xml", "verify.xml"):
        (tmp_path / "out" / name).write_text("<old/>")
    result = _job(tmp_path, "exit 0", "exit 0", "run")
    assert result.returncode == 2
    assert "out/gate.xml is empty" in result.stderr


def test_it_runs_the_real_command_to_the_end(tmp_path: Path, kernels: Path) -> None:
    """With the real trueup: all reports are there, and the worse code is that of the gate."""
    bin = Path(sys.executable).parent
    run = SCRIPT.parents[1] / "fixtures" / "telemetry" / "nan_literal"
    result = subprocess.run(
        ["bash", str(SCRIPT), str(run), str(kernels / "right.toml")],
        cwd=tmp_path,
        env={**_plain(), "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "REPORT": "out",
             "BACKEND": "python", "GITHUB_ACTIONS": "true",
             "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    assert "verify: exit code 0, gate: exit code 1" in result.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"evidence.json", "gate.html", "gate.md", "gate.sarif", "gate.xml",
                     "verify.html", "verify.xml"}  # fmt: skip
    assert result.stdout.count("::error file=") >= 2
    assert "RDR008" in (tmp_path / "summary.md").read_text("utf-8")


def _commands(value: Any) -> Iterator[str]:
    """Every line of shell in a CI file."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("run", "script", "before_script"):
                yield from (item.splitlines() if isinstance(item, str) else item)
            else:
                yield from _commands(item)
    elif isinstance(value, list):
        for item in value:
            yield from _commands(item)


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_an_example_is_yaml_and_calls_what_there_is(name: str) -> None:
    document = yaml.safe_load((SCRIPT.parent / name).read_text("utf-8"))
    commands = list(_commands(document))
    assert "trueup/ci/gate-job.sh runs/phase0" in commands
    text = (SCRIPT.parent / name).read_text("utf-8")
    for variable in ("REPORT", "BACKEND"):
        assert f"{variable}: " in text
        assert f"${{{variable}:-" in SCRIPT.read_text("utf-8")
    for path in re.findall(r"trueup-report/([\w.]+)", text):
        assert f"$report/{path}" in SCRIPT.read_text("utf-8"), path
    assert f"`{name}`" in (SCRIPT.parent / "README.md").read_text("utf-8")
