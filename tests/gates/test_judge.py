"""`judge`: directories, links, vacuity, the environment, the shape of a verdict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import trueup.gates.telemetry.compile as engine
from trueup.gates import GateError, Unreadable, Verdict, judge

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
GOOD = FIXTURES / "telemetry" / "passes_list" / "telemetry.json"
BAD = FIXTURES / "telemetry" / "nan_literal" / "telemetry.jsonl"
RUN = FIXTURES / "runs" / "cms_small"

PROFILE = """
[profile]
id = "mine"
summary = "a small profile"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[[rule]]
id = "OWN001"
severity = "error"
summary = "x is in range"
why = "because"
check = "between"
keys = ["x"]
params = { min = 0, max = 1 }
expected = "0..1"
fix = "keep x in range"
"""


def ids(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def own(tmp_path: Path, lines: str, profile: str = PROFILE) -> Verdict:
    (tmp_path / "mine.toml").write_text(profile)
    (tmp_path / "x.jsonl").write_text(lines)
    return judge(tmp_path / "x.jsonl", str(tmp_path / "mine.toml"))


def test_verdict_says_how_much_was_judged() -> None:
    verdict = judge(RUN)
    assert verdict.passed
    assert verdict.exit_code == 0
    assert verdict.rows == 301
    assert verdict.bytes == (RUN / "telemetry.json").stat().st_size
    assert verdict.checks == sum(r.columns for r in verdict.rules if r.status != "not_applied")
    assert verdict.checks > 100
    assert set(verdict.engines) == {"polars", "pandera", "msgspec", "jsonschema"}
    assert verdict.profile_digest.startswith("sha256:")
    assert [artifact.form for artifact in verdict.artifacts] == ["JSON list"]


@pytest.mark.parametrize("path", [RUN, BAD, FIXTURES / "telemetry" / "zero_rows"], ids=str)
def test_json_matches_the_schema_and_is_strict(path: Path) -> None:
    text = judge(path).to_json()
    schema = json.loads((resources.files("trueup.gates") / "verdict.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)

    def refuse(token: str) -> None:
        raise AssertionError(token)

    document = json.loads(text, parse_constant=refuse)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    required = {"rule", "severity", "artifact", "where", "got", "expected", "fix"}
    assert all(required <= finding.keys() for finding in document["findings"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "verdict": "PASS"}, schema)


def test_directory_and_file_agree() -> None:
    whole, one = judge(BAD.parent), judge(BAD)
    assert ids(whole) == ids(one)
    assert not one.passed
    assert one.exit_code == 1


def test_directory_judges_each_artifact_and_keeps_them_apart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    shutil.copy(GOOD, tmp_path / "a" / "telemetry.json")
    shutil.copy(BAD, tmp_path / "telemetry.jsonl")
    verdict = judge(tmp_path)
    assert [Path(artifact.path).name for artifact in verdict.artifacts] == [
        "telemetry.jsonl",
        "telemetry.json",
    ]
    assert {Path(f.artifact).name for f in verdict.findings} == {"telemetry.jsonl"}


def test_unreadable_artifact_beside_a_readable_one_is_a_finding(tmp_path: Path) -> None:
    shutil.copy(GOOD, tmp_path / "telemetry.json")
    (tmp_path / "telemetry.jsonl").write_bytes(b"")
    verdict = judge(tmp_path)
    assert ids(verdict) == {"GAT006"}
    assert not verdict.passed


@pytest.mark.parametrize(
    ("name", "message"),
    [("nowhere", "does not exist"), ("empty", "holds no artifact"), ("other", "holds no artifact")],
)
def test_nothing_to_judge_is_unreadable(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    with pytest.raises(Unreadable, match=message):
        judge(tmp_path / name)


def test_link_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(GOOD, run / "telemetry.json")
    (run / "telemetry.jsonl").symlink_to(GOOD)
    assert ids(judge(run)) == {"GAT005"}
    (run / "telemetry.json").unlink()
    with pytest.raises(Unreadable, match=r"got a link to \S+ \(a link that leads out"):
        judge(run)


def test_linked_folder_is_not_entered(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "telemetry").symlink_to(FIXTURES / "telemetry")
    shutil.copy(GOOD, run / "telemetry.json")
    verdict = judge(run)
    assert len(verdict.artifacts) == 1


@pytest.mark.parametrize(
    "name", ["TELEMETRY.JSON", "Telemetry.Jsonl", "Eval/NIAH.JSON", "step_1.META.JSON", "Last.PT"]
)
def test_capitals_in_a_name_keep_nothing_from_being_judged(name: str, tmp_path: Path) -> None:
    shutil.copy(RUN / "telemetry.json", tmp_path / "telemetry.json")
    assert judge(tmp_path).passed
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    assert not judge(tmp_path).passed


def test_link_inside_the_directory_is_judged_once(tmp_path: Path) -> None:
    shutil.copy(GOOD, tmp_path / "telemetry.json")
    (tmp_path / "z_telemetry.json").symlink_to("telemetry.json")
    verdict = judge(tmp_path)
    assert verdict.passed
    assert len(verdict.artifacts) == 1


def test_folders_too_deep_are_reported(tmp_path: Path) -> None:
    shutil.copy(GOOD, tmp_path / "telemetry.json")
    (tmp_path / "/".join("abcdefghijklmnopqrst")).mkdir(parents=True)
    assert ids(judge(tmp_path)) == {"GAT007"}


@pytest.mark.skipif(os.name != "posix", reason="named pipes are a POSIX matter")
def test_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "telemetry.json")
    with pytest.raises(Unreadable, match="not a regular file"):
        judge(tmp_path / "telemetry.json")


def test_rule_that_reads_nothing_fails(tmp_path: Path) -> None:
    verdict = own(tmp_path, '{"step": 0, "y": 1}\n')
    assert ids(verdict) == {"GAT002", "GAT003"}
    assert not verdict.passed
    skipping = PROFILE.replace('check = "between"', 'check = "between"\nabsent = "skip"')
    assert ids(own(tmp_path, '{"step": 0, "y": 1}\n', skipping)) == {"GAT002"}


def test_zero_rows_fails(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PROFILE)
    (tmp_path / "x.json").write_text("[]")
    verdict = judge(tmp_path / "x.json", str(tmp_path / "mine.toml"))
    assert ids(verdict) == {"GAT001", "GAT002", "GAT003"}


def test_nan_and_text_never_satisfy_a_range(tmp_path: Path) -> None:
    assert own(tmp_path, '{"step": 0, "x": 0.5}\n').passed
    out = own(tmp_path, '{"step": 0, "x": 0.5}\n{"step": 1, "x": NaN}\n')
    assert ids(out) == {"OWN001", "RDR008"}
    (range_finding,) = [finding for finding in out.findings if finding.rule == "OWN001"]
    assert range_finding.got == "undetermined: NaN"
    assert {rule.id: rule.status for rule in out.rules} == {"OWN001": "undetermined"}
    assert ids(own(tmp_path, '{"step": 0, "x": "0.5"}\n')) == {"OWN001"}
    assert ids(own(tmp_path, '{"step": 0, "x": true}\n')) == {"OWN001"}


def test_findings_are_grouped_with_count_range_and_first_examples(tmp_path: Path) -> None:
    rows = [{"step": i, "x": 2.0 if 10 <= i < 90 else 0.5} for i in range(100)]
    verdict = own(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    (finding,) = verdict.findings
    assert (finding.count, finding.where.steps) == (80, (10, 89))
    assert [example.where.line for example in finding.examples] == [11, 12, 13, 14, 15]


def test_groups_are_bounded(tmp_path: Path) -> None:
    lines = "".join(f'{{"step": {i}, "x": 0.5, "k{i}": [1]}}\n' for i in range(3_000))
    verdict = own(tmp_path, lines)
    assert len(verdict.findings) < 2_100
    assert sum(f.count for f in verdict.findings if f.rule == "RDR015") == 3_000


@pytest.mark.parametrize(
    ("name", "value"),
    [("PANDERA_VALIDATION_ENABLED", "False"), ("PANDERA_VALIDATION_DEPTH", "SCHEMA_ONLY")],
)
def test_environment_cannot_switch_the_gate_off(name: str, value: str) -> None:
    """pandera reads its variables when it is imported: hence a process of its own."""
    code = f"""
