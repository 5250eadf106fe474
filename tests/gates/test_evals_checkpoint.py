"""Evaluations and their checkpoints on a real disk: paths, links, times, hostile documents."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates import Verdict, judge
from trueup.gates.documents.model import Document, Subject
from trueup.gates.documents.run import Run
from trueup.gates.evals.checks import CHECKS
from trueup.gates.profile.load import load_profile, parse_profile

EVALS = Path(__file__).resolve().parents[2] / "fixtures" / "evals"
PROFILE = str(EVALS / "profile.toml")
OWN = load_profile(PROFILE)
RULES = {rule.check: rule for rule in OWN.rules}
WEIGHTS = b"weights\n"
NAME = "checkpoints/step_000010.pt"


def write(root: Path, path: str = NAME, at: str = "eval/zeroshot.json", **head: Any) -> None:
    """A run directory with one result that names `path`."""
    for name, data in ((NAME, WEIGHTS), (at, b"")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    checkpoint = {"path": path, "sha256": digest, "step": 10}
    results = {"tasks": [{"name": "piqa", "n": 2, "correct": 1, "accuracy": 0.5}]}
    data = {"kind": "zeroshot", "checkpoint": checkpoint, "results": results, **head}
    (root / at).write_text(json.dumps(data))


def status(verdict: Verdict, rule: str) -> str:
    return next(one.status for one in verdict.rules if one.id == rule)


def got(verdict: Verdict, rule: str) -> str:
    return next(finding.got for finding in verdict.findings if finding.rule == rule)


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        pytest.param(NAME, "true", id="from-the-root"),
        pytest.param("../checkpoints/step_000010.pt", "true", id="from-the-results-folder"),
        pytest.param("./checkpoints//step_000010.pt", "true", id="untidy"),
        pytest.param("checkpoints", "false", id="folder"),
        pytest.param("run/checkpoints/step_000010.pt", "false", id="from-above-the-run"),
        pytest.param("../../outside.pt", "false", id="above"),
        pytest.param("checkpoints/link.pt", "false", id="link-out"),
        pytest.param("linked/outside.pt", "false", id="linked-folder"),
        pytest.param("checkpoints/inner.pt", "true", id="link-inside"),
        pytest.param("checkpoints/step\0.pt", "false", id="nul"),
        pytest.param("", "false", id="empty"),
        pytest.param("C:\\step_000010.pt", "false", id="windows"),
    ],
)
def test_a_path_leads_to_a_file_of_the_run_directory(
    path: str, inside: str, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    write(run, path)
    (tmp_path / "outside.pt").write_bytes(WEIGHTS)
    (run / "checkpoints" / "link.pt").symlink_to(tmp_path / "outside.pt")
    (run / "checkpoints" / "inner.pt").symlink_to(run / NAME)
    (run / "linked").symlink_to(tmp_path)
    verdict = judge(run, PROFILE)
    assert status(verdict, "EVAL003") == inside
    assert status(verdict, "EVAL004") == ("true" if inside == "true" else "not_applied")


def test_the_nearest_folder_above_counts(tmp_path: Path) -> None:
    """Where a run was put into a folder of a larger directory, its paths still lead to its own."""
    write(tmp_path / "a")
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / NAME).write_bytes(b"of another run\n")
    assert status(judge(tmp_path, PROFILE), "EVAL004") == "true"


DAY = 86_400
NOON = 1_767_268_800  # 2026-01-01T12:00:00Z
STATED = {"created_at": "2026-01-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("head", "sidecar", "mine", "other", "expected"),
    [
        pytest.param(STATED, "2026-01-01T11:59:59Z", NOON, NOON + DAY, "true", id="stated"),
        pytest.param(STATED, "2026-01-01T12:00:01Z", NOON + DAY, NOON, "false", id="stated-older"),
        pytest.param(STATED, "2026-01-01T13:30:00+02:00", NOON, NOON, "true", id="zones"),
        pytest.param(STATED, "2026-01-01T11:00:00", NOON, NOON, "undetermined", id="naive-sidecar"),
        pytest.param(STATED, None, NOON + 1, NOON, "true", id="files"),
        pytest.param(STATED, None, NOON, NOON + 1, "false", id="files-older"),
        pytest.param(STATED, None, NOON, NOON, "undetermined", id="files-equal"),
        pytest.param(STATED, None, NOON, 0, "undetermined", id="fixed-time-of-an-archive"),
        pytest.param({}, "2026-01-01T11:00:00Z", NOON, NOON + 1, "false", id="result-is-silent"),
        pytest.param(
            {"created_at": "yesterday"}, None, NOON + 1, NOON, "undetermined", id="no-time"
        ),
    ],
)
def test_a_result_is_younger_than_its_checkpoint(
    head: dict[str, str], sidecar: str | None, mine: int, other: int, expected: str, tmp_path: Path
) -> None:
    write(tmp_path, **head)
    if sidecar is not None:
        meta = tmp_path / "checkpoints" / "step_000010.meta.json"
        meta.write_text(json.dumps({"step": 10, "created_at": sidecar}))
    os.utime(tmp_path / "eval" / "zeroshot.json", (mine, mine))
    os.utime(tmp_path / NAME, (other, other))
    verdict = judge(tmp_path, PROFILE)
    assert status(verdict, "EVAL006") == expected
    if expected == "undetermined":
        assert got(verdict, "EVAL006").startswith("undetermined: ")
        assert not verdict.passed


def test_a_step_is_held_against_name_and_metadata(tmp_path: Path) -> None:
    write(tmp_path)
    meta = tmp_path / "checkpoints" / "step_000010.meta.json"
    for step, expected in ((10, "true"), (11, "false"), (True, "false"), ("10", "false")):
        meta.write_text(json.dumps({"step": step}))
        assert status(judge(tmp_path, PROFILE), "EVAL005") == expected
    meta.write_text(json.dumps({"iteration": 11}))
    assert status(judge(tmp_path, PROFILE), "EVAL005") == "true"  # the name still says so


def test_true_is_no_step(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / NAME).rename(tmp_path / "checkpoints" / "last.pt")
    path = tmp_path / "eval" / "zeroshot.json"
    text = path.read_text().replace("step_000010", "last").replace('"step": 10', '"step": 1')
    path.write_text(text)
    assert status(judge(tmp_path, PROFILE), "EVAL005") == "not_applied"  # nothing to hold it to
    for step, expected in (("1", "true"), ("true", "false"), ("1.0", "true")):
        (tmp_path / "checkpoints" / "last.meta.json").write_text(f'{{"step": {step}}}')
        assert status(judge(tmp_path, PROFILE), "EVAL005") == expected


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        pytest.param(1.2345678, "false", id="least"),
        pytest.param(5.1234567, "false", id="largest"),
        pytest.param(2.3456789, "false", id="last"),
        pytest.param(2.3456788, "true", id="near"),
        pytest.param(3.4567891, "true", id="in-between"),
        pytest.param(2.5, "not_applied", id="too-coarse-to-tell"),
    ],
)
def test_a_loss_of_the_log_is_no_measurement(loss: float, expected: str, tmp_path: Path) -> None:
    rows = [5.1234567, 3.4567891, 1.2345678, 2.3456789]
    lines = [json.dumps({"step": i, "loss": one}) for i, one in enumerate(rows)]
    lines.append('{"step": 4}')  # the last loss is that of the row before
    (tmp_path / "telemetry.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "eval").mkdir()
    entry = {"checkpoint": "a.pt", "segment_losses": {"x": loss}}
    (tmp_path / "eval" / "continual.json").write_text(json.dumps([entry]))
    assert status(judge(tmp_path, PROFILE), "EVAL019") == expected


def test_findings_say_line_byte_and_key(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "eval" / "zeroshot.json"
    path.write_text(path.read_text().replace('"correct": 1,', '\n"correct": 2,'))
    (found,) = (f for f in judge(tmp_path, PROFILE).findings if f.rule == "EVAL008")
    assert (found.where.line, found.where.key) == (2, "results.tasks[0].accuracy")
    assert found.where.byte == path.read_bytes().index(b"0.5")
    assert found.got == "0.5, but 2 / 2 is 1"


words = st.sampled_from(
    ["kind", "results", "tasks", "cells", "lengths", "metrics", "matrix", "initial", "n", "correct",
     "accuracy", "baseline", "memorized", "delta", "stderr", "loss", "ppl", "tokens", "bytes",
     "total", "mean", "weighting", "name", "context", "depth", "checkpoint", "checkpoints", "path",
     "sha256", "step", "created_at", "memorize", "enabled", "stats", "a_update_events", "a_updates",
     "zeroshot", "niah", "continual", "passkey", "pg19", "piqa_accuracy", "piqa_samples",
     "niah_2048", "niah_2048_memorize_delta", "samples", "accuracy_base", "ppl_base",
     "segment_losses", "segment_baseline_losses", "memorize_stats", "metric", "variant", "unit"]
)  # fmt: skip
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([0, 1, 0.5, 1e308, -1e308, 5e-324, 2**63, 10**400])
    | words
    | st.text(max_size=3)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=8),
    max_leaves=40,
)
kinds = st.sampled_from(["zeroshot", "niah", "continual", "passkey", "pg19", "metrics"])
shaped = st.builds(
    lambda kind, key, value, more: {"kind": kind, "results": {key: value, **more}},
    kinds, words, values, st.dictionaries(words, values, max_size=4),
)  # fmt: skip


@settings(deadline=None, max_examples=400)
@given(data=values | shaped, other=values | shaped)
def test_no_document_breaks_a_rule(data: Any, other: Any) -> None:
    """Whatever stands in a document, every rule answers, and a part that is odd is no crash."""
    run = Run(EVALS, "evals", OWN)
    for name, one in (("a.json", data), ("b.json", other)):
        document = Document(one, "JSON", 1)
        run.subjects.append(Subject(name, "eval", EVALS / name, document, run))
    for check in CHECKS:
        for subject in run.subjects:
            answer = check.run(subject, RULES[check.name])
            assert answer.read >= 0
            assert all(flaw.got and flaw.status != "true" for flaw in answer.flaws)


def test_a_part_is_a_profile_of_its_own_rules_only() -> None:
    part = parse_profile(b'[profile]\nid = "x"\nsummary = "y"\ninclude = ["evals"]\n', "x")
    assert [rule.id for rule in part.rules] == [f"EVAL{n:03}" for n in range(1, 22)]
    assert {rule.on for rule in part.rules} == {"eval"}


def test_a_document_of_too_many_values_is_told_and_not_looked_at(tmp_path: Path) -> None:
    """Every rule asks of every value: what no evaluation is like must not take minutes."""
    row = {"name": "x", "n": 2, "correct": 1, "accuracy": 0.5}
    tasks = [{**row, "name": f"t{number}"} for number in range(40_000)]
    (tmp_path / "eval").mkdir()
    data = {"kind": "zeroshot", "results": {"tasks": tasks}}
    (tmp_path / "eval" / "zeroshot.json").write_text(json.dumps(data))
    begin = time.process_time()
    verdict = judge(tmp_path, PROFILE)
    assert time.process_time() - begin < 20
    assert got(verdict, "EVAL001") == "holds more than 50000 values; nothing of it was looked at"
    assert status(verdict, "EVAL008") == "not_applied"
    data["results"] = {"tasks": tasks[:8_000]}
    (tmp_path / "eval" / "zeroshot.json").write_text(json.dumps(data))
    assert status(judge(tmp_path, PROFILE), "EVAL008") == "true"
