"""`trueup explain`: a rule, a finding, a check, an equation, or all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from trueup.cli.app import app
from trueup.gates.catalogue.rules import built_in_entries

_PROFILE = """
[profile]
id = "mine"
summary = "one rule"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[[rule]]
id = "OWN001"
severity = "error"
summary = "the loss is not \\u001b[31mnegative"
why = "because"
check = "at_least"
keys = ["loss"]
params = { min = 0.0 }
expected = "0 or more"
fix = "look at the reduction"
fails = '{"loss": -1}'
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "mine.toml").write_text(_PROFILE)


def _run(*words: str) -> Result:
    return CliRunner().invoke(app, ["explain", *words])


def test_a_finding_of_the_reader_in_full() -> None:
    result = _run("RDR007")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "RDR007 (duplicate_key) error: a key that stands twice in one row",
        "  why       Readers keep the first, or the last, and none says so: the value judged may "
        "not be the value meant.",
        "  expected  each key once in a row",
        "  fix       merge the metrics under different names before the row is written",
        "  defined   gates/catalogue/reader.toml",
        "  settings  cannot be waived or made milder: it says that something was not read or not "
        "judged",
        "",
        "  an artifact that passes",
        '    {"step": 0, "loss": 5.5}',
        '    {"step": 1, "loss": 5.4}',
        "",
        "  an artifact that fails",
        '    {"step": 0, "loss": 5.5}',
        '    {"step": 1, "loss": 5.4, "loss": 0.1}',
    ]


def test_a_rule_tells_its_check_parameters_and_place() -> None:
    text = _run("TEL009").stdout
    assert "  check     exp_of: " in text
    assert "clamp = 1e+38" in text
    assert "  reads     ppl, in the rows of steps" in text
    assert "  defined   gates/profiles/nl.toml, in the profiles nl" in text
    assert "  settings  can be waived, and given another severity\n" in text


def test_a_name_and_a_small_letter_are_understood() -> None:
    assert _run("duplicate_key").stdout == _run("rdr007").stdout == _run("RDR007").stdout


def test_a_check_lists_the_rules_that_use_it() -> None:
    assert "TEL006" in _run("finite").stdout


def test_an_equation_is_shown_as_equations_shows_it() -> None:
    shown = CliRunner().invoke(app, ["equations", "nl.delta_momentum"]).stdout
    assert shown
    assert _run("nl.delta_momentum").stdout == shown
    document = json.loads(_run("nl.delta_momentum", "--format", "json").stdout)
    assert document[0]["id"] == "nl.delta_momentum"


def test_nothing_given_lists_everything_by_file() -> None:
    text = _run().stdout
    for entry in built_in_entries():
        assert f"  {entry.id} " in text, entry.id
        assert f"{entry.defined}\n" in text


def test_json_has_the_same_for_one_and_for_all() -> None:
    (one,) = json.loads(_run("RDR007", "--format", "json").stdout)
    assert (one["id"], one["waivable"], one["fixed"]) == ("RDR007", False, True)
    everything = json.loads(_run("--format", "json").stdout)
    assert [entry["id"] for entry in everything] == [entry.id for entry in built_in_entries()]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("RDR7", "RDR007"),
        ("tel-9", "TEL009"),
        ("duplicate_keys", "duplicate_key"),
        ("nl.delta_momentun", "nl.delta_momentum"),
    ],
)
def test_an_unknown_word_is_2_with_a_suggestion(word: str, meant: str) -> None:
    result = _run(word)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"did you mean {meant}" in result.stderr


@pytest.mark.parametrize("word", ["", "§", "x" * 5_000, "\x1b[31m", "../../etc/passwd"])
def test_any_word_is_answered_without_a_traceback(word: str) -> None:
    result = _run(word)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stderr
    assert len(result.stderr) < 8_000


def test_a_rule_of_the_users_own_profile() -> None:
    assert _run("OWN001").exit_code == 2
    text = _run("OWN001", "--profile", "mine.toml").stdout
    assert text.startswith("OWN001 error: the loss is not \\x1b[31mnegative\n")
    assert "  defined   mine.toml\n" in text


def test_the_settings_name_the_profile_and_what_they_change(tmp_path: Path) -> None:
    (tmp_path / "trueup.toml").write_text(
        '[gate]\nprofile = "mine.toml"\n[severity]\nOWN001 = "note"\n'
        '[[waiver]]\nrule = "OWN001"\nreason = "r"\nexpires = 2999-12-31\n'
    )
    text = _run("OWN001").stdout
    assert "  here      note (trueup.toml, severity.OWN001)" in text
    assert "  here      waived until 2999-12-31: r (trueup.toml, waiver[0])" in text
    assert _run("OWN001", "--no-config").exit_code == 2
