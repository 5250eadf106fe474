"""`trueup close`: exit codes, streams, formats, what it writes, and hostile words."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from trueup.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fixtures" / "closures"))
import laid  # noqa: E402

EVIL = "<script>alert(1)</script> `x` | @all #1 \x1b[31m"


@pytest.fixture(scope="module", autouse=True)
def _repositories() -> Iterator[None]:
    yield
    laid.forget()


def close(*words: object) -> Result:
    return CliRunner().invoke(app, ["close", *(str(word) for word in words)])


@pytest.fixture
def passes(tmp_path: Path) -> Path:
    return laid.lay_out("passes", tmp_path)


@pytest.fixture
def fails(tmp_path: Path) -> Path:
    return laid.lay_out("metric_not_a_number", tmp_path)


def test_a_ticket_that_may_be_closed_leaves_its_statement(passes: Path) -> None:
    result = close(passes)
    assert result.exit_code == 0, result.output
    assert "holds: copy-accuracy: 0.95, asked >= 0.9 fraction" in result.stdout
    assert "pass: ticket NL-12, 2 criteria: 2 met; 0 findings" in result.stdout
    statement = passes.with_name("ticket.statement.json")
    assert json.loads(statement.read_bytes())["predicate"]["result"] == "PASSED"
    again = close("--verify", statement)
    assert again.exit_code == 0
    assert "pass: statement" in again.stdout


def test_a_ticket_that_may_not_leaves_nothing(fails: Path) -> None:
    result = close(fails)
    assert result.exit_code == 1
    assert "cannot be determined: copy-accuracy" in result.stdout
    assert "CLO021 error" in result.stdout
    assert "DOC007 error" in result.stdout
    assert "fail: ticket NL-12" in result.stdout
    assert not list(fails.parent.glob("*.statement.json"))


def test_an_earlier_statement_is_left_and_told_of(fails: Path) -> None:
    earlier = fails.with_name("ticket.statement.json")
    earlier.write_text("earlier")
    result = close(fails)
    assert result.exit_code == 1
    assert "is the statement of an earlier closing" in result.stderr
    assert earlier.read_text() == "earlier"


def test_output_puts_the_statement_elsewhere(passes: Path, tmp_path: Path) -> None:
    place = tmp_path / "out" / "s.json"
    assert close(passes, "-o", place).exit_code == 0
    assert place.exists()
    assert not passes.with_name("ticket.statement.json").exists()
    assert not [one for one in place.parent.iterdir() if one != place]


@pytest.mark.parametrize(
    "name", ["ticket.toml", "thread.json", "run/telemetry.json", "run/../board.json"]
)
def test_a_statement_never_replaces_what_it_speaks_of(
    name: str, passes: Path, tmp_path: Path
) -> None:
    before = (tmp_path / name).read_bytes()
    result = close(passes, "-o", tmp_path / name)
    assert result.exit_code == 2
    assert "would replace a file it speaks of" in result.stderr
    assert (tmp_path / name).read_bytes() == before


def test_a_place_that_cannot_be_written_costs_no_judgement(passes: Path, tmp_path: Path) -> None:
    result = close(passes, "-o", tmp_path / "run" / "train.log" / "s.json")
    assert result.exit_code == 2
    assert "pass: ticket NL-12" in result.stdout
    assert "cannot write it" in result.stderr


def test_the_statement_is_the_same_each_time(passes: Path) -> None:
    statement = passes.with_name("ticket.statement.json")
    close(passes)
    first = statement.read_bytes()
    statement.unlink()
    close(passes)
    assert statement.read_bytes() == first


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_criteria", "criterion is empty"),
        ("unknown_key", "did you mean exit_code"),
        ("not_toml", "ticket.toml:1"),
        ("criterion_homoglyph", "criterion[0].id"),
    ],
)
def test_a_ticket_that_is_not_fit_is_refused(name: str, said: str, tmp_path: Path) -> None:
    result = close(laid.lay_out(name, tmp_path))
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "words",
    [(), ("a.toml", "--verify", "b.json"), ("none.toml",), ("--verify", "none.json"), (".",),
     ("--verify", "s.json", "-o", "x"), ("--verify", "s.json", "--board", "x"),
     ("a.toml", "--format", "yaml")],
)  # fmt: skip
def test_a_wrong_call_exits_with_two(words: tuple[str, ...]) -> None:
    result = close(*words)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_json_is_strict_and_holds_to_its_schema(fails: Path) -> None:
    text = resources.files("trueup.gates.closure").joinpath("closure.schema.json").read_text()
    validator = Draft202012Validator(json.loads(text))

    def strict(word: str) -> float:
        raise AssertionError(word)

    for words in ((fails,), ("--verify", _statement(fails.parent))):
        result = close(*words, "--format", "json")
        validator.validate(json.loads(result.stdout, parse_constant=strict))
        assert result.stdout.isascii()


def _statement(folder: Path) -> Path:
    other = folder / "other"
    other.mkdir()
    ticket = laid.lay_out("passes", other)
    assert close(ticket).exit_code == 0
    return ticket.with_name("ticket.statement.json")


def test_junit_has_a_case_for_each_criterion_and_question(fails: Path) -> None:
    root = ET.fromstring(close(fails, "--format", "junit").stdout)
    cases = {case.get("name"): case for case in root.iter("testcase")}
    failed = cases["criterion: copy-accuracy"].find("failure")
    assert failed is not None
    assert "no value, asked >= 0.9 fraction" in str(failed.get("message"))
    assert cases["criterion: final-loss"].find("failure") is None
    assert cases["command 1: exit code"].find("failure") is None
    assert cases["gate: the run passes"].find("failure") is not None


def test_sarif_and_github_name_the_findings(fails: Path) -> None:
    log = json.loads(close(fails, "--format", "sarif").stdout)
    ids = {one["ruleId"] for run in log["runs"] for one in run["results"]}
    assert {"CLO021", "CLO030", "DOC007"} <= ids
    lines = close(fails, "--format", "github").stdout.splitlines()
    assert [line for line in lines if line.startswith("::error") and "CLO021" in line]


def test_markdown_has_the_criteria_as_a_table(tmp_path: Path) -> None:
    result = close(laid.lay_out("passes_waived", tmp_path), "--format", "markdown")
    assert result.exit_code == 0
    rows = [line for line in result.stdout.splitlines() if line.startswith("| ⚠️ waived")]
    assert len(rows) == 1
    assert "`copy-accuracy`" in rows[0]
    assert "Statement `" in result.stdout


@pytest.mark.parametrize("form", ["text", "markdown", "junit", "github", "sarif", "json"])
def test_hostile_words_drive_nothing(form: str, tmp_path: Path) -> None:
    ticket = laid.lay_out("metric_text", tmp_path)
    text = ticket.read_text()
    for old in ("copies at least nine of ten strings", "the fast level learns to copy"):
        text = text.replace(old, EVIL.replace("\x1b", "\\u001b"))
    ticket.write_text(text)
    eval_ = tmp_path / "run" / "evals" / "copy.json"
    eval_.write_text(json.dumps({"accuracy": EVIL}))
    result = close(ticket, "--format", form)
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    if form in ("junit",):
        ET.fromstring(result.stdout)
    if form == "markdown":
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", result.stdout.replace("\\`", ""))
        assert "<script>" not in outside
        assert "@all" not in outside
        rows = [line for line in result.stdout.splitlines() if line.startswith("|")]
        assert len(rows) == 4


def test_paths_are_told_as_they_were_typed(
    passes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "evals" / "copy.json").write_text('{"accuracy": 0.5}')
    out = close("ticket.toml").stdout
    assert "\n  ticket.toml:" in out
    assert " run/evals/copy.json" in out
    assert str(tmp_path) not in out


def test_the_board_and_the_repository_may_be_given(passes: Path, tmp_path: Path) -> None:
    other = tmp_path / "exports"
    other.mkdir()
    shutil.copy(tmp_path / "board.json", other / "today.json")
    (tmp_path / "board.json").unlink()
    os.rename(tmp_path / ".git", tmp_path / "clone.git")
    assert close(passes).exit_code == 1
    result = close(passes, "--board", other / "today.json", "--repository", tmp_path / "clone.git")
    assert result.exit_code == 0, result.output


def test_settings_that_waive_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = laid.lay_out("gate_rule", tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trueup.toml").write_text(
        '[[waiver]]\nrule = "CPY003"\nreason = "measured before the first update"\n'
        'expires = "2099-01-01"\n'
    )
    result = close(ticket)
    assert result.exit_code == 0, result.output
    assert "CLO032 warning" in result.stdout
    predicate = json.loads((tmp_path / "ticket.statement.json").read_bytes())["predicate"]
    assert predicate["result"] == "WARNED"
    assert [one["annotations"]["role"] for one in predicate["configuration"]] == [
        "ticket", "profile", "settings",
    ]  # fmt: skip
    assert close(ticket, "--no-config").exit_code == 1


def test_evidence_of_verify_is_read_as_it_is_written(tmp_path: Path) -> None:
    """A real record, made on the host: everything about it fits but the backend."""
    ticket = laid.lay_out("passes", tmp_path)
    kernels = tmp_path / "kernels"
    shutil.rmtree(tmp_path / ".git")
    (kernels / "nl").mkdir(parents=True)
    headers = [path.name for path in (ROOT / "kernels").glob("*.cuh")]
    for name in ("nl/delta_momentum.toml", "nl/delta_momentum.cu", *headers):
        shutil.copy(ROOT / "kernels" / name, kernels / name)
    commits = _commits(tmp_path)
    verified = CliRunner().invoke(
        app,
        ["verify", str(kernels / "nl" / "delta_momentum.toml"), "--backend", "host", "--lane",
         "exact", "--evidence", str(tmp_path / "evidence.json")],
    )  # fmt: skip
    assert verified.exit_code == 0, verified.output
    text = ticket.read_text()
    for old, new in {
        'contract = "kernels/': 'contract = "kernels/nl/',
        "bae49d3aa7e8af4462dd65f189f76c6a50061d7f": commits[0],
        "51699b630da609520dee6aa6c8bff7cd06f01239": commits[1],
    }.items():
        assert old in text
        text = text.replace(old, new)
    ticket.write_text(text)
    found = json.loads(close(ticket, "--format", "json").stdout)
    about = {one["rule"] for one in found["findings"] if one["artifact"].endswith("evidence.json")}
    assert about == {"CLO052", "CLO055"}  # not on a GPU, and one lane only
    points = {point["name"]: point["answer"] for point in found["points"]}
    assert points["kernel nl.delta_momentum: is that of the commit"] == "holds"


def _commits(folder: Path) -> list[str]:
    """A repository with a first commit, and one that brings the kernels."""
    date = "2026-03-02T09:00:00+01:00"
    environment = {
        "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date,
    }  # fmt: skip

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], check=True, capture_output=True, env=environment
        )
        return done.stdout.decode().strip()

    git("init", "-q", "--template=")
    ids = []
    for name in ("profile.toml", "kernels"):
        git("add", name)
        git("commit", "-qm", name)
        ids.append(git("rev-parse", "HEAD"))
    return ids
