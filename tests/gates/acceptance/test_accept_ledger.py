"""The ledger of runs: chained, append-only, and honest about second attempts."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.acceptance import ledger_add
from trueup.gates.acceptance.check_ledger import judge_ledger
from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.errors import Unreadable

COMMIT, CONFIG = "1" * 40, "2" * 64


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def manifest(folder: Path, run: str, **changes: Any) -> Path:
    said = {
        "run_id": run, "stage": "final", "git_commit": COMMIT, "config_sha256": CONFIG,
        "seeds": [1, 2], "folds": [0],
        "gate_parameters": {"acceptance_sha256": "3" * 64, "baseline_sha256": []},
        "started_at": "2026-11-01T08:00:00Z", **changes,
    }  # fmt: skip
    path = folder / f"{run}.json"
    path.write_text(json.dumps(said))
    return path


def outcomes(path: Path) -> list[str]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [record.get("outcome", record["event"]) for record in records]


def ids(path: Path, head: str = "") -> list[str]:
    return sorted({finding.rule for finding in judge_ledger(path, head).findings})


def results(folder: Path) -> Path:
    path = folder / "results.json"
    path.write_text("{}")
    return path


def test_every_line_holds_the_digest_of_the_line_before(ledger: Path) -> None:
    folder = ledger.parent
    first = ledger_add.add_start(ledger, manifest(folder, "r1"))
    ended = ledger_add.add_outcome(ledger, manifest(folder, "r1"), "PASS", results(folder))
    lines = ledger.read_bytes().split(b"\n")
    assert lines[2:] == [b""]
    assert json.loads(lines[0])["prev"] == "0" * 64
    assert json.loads(lines[1])["prev"] == hashlib.sha256(lines[0]).hexdigest() == first.head
    assert ended.head == hashlib.sha256(lines[1]).hexdigest()
    assert json.loads(lines[1])["results_sha256"] == hashlib.sha256(b"{}").hexdigest()
    assert judge_ledger(ledger, first.head).passed


@pytest.mark.parametrize(
    "earlier", ["PASS", "FAIL", "ABORTED", None], ids=["passed", "failed", "aborted", "running"]
)
def test_a_second_attempt_is_a_rerun_whatever_became_of_the_first(
    ledger: Path, earlier: Any
) -> None:
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    if earlier is not None:
        ledger_add.add_outcome(ledger, manifest(folder, "r1"), earlier, results(folder))
    other = manifest(folder, "r2", seeds=[7, 8], diagnosis="minutes 14")
    added = ledger_add.add_start(ledger, other)
    assert "has the same commit and config" in added.refused
    assert outcomes(ledger)[-1] == "REJECTED_RERUN"  # written down as what it is
    assert judge_ledger(ledger).passed  # the ledger is honest; the run is not accepted
    ended = ledger_add.add_outcome(ledger, other, "PASS", results(folder))
    assert ended.record["outcome"] == "REJECTED_RERUN"
    assert ended.record["claimed"] == "PASS"


def test_the_same_run_starts_once_and_ends_once(ledger: Path) -> None:
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    assert "is of the same run" in ledger_add.add_start(ledger, manifest(folder, "r1")).refused
    other = folder / "other.jsonl"
    ledger_add.add_start(other, manifest(folder, "r1"))
    ledger_add.add_outcome(other, manifest(folder, "r1"), "FAIL", results(folder))
    again = ledger_add.add_outcome(other, manifest(folder, "r1"), "PASS", results(folder))
    assert "is of the same run" in again.refused


@pytest.mark.parametrize("key", ["git_commit", "config_sha256"])
def test_a_new_attempt_needs_a_change_and_a_diagnosis(ledger: Path, key: str) -> None:
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    ledger_add.add_outcome(ledger, manifest(folder, "r1"), "FAIL", results(folder))
    change = {key: "4" * len({"git_commit": COMMIT, "config_sha256": CONFIG}[key])}
    before = ledger.read_bytes()
    with pytest.raises(AcceptanceError, match="needs a diagnosis"):
        ledger_add.add_start(ledger, manifest(folder, "r2", **change))
    assert ledger.read_bytes() == before
    added = ledger_add.add_start(ledger, manifest(folder, "r2", diagnosis="minutes 14", **change))
    assert added.refused == ""
    assert ids(ledger) == []


def test_after_a_passed_run_the_next_one_needs_no_diagnosis(ledger: Path) -> None:
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    ledger_add.add_outcome(ledger, manifest(folder, "r1"), "PASS", results(folder))
    assert not ledger_add.add_start(ledger, manifest(folder, "r2", git_commit="4" * 40)).refused


def void(folder: Path, run: str = "r1", steps: int = 0) -> Path:
    said = {"run_id": run, "reason": "node lost", "failed_at": "2026-11-01T07:00:00Z",
            "training_steps": steps}  # fmt: skip
    path = folder / "void.json"
    path.write_text(json.dumps(said))
    return path


def test_a_run_that_never_trained_is_void_and_does_not_count(ledger: Path) -> None:
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    ledger_add.add_void(ledger, manifest(folder, "r1"), void(folder))
    added = ledger_add.add_start(ledger, manifest(folder, "r2"))
    assert (added.refused, outcomes(ledger)) == ("", ["STARTED", "VOID", "STARTED"])
    assert judge_ledger(ledger).passed
    (folder / "void.json").write_text((folder / "void.json").read_text() + " ")
    assert ids(ledger) == ["ACC412"]
    (folder / "void.json").unlink()
    assert ids(ledger) == ["ACC412"]


@pytest.mark.parametrize(
    ("run", "steps", "words"),
    [("r1", 1, "is not void"), ("r0", 0, "is the evidence of another run")],
)
def test_what_trained_is_not_void(ledger: Path, run: str, steps: int, words: str) -> None:
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    with pytest.raises(AcceptanceError, match=words):
        ledger_add.add_void(ledger, manifest(folder, "r1"), void(folder, run, steps))
    assert outcomes(ledger) == ["STARTED"]


def test_a_failed_run_cannot_be_made_void(ledger: Path) -> None:
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    ledger_add.add_outcome(ledger, manifest(folder, "r1"), "FAIL", results(folder))
    added = ledger_add.add_void(ledger, manifest(folder, "r1"), void(folder))
    assert added.record["outcome"] == "REJECTED_RERUN"
    assert ledger_add.add_start(ledger, manifest(folder, "r2", diagnosis="x")).refused


def test_an_end_without_a_start_is_refused(ledger: Path) -> None:
    with pytest.raises(AcceptanceError, match="never saw start"):
        ledger_add.add_outcome(ledger, manifest(ledger.parent, "r1"), "ABORTED", None)
    assert not ledger.exists()  # and no empty ledger is left


@pytest.mark.parametrize("outcome", ["PASS", "FAIL"])
def test_an_outcome_names_its_results(ledger: Path, outcome: Any) -> None:
    ledger_add.add_start(ledger, manifest(ledger.parent, "r1"))
    with pytest.raises(AcceptanceError, match="needs the results"):
        ledger_add.add_outcome(ledger, manifest(ledger.parent, "r1"), outcome, None)


def three(ledger: Path) -> list[bytes]:
    """Three records, as lines with their newlines."""
    folder = ledger.parent
    ledger_add.add_start(ledger, manifest(folder, "r1"))
    ledger_add.add_outcome(ledger, manifest(folder, "r1"), "PASS", results(folder))
    ledger_add.add_start(ledger, manifest(folder, "r2", git_commit="4" * 40))
    return ledger.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda a, b, c: a + c, id="a-line-taken-out"),
        pytest.param(lambda a, b, c: b + c, id="the-first-taken-out"),
        pytest.param(lambda a, b, c: b + a + c, id="two-changed-places"),
        pytest.param(lambda a, b, c: a + b + b + c, id="a-line-twice"),
        pytest.param(lambda a, b, c: a.replace(b"r1", b"r9") + b + c, id="a-word-changed"),
        pytest.param(lambda a, b, c: a.replace(b": ", b":  ", 1) + b + c, id="a-blank-added"),
        pytest.param(lambda a, b, c: a + b"\n" + b + c, id="a-blank-line"),
        pytest.param(lambda a, b, c: (a + b + c).replace(b"\n", b"\r\n"), id="line-ends-converted"),
        pytest.param(lambda a, b, c: (a + b + c)[:-1], id="cut-before-the-last-newline"),
        pytest.param(lambda a, b, c: (a + b + c)[:-20], id="cut-inside-a-line"),
        pytest.param(lambda a, b, c: a + b'{"seq": 2}\n' + c, id="no-record"),
        pytest.param(lambda a, b, c: a + b"[]\n" + c, id="no-object"),
        pytest.param(
            lambda a, b, c: a + b.replace(b'"outcome"', b'"outcome": "FAIL", "outcome"') + c,
            id="a-key-twice",
        ),
    ],
)
def test_every_change_of_a_line_breaks_the_chain(ledger: Path, damage: Any) -> None:
    ledger.write_bytes(damage(*three(ledger)))
    judgement = judge_ledger(ledger)
    assert "ACC411" in {finding.rule for finding in judgement.findings}
    assert not judgement.passed
    before = ledger.read_bytes()
    with pytest.raises(AcceptanceError):
        ledger_add.add_start(ledger, manifest(ledger.parent, "r3", git_commit="5" * 40))
    assert ledger.read_bytes() == before


def test_lines_cut_off_show_only_by_a_head_that_was_kept(ledger: Path) -> None:
    first, second, third = three(ledger)
    head = hashlib.sha256(third[:-1]).hexdigest()
    assert ids(ledger, head) == []
    ledger.write_bytes(first + second)
    assert ids(ledger) == []
    assert ids(ledger, head) == ["ACC411"]


def test_a_rerun_written_by_hand_is_found(ledger: Path) -> None:
    """The chain holds: whoever wrote it knew how."""
    first = three(ledger)[0]
    record = json.loads(first) | {"seq": 2, "run_id": "r9", "seeds": [99],
                                  "prev": hashlib.sha256(first[:-1]).hexdigest()}  # fmt: skip
    ledger.write_bytes(first + json.dumps(record).encode() + b"\n")
    assert ids(ledger) == ["ACC409"]


def test_a_ledger_is_not_followed_out_by_a_link(ledger: Path) -> None:
    target = ledger.parent / "elsewhere.jsonl"
    three(target)
    ledger.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(AcceptanceError, match="cannot be opened for adding"):
        ledger_add.add_start(ledger, manifest(ledger.parent, "r3", git_commit="5" * 40))
    assert target.read_bytes() == before


def test_an_empty_or_absent_ledger_is_nothing_to_judge(ledger: Path) -> None:
    with pytest.raises(Unreadable):
        judge_ledger(ledger)
    ledger.write_bytes(b"")
    with pytest.raises(Unreadable):
        judge_ledger(ledger)


_ADD = """
import sys
from pathlib import Path
from trueup.gates.acceptance.ledger_add import add_start
for manifest in sys.argv[2:]:
    add_start(Path(sys.argv[1]), Path(manifest))
"""


def test_many_at_once_keep_one_chain(ledger: Path) -> None:
    folder = ledger.parent
    paths = [
        str(manifest(folder, f"r{n}", git_commit=f"{n:040x}", diagnosis="x")) for n in range(24)
    ]
    writers = [
        subprocess.Popen([sys.executable, "-c", _ADD, str(ledger), *paths[turn::3]])
        for turn in range(3)
    ]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    assert len(outcomes(ledger)) == 24
    assert judge_ledger(ledger).passed