import json
from trueup.gates import judge
verdict = judge({str(BAD.parent.parent / "loss_negative")!r})
print(json.dumps([verdict.verdict, sorted({{f.rule for f in verdict.findings}})]))
"""
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(out.stdout) == ["fail", ["GAT004", "TEL008"]]


def test_engine_that_passes_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "failing", lambda compiled, frame: set())
    with pytest.raises(GateError, match="does not check what it is told to"):
        judge(GOOD)


def test_progress_goes_to_the_end(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    judge(RUN, progress=lambda done, total: calls.append((done, total)))
    size = (RUN / "telemetry.json").stat().st_size
    assert calls[-1] == (size, size)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_importing_the_gates_loads_no_table_engine() -> None:
    code = (
        "import sys, trueup.gates; print(sorted({'polars','pandera','numpy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def late_threshold(threshold: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(GOOD.read_text())
    rows[0]["model.surprise_threshold"] = threshold
    return rows


def test_gating_is_taken_from_the_configuration_row(tmp_path: Path) -> None:
    """The same rows: not judged by the surprise rules with null, judged with a number."""
    path = tmp_path / "telemetry.json"
    for threshold, want in ((None, "not_applied"), (0.0, "false")):
        rows = late_threshold(threshold)
        for row in rows[1:]:
            del row["surprise_value"]
        path.write_text(json.dumps(rows))
        outcomes = {rule.id: rule for rule in judge(path).rules}
        assert outcomes["TEL017"].status == want


def test_verdict_is_the_same_for_lists_and_lines(tmp_path: Path) -> None:
    for name in ("ppl_of_other_loss", "grad_norm_zero", "step_repeats", "passes_long"):
        folder = FIXTURES / "telemetry" / name
        rows = json.loads((folder / "telemetry.json").read_text())
        lines = tmp_path / f"{name}.jsonl"
        lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
        one, other = judge(folder / "telemetry.json"), judge(lines)
        assert [(f.rule, f.where.step, f.got, f.count) for f in one.findings] == [
            (f.rule, f.where.step, f.got, f.count) for f in other.findings
        ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PANDERA_VALIDATION_DEPTH", "x"),
        ("POLARS_MAX_THREADS", "0"),
        ("POLARS_MAX_THREADS", "00"),
    ],
)
def test_a_variable_that_stops_the_engine_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an import fails, or a thread pool panics, which no handler of errors catches."""
    monkeypatch.setenv(name, value)
    with pytest.raises(GateError, match=f"{name}: the table engine cannot start"):
        judge(GOOD)
    monkeypatch.setenv(name, "DATA_ONLY" if name.startswith("PANDERA") else "2")
    judge(GOOD)


@pytest.mark.parametrize(
    ("make", "got"),
    [
        pytest.param(os.mkfifo, "not a regular file", id="pipe"),
        pytest.param(lambda path: path.symlink_to("gone"), "a link to nothing", id="dangling"),
        pytest.param(lambda path: path.symlink_to(path.name), "a link to nothing", id="loop"),
    ],
)
def test_an_artifact_that_is_no_file_is_not_passed_over(
    make: Any, got: str, tmp_path: Path
) -> None:
    """Its name says that it would have been judged."""
    shutil.copy(GOOD, tmp_path / "telemetry.json")
    assert judge(tmp_path).passed
    make(tmp_path / "b_telemetry.json")
    verdict = judge(tmp_path)
    assert [(one.rule, one.got) for one in verdict.findings] == [("GAT006", got)]
    (tmp_path / "telemetry.json").unlink()
    with pytest.raises(Unreadable, match=f"holds no artifact of this profile, got {got}"):
        judge(tmp_path)
