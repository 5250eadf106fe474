"""The statement: of the public form, the same bytes each time, and checked again later."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from trueup.gates.closure import statement as form
from trueup.gates.closure.close import close
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.outcome import Closure
from trueup.gates.closure.verify import Recheck, verify_statement

CLOSURES = Path(__file__).parents[2] / "fixtures" / "closures"
sys.path.insert(0, str(CLOSURES))
import laid  # noqa: E402

NOW = datetime(2026, 3, 10, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def _repositories() -> Iterator[None]:
    yield
    laid.forget()


def closed(name: str, folder: Path) -> Closure:
    ticket = laid.lay_out(name, folder)
    return close(ticket, equations=["nl.delta_momentum"], now=NOW)


@pytest.fixture
def statement(tmp_path: Path) -> Path:
    """The statement of the closing that passes, beside its ticket."""
    path = tmp_path / "ticket.statement.json"
    path.write_text(closed("passes", tmp_path).statement)
    return path


def rules(recheck: Recheck) -> set[str]:
    return {finding.rule for finding in recheck.findings}


def test_it_is_an_in_toto_statement_with_a_test_result(statement: Path) -> None:
    """Names and places of the fields are those of the two public specifications."""
    data = json.loads(statement.read_bytes())
    assert data["_type"] == "https://in-toto.io/Statement/v1"
    assert data["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert set(data) == {"_type", "subject", "predicateType", "predicate"}
    predicate = data["predicate"]
    assert predicate["result"] == "PASSED"
    assert set(predicate) == {
        "result", "configuration", "url", "passedTests", "warnedTests", "failedTests",
    }  # fmt: skip
    assert predicate["failedTests"] == predicate["warnedTests"] == []
    assert {"criterion: copy-accuracy", "criterion: final-loss", "rule: CPY001"} <= set(
        predicate["passedTests"]
    )
    assert all(one["digest"] for one in predicate["configuration"])


def test_its_subjects_are_the_files_and_the_commit(statement: Path, tmp_path: Path) -> None:
    subjects = json.loads(statement.read_bytes())["subject"]
    files = {one["name"]: one["digest"]["sha256"] for one in subjects if "sha256" in one["digest"]}
    assert set(files) == {
        "board.json", "evidence.json", "profile.toml", "run/evals/copy.json", "run/metrics.json",
        "run/step_5.bin", "run/telemetry.json", "run/train.log", "thread.json", "ticket.toml",
    }  # fmt: skip
    for name, sha256 in files.items():
        assert sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    (commit,) = [one for one in subjects if "gitCommit" in one["digest"]]
    assert len(commit["digest"]["gitCommit"]) == 40


def test_it_holds_to_its_own_schema(statement: Path) -> None:
    Draft202012Validator.check_schema(form.schema())
    Draft202012Validator(form.schema()).validate(json.loads(statement.read_bytes()))


def test_the_same_ticket_gives_the_same_bytes(statement: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    assert closed("passes", again).statement == statement.read_text()


def test_a_closing_that_fails_has_no_statement(tmp_path: Path) -> None:
    assert closed("below_threshold", tmp_path).statement == ""


@pytest.mark.parametrize(
    "name", ["passes_waived", "passes_no_thread", "passes_rerun_declared", "eval_unlisted"]
)
def test_what_was_let_go_is_a_warning_in_it(name: str, tmp_path: Path) -> None:
    predicate = json.loads(closed(name, tmp_path).statement)["predicate"]
    assert predicate["result"] == "WARNED"
    assert predicate["warnedTests"]
    assert not set(predicate["warnedTests"]) & set(predicate["passedTests"])


@pytest.mark.parametrize("name", [one for one in laid.names() if one.startswith("passes_")])
def test_the_statement_of_every_ticket_that_closes_holds(name: str, tmp_path: Path) -> None:
    path = tmp_path / "ticket.statement.json"
    path.write_text(closed(name, tmp_path).statement)
    assert verify_statement(path).findings == ()


def test_it_still_holds_where_nothing_changed(statement: Path) -> None:
    recheck = verify_statement(statement)
    assert recheck.passed
    assert recheck.subjects == 11


def test_it_is_found_from_a_folder_below(statement: Path, tmp_path: Path) -> None:
    (tmp_path / "attached" / "here").mkdir(parents=True)
    moved = tmp_path / "attached" / "here" / "s.json"
    shutil.move(statement, moved)
    assert verify_statement(moved).passed


def test_elsewhere_it_needs_the_root(statement: Path, tmp_path: Path) -> None:
    away = tmp_path.parent / f"{tmp_path.name}-away"
    away.mkdir()
    moved = away / "s.json"
    shutil.move(statement, moved)
    assert "CLO121" in rules(verify_statement(moved))
    assert verify_statement(moved, root=tmp_path).passed
    with pytest.raises(ClosureError, match="is no folder"):
        verify_statement(moved, root=tmp_path / "none")


@pytest.mark.parametrize(
    "name", ["run/telemetry.json", "run/step_5.bin", "thread.json", "profile.toml"]
)
def test_a_changed_file_is_found(name: str, statement: Path, tmp_path: Path) -> None:
    with (tmp_path / name).open("ab") as file:
        file.write(b" ")
    assert rules(verify_statement(statement)) == {"CLO120"}


@pytest.mark.parametrize("name", ["run/telemetry.json", "evidence.json"])
def test_a_missing_file_is_found(name: str, statement: Path, tmp_path: Path) -> None:
    (tmp_path / name).unlink()
    assert rules(verify_statement(statement)) == {"CLO121"}


def test_a_file_replaced_by_a_link_out_is_found(statement: Path, tmp_path: Path) -> None:
    log = tmp_path / "run" / "train.log"
    outside = tmp_path.parent / f"{tmp_path.name}.log"
    shutil.move(log, outside)
    log.symlink_to(outside)
    assert rules(verify_statement(statement)) == {"CLO001"}


def test_a_ticket_that_is_gone_leaves_its_criteria_unknown(statement: Path, tmp_path: Path) -> None:
    (tmp_path / "ticket.toml").unlink()
    assert rules(verify_statement(statement, root=tmp_path)) == {"CLO121", "CLO122"}


def test_a_commit_that_is_gone_is_found(statement: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / ".git")
    (tmp_path / ".git").mkdir()
    assert rules(verify_statement(statement)) == {"CLO121"}


def test_without_a_repository_the_commit_is_not_asked_for(statement: Path, tmp_path: Path) -> None:
    os.rename(tmp_path / ".git", tmp_path / "clone.git")
    text = (tmp_path / "ticket.toml").read_text()
    assert 'repository = "."' in text
    assert rules(verify_statement(statement)) == {"CLO121"}  # the ticket says there is one
    assert verify_statement(statement, repository=tmp_path / "clone.git").passed


Edit = Callable[[dict[str, Any]], Any]


def first(data: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in data["subject"] if one["name"] == name)
    return found


EDITS: list[tuple[str, Edit, set[str]]] = [
    ("criterion-left-out", lambda d: d["predicate"]["passedTests"].remove("criterion: final-loss"),
     {"CLO122"}),
    ("failed-test", lambda d: d["predicate"]["failedTests"].append("x"), {"CLO123"}),
    ("says-failed", lambda d: d["predicate"].update(result="FAILED"), {"CLO123"}),
    ("says-warned", lambda d: d["predicate"].update(result="WARNED"), {"CLO123"}),
    ("nothing-passed", lambda d: d["predicate"].update(passedTests=[]), {"CLO122", "CLO123"}),
    ("ticket-left-out", lambda d: d["subject"].remove(first(d, "ticket.toml")), {"CLO124"}),
    ("log-left-out", lambda d: d["subject"].remove(first(d, "run/train.log")), {"CLO124"}),
    ("telemetry-left-out", lambda d: d["subject"].remove(first(d, "run/telemetry.json")),
     {"CLO124", "CLO125"}),
    ("thread-left-out", lambda d: d["subject"].remove(first(d, "thread.json")), {"CLO124"}),
    ("commit-left-out", lambda d: d["subject"].remove(first(d, "repository")), {"CLO124"}),
    ("named-twice", lambda d: d["subject"].append(first(d, "ticket.toml")), {"CLO124"}),
    ("other-digest", lambda d: first(d, "thread.json").update(digest={"sha512": "ab"}), {"CLO124"}),
    ("digest-changed", lambda d: first(d, "thread.json").update(digest={"sha256": "ab" * 32}),
     {"CLO120"}),
    ("commit-changed", lambda d: first(d, "repository").update(digest={"gitCommit": "ab" * 20}),
     {"CLO121"}),
    ("leads-out", lambda d: first(d, "thread.json").update(name="../../etc/passwd"),
     {"CLO001", "CLO124"}),
    ("absolute", lambda d: first(d, "thread.json").update(name="/etc/passwd"),
     {"CLO001", "CLO124"}),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "found"), [pytest.param(e, f, id=n) for n, e, f in EDITS])
def test_an_edited_statement_is_found(edit: Edit, found: set[str], statement: Path) -> None:
    data = json.loads(statement.read_bytes())
    edit(data)
    statement.write_text(json.dumps(data))
    assert rules(verify_statement(statement)) == found


def test_fields_of_others_are_ignored(statement: Path) -> None:
    data = json.loads(statement.read_bytes())
    data["https://example.org/extension"] = 1
    data["predicate"]["note"] = "kept"
    statement.write_text(json.dumps(data))
    assert verify_statement(statement).passed


OTHERS: list[tuple[str, Edit, str]] = [
    ("other-type", lambda d: d.update(_type="https://in-toto.io/Statement/v0.1"), "another type"),
    ("other-predicate", lambda d: d.update(predicateType="https://slsa.dev/provenance/v1"),
     "another type"),
    ("type-missing", lambda d: d.pop("_type"), "lacks the key _type"),
    ("no-subjects", lambda d: d.update(subject=[]), "subject is empty"),
    ("subject-nameless", lambda d: d["subject"][0].pop("name"), "subject[0]"),
    ("digest-short", lambda d: first(d, "thread.json").update(digest={"sha256": "ab"}), "sha256"),
    ("no-predicate", lambda d: d.pop("predicate"), "predicate"),
    ("result-unknown", lambda d: d["predicate"].update(result="passed"), "result"),
    ("no-configuration", lambda d: d["predicate"].update(configuration=[]), "configuration"),
    ("no-ticket", lambda d: d["predicate"]["configuration"].pop(0), "names no ticket"),
    ("envelope", lambda d: d.update(payloadType="application/vnd.in-toto+json"), "signed envelope"),
    ("tests-a-text", lambda d: d["predicate"].update(passedTests="all"), "passedTests"),
    ("annotations-a-list",
     lambda d: [one.update(annotations=[1]) for one in d["predicate"]["configuration"]],
     "annotations"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "said"), [pytest.param(e, s, id=n) for n, e, s in OTHERS])
def test_what_is_no_statement_is_refused(edit: Edit, said: str, statement: Path) -> None:
    data = json.loads(statement.read_bytes())
    edit(data)
    statement.write_text(json.dumps(data))
    with pytest.raises(ClosureError) as refusal:
        verify_statement(statement)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '{"a": 1, "a": 2}', "\x00", "[" * 5000]
)
def test_what_is_no_document_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(ClosureError):
        verify_statement(path)


@pytest.mark.parametrize(
    "name", ["run/evals/later.json", "run/telemetry.json.gz", "run/EVALS/Again.JSON"]
)
def test_what_came_to_the_run_later_is_found(name: str, statement: Path, tmp_path: Path) -> None:
    """Whatever it holds: nobody judged it."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"\0")
    recheck = verify_statement(statement)
    assert not recheck.passed
    assert rules(recheck) == {"CLO125"}
    (finding,) = recheck.findings
    assert finding.artifact == str(tmp_path / name)


