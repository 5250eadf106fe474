"""`trueup gate` under a `trueup.toml`, over several runs and in every format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner, Result

from trueup.cli.app import app

_PROFILE = r"""
[profile]
id = "mine"
summary = "one rule"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[[rule]]
id = "OWN001"
severity = "error"
summary = "the loss is not negative"
why = "a cross-entropy cannot be"
check = "at_least"
pattern = '^(loss|layer\d+\.loss)$'
params = { min = 0.0 }
expected = "0 or more"
fix = "look at the reduction"
passes = '{"step": 0, "loss": 1.0}'
fails = '{"step": 0, "loss": -1.0}'
"""
_WAIVER = """
[[waiver]]
rule = "OWN001"
reason = "the warm restart"
expires = 2999-12-31
approved_by = "lead"
"""
_GATE = '[gate]\nprofile = "mine.toml"\nruns = ["runs/*"]\n'
FORMATS = ("text", "json", "junit", "sarif", "github", "markdown")


def _run(*words: object) -> Result:
    return CliRunner().invoke(app, ["gate", *(str(word) for word in words)])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two runs, of which the second breaks its one rule."""
    root = tmp_path / "project"
    for name, loss in (("good", 1.0), ("bad", -1.0)):
        folder = root / "runs" / name
        folder.mkdir(parents=True)
        rows = [{"step": step, "loss": loss} for step in range(3)]
        (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / ".git").mkdir()
    (root / "mine.toml").write_text(_PROFILE)
    (root / "trueup.toml").write_text(_GATE)
    monkeypatch.chdir(root)
    return root


def test_without_a_path_the_runs_of_the_settings_are_judged(project: Path) -> None:
    result = _run()
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.startswith("== ")] == ["== runs/bad", "== runs/good"]
    assert "runs/bad/log.jsonl:1::loss (steps 0..2): got -1.0" in result.stdout
    assert lines[-1] == "2 runs: 1 fail, 1 pass"


def test_the_settings_are_found_from_a_folder_below(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "runs" / "bad")
    result = _run(".")
    assert result.exit_code == 1
    assert "profile mine" in result.stdout
    assert "settings " in result.stdout


def test_a_waiver_lets_a_run_pass_and_every_format_says_so(project: Path) -> None:
    (project / "trueup.toml").write_text(_GATE + _WAIVER)
    for format in FORMATS:
        result = _run("runs/bad", "--format", format)
        assert result.exit_code == 0, (format, result.output)
        for words in ("OWN001", "the warm restart", "2999-12-31", "lead"):
            assert words in result.stdout, (format, words)
    assert "1 waived" in _run("runs/bad").stdout.splitlines()[-1]
    document = json.loads(_run("runs/bad", "--format", "json").stdout)
    assert (document["verdict"], document["waived"], document["findings"]) == ("pass", 1, [])
    assert _run("runs/bad", "--no-config", "--profile", "mine.toml").exit_code == 1


def test_a_changed_severity_is_said_in_every_format(project: Path) -> None:
    (project / "trueup.toml").write_text(_GATE + '[severity]\nOWN001 = "note"\n')
    for format in FORMATS:
        result = _run("runs/bad", "--format", format)
        assert result.exit_code == 0, (format, result.output)
        assert "note" in result.stdout, format
        told = ("severity", "by the profile", "instead of an error")
        assert any(words in result.stdout for words in told), format
    (suite,) = ET.fromstring(_run("runs/bad", "--format", "junit").stdout.encode())
    assert suite.attrib["failures"] == "0"


def test_an_expired_waiver_fails_in_every_format(project: Path) -> None:
    (project / "trueup.toml").write_text(_GATE + _WAIVER.replace("2999", "2020"))
    for format in FORMATS:
        result = _run("runs/good", "--format", format)
        assert result.exit_code == 1, (format, result.output)
        assert "GAT009" in result.stdout, format


