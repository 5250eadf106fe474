"""`trueup accept`: exit codes, streams, formats, and what it writes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.gates.acceptance.load import schema

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "acceptance"


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["accept", *(str(word) for word in words)])


def test_an_accepted_run_is_0_and_says_so_last() -> None:
    result = run(FIXTURES / "passes_bands")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == (
        "pass: mine, 7 criteria: 7 hold; 12 expectations; 0 findings"
    )
    assert result.stderr == ""


def test_a_run_that_is_not_accepted_is_1_with_each_place() -> None:
    result = run(FIXTURES / "blocker_below" / "acceptance.toml")
    assert result.exit_code == 1
    assert "ACC003" in result.stdout
    place = f"{FIXTURES / 'blocker_below' / 'results.json'}:1:"
    assert re.search(re.escape(place) + r"\d+:F_Full: got F_Full = 0\.0499", result.stdout)
    assert "expected >= 0.05" in result.stdout


@pytest.mark.parametrize(
    "name", ["results_missing", "results_cut_off", "profile_other_gpu", "profile_not_a_table"]
)
def test_what_cannot_be_judged_is_2_and_says_why_on_stderr(name: str) -> None:
    result = run(FIXTURES / name)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("trueup: ")
    assert "fix: " in result.stderr
    assert "Traceback" not in result.stderr


def test_an_acceptance_that_is_not_there_is_2(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "acceptance.toml: cannot be read" in result.stderr


def test_without_great_expectations_it_is_2(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, package=None: None if name == "great_expectations" else find(name, package),
    )
    result = run(FIXTURES / "passes_bands")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install 'trueup[accept]'" in result.stderr
    assert run(FIXTURES / "passes_hard_stop").exit_code == 0  # it asks for no number


@pytest.mark.parametrize(("name", "code"), [("passes_bands", 0), ("blocker_nan", 1)])
def test_json_is_strict_and_fits_its_schema(name: str, code: int) -> None:
    result = run(FIXTURES / name, "--format", "json")
    assert result.exit_code == code

    def refuse(token: str) -> None:
        raise AssertionError(token)

    document = json.loads(result.stdout, parse_constant=refuse)
    Draft202012Validator(schema("judgement")).validate(document)
    assert document["verdict"] == ("pass" if code == 0 else "fail")
    assert document["engines"]["great_expectations"]


def test_junit_has_a_case_for_each_criterion() -> None:
    result = run(FIXTURES / "blocker_below", "--format", "junit")
    (suite,) = ET.fromstring(result.stdout)
    cases = {case.get("name"): case for case in suite}
    assert suite.get("failures") == "2"
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {"F_Full", "ACC003"}


def test_junit_of_warnings_fails_nothing() -> None:
    result = run(FIXTURES / "profile_spread", "--format", "junit")
    (suite,) = ET.fromstring(result.stdout)
    (small,) = [case for case in suite if case.get("name") == "ACC303"]
    assert small.find("failure") is None
    assert small.find("system-out") is not None


def test_markdown_is_a_table_with_the_failing_first() -> None:
    result = run(FIXTURES / "blocker_below", "--format", "markdown")
    lines = result.stdout.splitlines()
    assert lines[0] == "## ❌ trueup accept `mine`"
    rows = [line for line in lines if line.startswith("| `")]
    assert rows[0] == "| `F_Full` | ❌ does not hold | `0.0499` | `>= 0.05` | blocker |"
    assert len(rows) == 7


def test_markdown_of_many_criteria_stays_short() -> None:
    result = run(FIXTURES / "final_dead_branch", "--format", "markdown")
    assert len(result.stdout) < 60_000
    assert "| `best_val` | ✅ holds | `30 values` | each its own | fail, tier 1 |" in result.stdout


def test_names_in_a_file_do_not_drive_the_terminal_or_the_markup(tmp_path: Path) -> None:
    evil = "<b>\x1b[31m|`@x`\u202e"
    (tmp_path / "results.json").write_text(json.dumps({"cells": [{"name": evil, "x": 0}]}))
    (tmp_path / "acceptance.toml").write_text(
        '[acceptance]\nid = "mine"\n[results]\nfiles = ["results.json"]\n'
        '[[limit]]\nid = "x"\npath = "cells[*].x"\nat_least = 1\n'
    )
    for form in ("text", "markdown", "junit"):
        result = run(tmp_path, "--format", form)
        assert result.exit_code == 1
        assert not {"\x1b", "\u202e"} & set(result.stdout)
    ET.fromstring(result.stdout)


def test_docs_are_written_beside_the_judgement(tmp_path: Path) -> None:
    result = run(FIXTURES / "blocker_below", "--docs", tmp_path / "docs")
    assert result.exit_code == 1
    assert "ACC003" in result.stdout
    assert (tmp_path / "docs" / "index.html").is_file()


def test_docs_that_cannot_be_written_do_not_cost_the_judgement(tmp_path: Path) -> None:
    """An acceptance without numbers has none; it is judged and printed, and the call is 2."""
    result = run(FIXTURES / "passes_hard_stop", "--docs", "/proc/none/docs")
    assert (result.exit_code, result.stdout) == (2, "")  # refused before anything is judged
    result = run(FIXTURES / "passes_hard_stop", "--docs", tmp_path / "docs")
    assert result.exit_code == 2
    assert result.stdout.splitlines()[-1].startswith("pass: mine")
    assert "there are no Data Docs" in result.stderr


def test_the_folder_of_the_run_may_be_another(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "passes_bands", tmp_path / "gate")
    (tmp_path / "run").mkdir()
    shutil.move(tmp_path / "gate" / "results.json", tmp_path / "run")
    assert run(tmp_path / "gate").exit_code == 2
    assert run(tmp_path / "gate", "--run", tmp_path / "run").exit_code == 0


def test_a_baseline_is_locked_and_not_again(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    results.write_text('{"cells": [{"fold": 0, "val": 1.0}], "n": 2}')
    target = tmp_path / "baseline.toml"
    result = run("--lock", results, "-o", target)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"locked 2 numbers of {results} in {target}\n"
    before = target.read_bytes()
    again = run("--lock", results, "-o", target)
    assert (again.exit_code, again.stdout) == (2, "")
    assert target.read_bytes() == before
    one = run("--lock", results, "--output", tmp_path / "one.json", "--path", "cells[*].val")
    assert "locked 1 numbers" in one.stdout


@pytest.mark.parametrize(
    "words",
    [("--lock", "r.json"), ("-o", "b.toml"), ("--path", "x"),
     ("acceptance.toml", "--lock", "r.json", "-o", "b.toml"),
     ("--lock", "r.json", "-o", "b.toml", "--docs", "d"), ("--format", "sarif"), ("--unknown",)],
)  # fmt: skip
def test_a_call_that_makes_no_sense_is_2(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


def test_a_ledger_from_start_to_rerun(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "passes_final", tmp_path, dirs_exist_ok=True)
    ledger, manifest = tmp_path / "new.jsonl", tmp_path / "manifest.json"
    start = run("ledger", "add", ledger, "--manifest", manifest)
    assert start.exit_code == 0, start.output
    assert start.stdout.splitlines()[0] == "record 1: r1 STARTED"
    head = start.stdout.splitlines()[-1].removeprefix("head ")
    results = tmp_path / "results.json"
    ended = run("ledger", "add", ledger, "--manifest", manifest, "--outcome", "PASS",
                "--results", results)  # fmt: skip
    assert ended.stdout.startswith("record 2: r1 PASS\n")
    assert run("ledger", "check", ledger, "--head", head).exit_code == 0
    again = run("ledger", "add", ledger, "--manifest", manifest)
    assert again.exit_code == 1
    assert "REJECTED_RERUN: record 1 is of the same run r1" in again.stdout
    assert run("ledger", "check", ledger).exit_code == 0
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(lines[1:]))
    broken = run("ledger", "check", ledger, "--format", "json")
    assert broken.exit_code == 1
    assert {one["rule"] for one in json.loads(broken.stdout)["findings"]} == {"ACC411"}


@pytest.mark.parametrize(
    "words",
    [
        ("check", "none.jsonl"),
        ("add", "l.jsonl"),
        ("add", "l.jsonl", "--manifest", "none.json"),
        ("add", "l.jsonl", "--manifest", "m.json", "--results", "r.json"),
        ("add", "l.jsonl", "--manifest", "m.json", "--void", "v.json", "--outcome", "FAIL"),
        ("add", "l.jsonl", "--manifest", "m.json", "--outcome", "VOID"),
    ],
)
def test_a_ledger_call_that_makes_no_sense_is_2(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("ledger", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_tells_of_both_uses() -> None:
    text = run("--help").stdout
    assert "judge" in text
    assert "ledger" in text
    assert "--lock" in run("judge", "--help").stdout
