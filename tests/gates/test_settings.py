"""`trueup.toml`: what is refused, where it is found, and what it makes of a verdict."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from trueup.gates import SettingsError, Verdict
from trueup.gates.catalogue.kinds import kinds
from trueup.gates.errors import ProfileError
from trueup.gates.profile.load import load_profile
from trueup.gates.settings.gate import judge_under, profile_of, runs_of
from trueup.gates.settings.load import find_settings, load_settings, schema
from trueup.gates.settings.match import Names, fits
from trueup.gates.settings.model import Settings

TODAY = datetime.date(2026, 1, 15)
PROFILE = r"""
[profile]
id = "mine"
summary = "a small profile"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[[rule]]
id = "OWN001"
severity = "error"
summary = "values are in range"
why = "because"
check = "between"
pattern = '^(x|y)\d*$'
params = { min = 0, max = 1 }
expected = "0..1"
fix = "keep it in range"
"""
WAIVER = """
[[waiver]]
rule = "OWN001"
reason = "a known spike at the warm restart"
expires = 2026-02-01
"""


def settings_of(tmp_path: Path, text: str | bytes) -> Settings:
    path = tmp_path / "trueup.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_settings(path)


def judged(
    tmp_path: Path, text: str, *files: tuple[str, list[dict[str, Any]]], today: Any = TODAY
) -> Verdict:
    """Judge a run directory under a settings file beside it."""
    (tmp_path / "mine.toml").write_text(PROFILE)
    for name, rows in files or [("a.jsonl", [{"step": 0, "x": 2.0}, {"step": 1, "x": 0.5}])]:
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = settings_of(tmp_path, text)
    return judge_under(settings, tmp_path / "run", str(tmp_path / "mine.toml"), today=today)


def ids(verdict: Verdict) -> list[str]:
    return sorted(finding.rule for finding in verdict.findings)


def test_a_waived_finding_does_not_count_and_stays_in_sight(tmp_path: Path) -> None:
    assert not judged(tmp_path, "").passed
    verdict = judged(tmp_path, WAIVER)
    assert (verdict.passed, verdict.waived, verdict.findings) == (True, 1, ())
    (use,) = verdict.waivers
    assert (use.rule, use.status, use.count, use.expires) == ("OWN001", "used", 1, "2026-02-01")
    assert use.reason == "a known spike at the warm restart"
    assert [(one.rule, one.got, one.where.line) for one in use.findings] == [("OWN001", "2.0", 1)]
    assert {rule.id: rule.status for rule in verdict.rules} == {"OWN001": "false"}
    document = verdict.to_dict()
    assert (document["waived"], document["waivers"][0]["findings"][0]["got"]) == (1, "2.0")
    assert document["settings"]["path"] == str(tmp_path / "trueup.toml")


def test_the_json_of_a_verdict_under_settings_fits_its_schema(tmp_path: Path) -> None:
    text = '[severity]\nOWN001 = { severity = "note", artifact = "a.jsonl", reason = "r" }\n'
    narrow = 'artifact = "a.jsonl"\nkey = "x"\nsteps = [0, 9]\napproved_by = "A"\nticket = "T-1"\n'
    for settings in (text, WAIVER + narrow, WAIVER.replace("2026", "2025")):
        document = json.loads(judged(tmp_path, settings).to_json())
        import trueup.gates

        path = Path(next(iter(trueup.gates.__path__))) / "verdict.schema.json"
        jsonschema.validate(document, json.loads(path.read_text()))


@pytest.mark.parametrize(
    ("today", "passes"),
    [
        (datetime.date(2026, 2, 1), True),
        (datetime.date(2026, 2, 2), False),
    ],
    ids=["its-last-day", "the-day-after"],
)
def test_a_waiver_holds_through_its_last_day(
    today: datetime.date, passes: bool, tmp_path: Path
) -> None:
    verdict = judged(tmp_path, WAIVER, today=today)
    assert verdict.passed is passes
    assert ids(verdict) == ([] if passes else ["GAT009", "OWN001"])
    assert verdict.waivers[0].status == ("used" if passes else "expired")


def test_an_expired_waiver_fails_a_run_in_which_nothing_else_does(tmp_path: Path) -> None:
    text = WAIVER.replace("2026-02-01", "2026-01-14")
    verdict = judged(tmp_path, text, ("a.jsonl", [{"step": 0, "x": 0.5}]))
    assert ids(verdict) == ["GAT009"]
    (finding,) = verdict.findings
    assert (finding.severity, finding.where.line, finding.where.key) == ("error", 2, "waiver[0]")
    assert finding.got == "OWN001 until 2026-01-14: a known spike at the warm restart"
    assert not verdict.passed


def test_a_waiver_that_matches_nothing_is_a_warning(tmp_path: Path) -> None:
    verdict = judged(tmp_path, WAIVER, ("a.jsonl", [{"step": 0, "x": 0.5}]))
    assert (verdict.passed, ids(verdict)) == (True, ["GAT010"])
    assert verdict.findings[0].severity == "warning"


def test_a_waiver_about_another_run_is_not_this_runs_matter(tmp_path: Path) -> None:
    verdict = judged(tmp_path, WAIVER + 'artifact = "run_2/*"\n')
    assert (ids(verdict), verdict.waivers[0].status) == (["OWN001"], "elsewhere")


STEPS = [{"step": i, "x": 2.0 if 3 <= i <= 5 else 0.5, "y0": 9.0, "y1": 9.0} for i in range(8)]


@pytest.mark.parametrize(
    ("narrowed", "left"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param('key = "x"', ["y0", "y1"], id="key"),
        pytest.param('key = "y*"', ["x"], id="key-pattern"),
        pytest.param('key = "y?"', ["x"], id="key-one-character"),
        pytest.param('key = "y[01]"', ["x", "y0", "y1"], id="brackets-are-plain"),
        pytest.param("steps = [3, 5]", ["y0", "y1"], id="steps"),
        pytest.param("steps = [3, 4]", ["x", "y0", "y1"], id="steps-cover-only-a-part"),
        pytest.param("steps = [0, 7]", [], id="all-steps"),
        pytest.param('artifact = "a.jsonl"', [], id="file-name"),
        pytest.param('artifact = "*.jsonl"', [], id="file-pattern"),
        pytest.param('artifact = "deep/a.jsonl"', [], id="path-in-the-run"),
        pytest.param('artifact = "run/deep/*"', [], id="path-from-the-settings"),
        pytest.param('artifact = "deep/b.jsonl"', ["x", "y0", "y1"], id="another-path"),
        pytest.param('artifact = "a"', ["x", "y0", "y1"], id="part-of-a-name"),
    ],
)
def test_a_waiver_covers_what_it_says_and_no_more(
    narrowed: str, left: list[str], tmp_path: Path
) -> None:
    verdict = judged(tmp_path, f"{WAIVER}{narrowed}\n", ("deep/a.jsonl", STEPS))
    counted = [one.where.key for one in verdict.findings if one.rule == "OWN001"]
    assert sorted(filter(None, counted)) == left
    assert verdict.waived == 3 - len(left)


def test_what_goes_beyond_a_waivers_steps_is_said(tmp_path: Path) -> None:
    text = f'{WAIVER}key = "x"\nsteps = [3, 4]\n'
    verdict = judged(tmp_path, text, ("a.jsonl", STEPS))
    (unused,) = (one for one in verdict.findings if one.rule == "GAT010")
    assert unused.got.endswith("; beyond its steps 3..4: 4::x (steps 3..5)")


def test_a_finding_without_a_step_lies_within_no_steps(tmp_path: Path) -> None:
    rows = [{"x": 2.0}]
    assert not judged(tmp_path, f"{WAIVER}steps = [0, 9]\n", ("a.jsonl", rows)).passed
    assert judged(tmp_path, WAIVER, ("a.jsonl", rows)).passed


def test_a_severity_is_changed_and_the_change_is_shown(tmp_path: Path) -> None:
    verdict = judged(tmp_path, '[severity]\nOWN001 = "warning"\n')
    (finding,) = verdict.findings
    assert (verdict.passed, finding.severity, finding.severity_was) == (True, "warning", "error")
    (change,) = verdict.severity_changes
    assert (change.before, change.after, change.findings) == ("error", "warning", 1)


def test_a_severity_can_be_raised_and_narrowed_to_artifacts(tmp_path: Path) -> None:
    rows = [{"step": 0, "x": 2.0}]
    text = """