def test_what_no_pattern_looks_for_may_come_later(statement: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / "notes.txt").write_text("looked at again")
    (tmp_path / "elsewhere.json").write_text("{}")
    assert verify_statement(statement).passed


@pytest.mark.parametrize("relative", ["run/evals/later.json", "run/more"])
def test_what_leads_out_of_the_run_now_cannot_be_told(
    relative: str, statement: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text("{}")
    target = "../../secret.json" if relative.endswith("json") else "/"
    (tmp_path / relative).symlink_to(target)
    recheck = verify_statement(statement)
    if relative.endswith("json"):
        assert rules(recheck) == {"CLO125"}
    else:  # a folder behind a link is not entered, at closing as well
        assert recheck.passed


def test_a_further_run_is_looked_at_as_well(tmp_path: Path) -> None:
    path = tmp_path / "ticket.statement.json"
    path.write_text(closed("passes_further_run", tmp_path).statement)
    assert verify_statement(path).passed
    (further,) = [one for one in tmp_path.glob("*run*") if one.is_dir() and one.name != "run"]
    shutil.copy(further / "telemetry.json", further / "telemetry.json.zst")
    assert rules(verify_statement(path)) == {"CLO125"}


def test_without_its_run_or_profile_it_cannot_be_told(statement: Path, tmp_path: Path) -> None:
    (tmp_path / "profile.toml").write_text("[profile]")
    assert rules(verify_statement(statement)) == {"CLO120", "CLO121"}
    shutil.rmtree(tmp_path / "run")
    found = verify_statement(statement)
    assert not found.passed
    assert {"CLO121"} <= rules(found)


@pytest.mark.parametrize("name", ["run/\0", "\0", "~", "/dev/zero", "run/../../x"])
def test_a_subject_that_is_no_path_is_found(name: str, statement: Path) -> None:
    data = json.loads(statement.read_bytes())
    data["subject"].append({"name": name, "digest": {"sha256": "0" * 64}})
    statement.write_text(json.dumps(data))
    assert rules(verify_statement(statement)) == {"CLO001"}


def test_a_pipe_that_came_to_the_run_is_seen(statement: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run" / "evals" / "later.json")
    assert rules(verify_statement(statement)) == {"CLO125"}