def test_several_runs_are_one_document_of_each_format(project: Path) -> None:
    (project / "empty").mkdir()
    paths = ("runs/good", "runs/bad", "empty", "gone")
    for format in FORMATS:
        result = _run(*paths, "--format", format)
        assert result.exit_code == 2, (format, result.output)
        assert result.stderr.count("trueup: ") == 2, format
        for path in paths:
            assert path in result.stdout, (format, path)
    document = json.loads(_run(*paths, "--format", "json").stdout)
    assert document["verdict"] == "refused"
    assert ["judgement" in run for run in document["runs"]] == [True, True, False, False]
    suites = ET.fromstring(_run(*paths, "--format", "junit").stdout.encode())
    assert [suite.attrib["errors"] for suite in suites] == ["0", "0", "1", "1"]
    log = json.loads(_run(*paths, "--format", "sarif").stdout)
    assert [len(run["results"]) for run in log["runs"]] == [0, 1, 0, 0]
    assert _run("runs/good", "runs/bad").exit_code == 1
    assert _run("runs/good", "runs/good").exit_code == 0


def test_the_reports_of_several_runs_hang_together(project: Path) -> None:
    assert _run("--report", "out").exit_code == 1
    names = sorted(path.name for path in (project / "out").iterdir())
    assert names == ["gate-1-runs-bad.html", "gate-2-runs-good.html", "gate.html"]
    index = (project / "out" / "gate.html").read_text("utf-8")
    assert 'href="gate-1-runs-bad.html"' in index


@pytest.mark.parametrize(
    ("settings", "words", "message"),
    [
        pytest.param("[gate", (), "is not TOML", id="syntax"),
        pytest.param("[gat]\n", (), "did you mean gate", id="unknown"),
        pytest.param('[gate]\nprofile = "gone.toml"\n', ("runs/good",), "gone.toml", id="profile"),
        pytest.param('[severity]\nTEL999 = "note"\n', ("runs/good",), "unknown rule", id="rule"),
        pytest.param("", (), "names no runs", id="no-runs"),
        pytest.param('[gate]\nruns = ["none/*"]\n', (), "matches nothing", id="no-match"),
        pytest.param(_WAIVER.replace("OWN001", "RDR003"), ("runs/good",), "cannot be waived",
                     id="firm"),
        pytest.param("", ("runs/good", "--config", "gone.toml"), "cannot be read", id="no-config"),
        pytest.param("", ("runs/good", "--config", "runs"), "not a regular file", id="a-folder"),
        pytest.param("", ("runs/good", "--config", "x", "--no-config"), "both", id="both"),
        pytest.param("", ("--no-config",), "no run was given", id="no-run"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("format", ["text", "json", "github"])
def test_what_is_wrong_is_2_and_said_on_stderr_alone(
    settings: str, words: tuple[str, ...], message: str, format: str, project: Path
) -> None:
    (project / "trueup.toml").write_text(settings)
    result = _run(*words, "--format", format)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["trueup.toml", "mine.toml"])
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_is_2(name: str, project: Path) -> None:
    (project / name).chmod(0)
    assert _run("runs/good").exit_code == 2


def test_settings_with_control_characters_do_not_reach_the_terminal(project: Path) -> None:
    (project / "trueup.toml").write_text('[gate]\n"\\u001b[31mx" = 1\n')
    result = _run("runs/good")
    assert result.exit_code == 2
    assert "\x1b" not in result.output


def _process(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trueup", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def test_piped_output_is_whole_and_plain(project: Path) -> None:
    key = "layer7." + "very_long_name." * 20 + "loss"
    rows = [{"step": 0, "loss": 1.0, "layer7.loss": -2.0, key: "text"}]
    (project / "runs" / "bad" / "log.jsonl").write_text(json.dumps(rows[0]) + "\n")
    plain = _process("gate", "runs/bad", cwd=project, COLUMNS="20", NO_COLOR="1")
    assert plain.returncode == 1
    assert "\x1b" not in plain.stdout
    assert "  runs/bad/log.jsonl:1::layer7.loss (step 0): got -2.0" in plain.stdout.splitlines()


def test_a_reader_that_leaves_early_is_met_quietly(project: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [sys.executable, "-m", "trueup", "gate", "runs/bad", "--format", "sarif"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=project,
        check=False,
    )
    os.close(write)
    assert (result.returncode, result.stderr) == (141, "")


def test_a_live_run_may_end_in_an_unfinished_line(project: Path) -> None:
    log = project / "runs" / "good" / "log.jsonl"
    log.write_text(log.read_text() + '{"step": 3, "lo')
    assert _run("runs/good").exit_code == 1
    live: Any = _run("runs/good", "--live")
    assert live.exit_code == 0, live.output
    assert "warning" in live.stdout