[severity]
OWN001 = [
  { severity = "note", artifact = "old/*", reason = "logged before the fix" },
  { severity = "warning", artifact = "b.jsonl" },
]
"""
    files = [("old/a.jsonl", rows), ("b.jsonl", rows), ("c.jsonl", rows)]
    verdict = judged(tmp_path, text, *files)
    found = {Path(one.artifact).name: one.severity for one in verdict.findings}
    assert found == {"a.jsonl": "note", "b.jsonl": "warning", "c.jsonl": "error"}
    text = '[severity]\nRDR028 = "error"\n'
    (tmp_path / "run" / "c.jsonl").write_text('{"step": 0, "x": 0.5}')
    verdict = judged(tmp_path, text, ("old/a.jsonl", [{"step": 0, "x": 0.5}]))
    raised = [one for one in verdict.findings if one.rule == "RDR028"]
    assert [(one.severity, one.severity_was) for one in raised] == [("error", "warning")]


UNWAIVABLE = sorted(kind.id for kind in kinds().values() if not kind.waivable)


def test_what_was_not_read_is_not_to_be_waived() -> None:
    assert {"RDR003", "RDR004", "RDR007", "GAT001", "GAT002", "GAT006"} <= set(UNWAIVABLE)
    assert {"RDR001", "RDR008", "RDR016", "RDR028", "GAT008"}.isdisjoint(UNWAIVABLE)


@pytest.mark.parametrize("rule", ["RDR003", "RDR007", "GAT002", "GAT006", "GAT009"])
def test_a_waiver_of_unread_data_is_refused(rule: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=rf"waiver\[0\]\.rule: {rule} cannot be waived"):
        judged(tmp_path, WAIVER.replace("OWN001", rule))
    with pytest.raises(SettingsError, match=f"severity.{rule}: {rule} cannot be made milder"):
        judged(tmp_path, f'[severity]\n{rule} = "note"\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[gate", "is not TOML", id="syntax"),
        pytest.param(b"\xff\xfe[\x00", "is not UTF-8, got byte 0xff at 0", id="utf-16"),
        pytest.param(b"\xef\xbb\xbf[gate]\n", "is not TOML", id="bom"),
        pytest.param("a = " + "[" * 5_000, "is not TOML", id="depth"),
        pytest.param("a = " + "9" * 5_000, "is not TOML", id="digits"),
        pytest.param("[gate]\n[gate]\n", "is not TOML", id="twice"),
        pytest.param("[gat]\n", "unknown key 'gat'.*did you mean gate", id="table"),
        pytest.param(
            '[gate]\nprofil = "nl"\n', "gate: unknown key 'profil'.*did you mean profile", id="key"
        ),
        pytest.param("[gate]\nprofile = 3\n", "gate.profile: is 3, expected text", id="type"),
        pytest.param("[gate]\nruns = []\n", "gate.runs: is empty", id="no-runs"),
        pytest.param("[limits]\nmax_row = 0\n", "limits.max_row: 0 is less than", id="limit"),
        pytest.param("[limits]\nmax_row = true\n", "limits.max_row: is True", id="boolean"),
        pytest.param("[limits]\nmax_row = inf\n", "limits.max_row: is inf", id="infinity"),
        pytest.param('[severity]\nOWN001 = "warn"\n', "did you mean warning", id="severity"),
        pytest.param('[severity]\nOWN001 = "off"\n', "one of error, warning, note", id="off"),
        pytest.param(
            "[severity]\nOWN001 = 3\n", "is 3, expected one of error", id="severity-number"
        ),
        pytest.param('[severity]\nown = "note"\n', "severity", id="no-id"),
        pytest.param(
            '[severity]\nTEL999 = "note"\n', "severity.TEL999: unknown rule", id="unknown-rule"
        ),
        pytest.param(WAIVER.replace("OWN001", "OWN01"), r"waiver\[0\].rule", id="waiver-of-no-id"),
        pytest.param(
            WAIVER.replace("OWN001", "OWN011"),
            r"waiver\[0\]\.rule: unknown rule, got OWN011(.|\n)*did you mean OWN001",
            id="waiver-of-unknown",
        ),
        pytest.param(
            WAIVER.replace("a known spike at the warm restart", " \\t"),
            r"waiver\[0\].reason: is blank",
            id="blank-reason",
        ),
        pytest.param(
            '[[waiver]]\nrule = "OWN001"\nexpires = 2026-02-01\n',
            r"waiver\[0\]: lacks the key reason",
            id="no-reason",
        ),
        pytest.param(
            '[[waiver]]\nrule = "OWN001"\nreason = "r"\n',
            r"waiver\[0\]: lacks the key expires",
            id="no-date",
        ),
        pytest.param(
            WAIVER.replace("2026-02-01", "2026-02-01T10:00:00"),
            r"waiver\[0\].expires: is datetime",
            id="a-time",
        ),
        pytest.param(
            WAIVER.replace("2026-02-01", '"soon"'),
            r"waiver\[0\].expires: is 'soon', expected a date",
            id="no-date-at-all",
        ),
        pytest.param(
            WAIVER.replace("2026-02-01", '"2026-02-30"'), "expected a date", id="no-such-day"
        ),
        pytest.param(WAIVER + "steps = [9, 3]\n", "first step is after the last", id="backwards"),
        pytest.param(WAIVER + "steps = [9]\n", r"waiver\[0\].steps", id="one-step"),
        pytest.param(
            WAIVER + 'keys = "x"\n', "unknown key 'keys'.*did you mean key", id="waiver-key"
        ),
        pytest.param("waiver = []\n", "waiver: is empty", id="no-waivers"),
    ],
)
def test_what_is_not_fit_is_refused_with_its_place(
    text: str | bytes, message: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE)
    (tmp_path / "a.jsonl").write_text('{"step": 0, "x": 0.5}\n')

    def judge_it() -> None:
        settings = settings_of(tmp_path, text)
        judge_under(settings, tmp_path / "a.jsonl", str(tmp_path / "mine.toml"))

    with pytest.raises(SettingsError, match=f"(?s){message}") as caught:
        judge_it()
    assert str(tmp_path / "trueup.toml") in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "large").write_bytes(b"#" * (2 << 20))
    for name, message in (
        ("folder", "not a regular file"),
        ("pipe", "not a regular file"),
        ("dangling", "cannot be read: No such file"),
        ("missing", "cannot be read: No such file"),
        ("large", "too large"),
    ):
        with pytest.raises(SettingsError, match=message):
            load_settings(tmp_path / name)


def test_a_quoted_date_is_a_date_too(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, WAIVER.replace("2026-02-01", '"2026-02-01"'))
    assert settings.waivers[0].expires == datetime.date(2026, 2, 1)


def test_the_nearest_file_upward_is_found_and_not_beyond_the_repository(tmp_path: Path) -> None:
    inner = tmp_path / "repository" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "trueup.toml").write_text("")
    assert find_settings(inner) == tmp_path / "trueup.toml"
    (tmp_path / "repository" / ".git").mkdir()
    assert find_settings(inner) is None
    (tmp_path / "repository" / "trueup.toml").write_text("")
    assert find_settings(inner) == tmp_path / "repository" / "trueup.toml"


def test_a_file_that_cannot_be_read_is_found_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "trueup.toml").symlink_to("nowhere")
    assert find_settings(tmp_path) == tmp_path / "trueup.toml"


def test_profile_and_limits_come_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.jsonl").write_text('{"step": 0, "x": 0.5}\n{"step": 1, "y": 0.5}\n')
    settings = settings_of(
        tmp_path, '[gate]\nprofile = "mine.toml"\nruns = ["in*"]\n[limits]\nlate_after = 1\n'
    )
    monkeypatch.chdir(tmp_path / "inner")
    assert profile_of(settings, None) == "../mine.toml"
    assert profile_of(settings, "nl") == "nl"
    assert profile_of(Settings(), None) == "nl"
    assert runs_of(settings) == ["."]
    verdict = judge_under(settings, "a.jsonl", today=TODAY)
    assert ids(verdict) == ["RDR029"]


@pytest.mark.parametrize("text", ["", '[gate]\nruns = ["none*"]\n'], ids=["unnamed", "no-match"])
def test_runs_that_are_not_there_are_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"names no runs|matches nothing"):
        runs_of(settings_of(tmp_path, text))


@pytest.mark.parametrize(
    ("pattern", "text", "fit"),
    [
        ("", None, True),
        ("*", None, False),
        ("*", "", True),
        ("evals[0].name", "evals[0].name", True),
        ("evals[*].name", "evals[12].name", True),
        ("a.b", "axb", False),
        ("*a*a*a*a*a*a*a*a*a*b", "a" * 3_000, False),
    ],
)
def test_patterns(pattern: str, text: str | None, fit: bool) -> None:
    assert fits(pattern, text) is fit


def test_an_artifact_behind_a_url_has_its_name_and_its_path_in_the_run() -> None:
    names = Names("s3://bucket/run/", "/home")
    for pattern in ("a.jsonl", "logs/a.jsonl", "s3://bucket/run/logs/*"):
        assert names.fit(pattern, "s3://bucket/run/logs/a.jsonl"), pattern
    assert not names.fit("run/logs/a.jsonl", "s3://bucket/run/logs/a.jsonl")


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def test_a_whole_number_is_written_as_one_and_a_pattern_ends_with_the_text() -> None:
    """The library alone takes 2.0 for an integer, and lets `$` stand before a last line break."""
    from trueup.gates.structure import first_problem

    whole = {"properties": {"n": {"type": "integer"}}}
    assert first_problem(whole, {"n": 2}) is None
    problem = first_problem(whole, {"n": 2.0})
    assert problem is not None
    assert (problem.place, problem.what) == ("n", "is 2.0, expected a whole number")
    named = {"properties": {"id": {"type": "string", "pattern": "^[a-z]+$"}}}
    assert first_problem(named, {"id": "ab"}) is None
    assert first_problem(named, {"id": "ab\n"}) is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("x = " + "[" * 5_000, "nested more than 64 levels deep", id="lists"),
        pytest.param("[" + ".".join("a" * 5_000) + "]", "nested more than 64", id="a-dotted-head"),
        pytest.param("x." * 90 + "y = 1", "nested more than 64", id="a-dotted-key"),
        pytest.param("x = " + "{a=" * 90 + "1" + "}" * 90, "nested more than 64", id="tables"),
        pytest.param(
            "[[waiver]]\nrule = 'TEL005'\nreason = '\u200b.'\nexpires = '2030-01-01'",
            r"waiver\[0\].reason: is blank", id="a-reason-nobody-sees",
        ),
    ],
)  # fmt: skip
def test_settings_made_to_hang_or_to_hide_are_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "trueup.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=says):
        load_settings(path)
    if "nested" in says:
        with pytest.raises(ProfileError, match=says):
            load_profile(str(path))


def test_a_pattern_of_runs_that_takes_in_a_disk_is_refused(tmp_path: Path) -> None:
    from trueup.gates.settings import gate

    path = tmp_path / "trueup.toml"
    path.write_text("[gate]\nruns = ['**']")
    for name in range(8):
        (tmp_path / str(name)).mkdir()
    settings = load_settings(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "MAX_RUNS", 10)
        assert len(gate.runs_of(settings)) == 9  # eight, and the settings
        patch.setattr(gate, "MAX_RUNS", 8)
        with pytest.raises(SettingsError, match=r"matches too much, got more than 8 paths"):
            gate.runs_of(settings)
