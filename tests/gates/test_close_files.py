"""Files of a closing: nothing leaves the root, nothing changes unseen, nothing is too much."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.closure.close import close
from trueup.gates.closure.docket import Docket
from trueup.gates.closure.errors import ClosureError
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.outcome import Closure
from trueup.gates.closure.runs import Judging

CLOSURES = Path(__file__).parents[2] / "fixtures" / "closures"
sys.path.insert(0, str(CLOSURES))
import laid  # noqa: E402

NOW = datetime(2026, 3, 10, tzinfo=UTC)


@pytest.fixture(scope="module", autouse=True)
def _repositories() -> Iterator[None]:
    yield
    laid.forget()


@pytest.fixture
def ticket(tmp_path: Path) -> Path:
    return laid.lay_out("passes", tmp_path)


def closed(ticket: Path, **options: Any) -> Closure:
    return close(ticket, equations=["nl.delta_momentum"], now=NOW, **options)


def rules(closure: Closure) -> set[str]:
    return {finding.rule for finding in closure.all_findings}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    root = Path(os.path.realpath(tmp_path)) / "root"
    (root / "run" / "sub").mkdir(parents=True)
    (root / "a").write_text("a")
    (root / "run" / "b").write_text("b")
    (root.parent / "secret").write_text("s")
    (root / "run" / "out").symlink_to(root.parent / "secret")
    (root / "run" / "up").symlink_to("../a")
    (root / "run" / "in").symlink_to("b")
    (root / "run" / "loop").symlink_to("loop")
    (root / "run" / "away").symlink_to(root.parent)
    os.mkfifo(root / "run" / "pipe")
    found = Files(root, root, str(root), Docket("ticket"))
    place = found.find("ticket", "run", folder=True)
    assert isinstance(place, Place)
    found.run = place
    return found


@pytest.mark.parametrize("path", ["b", "./b", "sub/../b", "in"])
def test_a_file_of_the_run_is_found(path: str, files: Files) -> None:
    found = files.find("run", path)
    assert isinstance(found, Place)
    assert found.name == "run/b"


@pytest.mark.parametrize(
    "path",
    ["/etc/hostname", "../a", "sub/../../a", "out", "up", "away/secret", "~/x", "b\0", "a\\b", "..",
     "sub/../../../secret"],
)  # fmt: skip
def test_what_leads_out_of_the_run_is_named_so(path: str, files: Files) -> None:
    found = files.find("run", path)
    assert isinstance(found, tuple)
    assert found[0] == "path_leads_out"


@pytest.mark.parametrize("path", ["none", "sub", "pipe", "loop", "b/c", "x" * 300, "."])
def test_what_is_no_file_is_missing(path: str, files: Files) -> None:
    found = files.find("run", path)
    assert isinstance(found, tuple)
    assert found[0] == "file_missing"


def test_a_path_of_the_ticket_may_reach_the_run_but_not_beyond_the_root(files: Files) -> None:
    assert isinstance(files.find("ticket", "run/up"), Place)
    assert isinstance(files.find("ticket", "run/out"), tuple)


def test_a_log_that_grows_while_it_is_judged_is_found(
    ticket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate reads it, then another process appends, then it is digested."""
    gate = Judging.of_the_run

    def growing(self: Judging) -> Any:
        judged = gate(self)
        with (ticket.parent / "run" / "telemetry.json").open("a") as log:
            log.write(" ")
        return judged

    monkeypatch.setattr(Judging, "of_the_run", growing)
    assert "CLO005" in rules(closed(ticket))


def test_a_log_that_is_replaced_before_it_is_digested_is_found(
    ticket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same bytes and same size, another file: it is not the one that was judged."""
    from trueup.gates.closure import runs

    gate = runs.judge_under
    log = ticket.parent / "run" / "telemetry.json"

    def replacing(*words: Any, **options: Any) -> Any:
        verdict = gate(*words, **options)
        other = log.with_suffix(".new")
        other.write_bytes(log.read_bytes())
        os.replace(other, log)
        return verdict

    monkeypatch.setattr(runs, "judge_under", replacing)
    assert "CLO005" in rules(closed(ticket))


def test_the_root_is_the_repository_around_the_ticket(tmp_path: Path) -> None:
    laid.lay_out("passes", tmp_path)
    inner = tmp_path / "tickets"
    inner.mkdir()
    text = (tmp_path / "ticket.toml").read_text()
    for old, new in {
        'run = "run"': 'run = "../run"',
        'profile = "': 'profile = "../',
        'repository = "."': 'repository = ".."',
        'export = "': 'export = "../',
        'kernels = "evidence': 'kernels = "../evidence',
    }.items():
        text = text.replace(old, new)
    (inner / "one.toml").write_text(text)
    closure = closed(inner / "one.toml")
    assert rules(closure) == set()
    assert "tickets/one.toml" in closure.subjects
    assert "run/telemetry.json" in closure.subjects


def test_without_a_repository_the_root_is_the_tickets_folder(ticket: Path, tmp_path: Path) -> None:
    os.rename(tmp_path / ".git", tmp_path / "clone.git")
    closure = closed(ticket, repository=tmp_path / "clone.git")
    assert rules(closure) == set()


def test_another_root_must_hold_the_ticket(ticket: Path, tmp_path: Path) -> None:
    with pytest.raises(ClosureError, match="does not hold the ticket"):
        closed(ticket, root=tmp_path / "run")
    with pytest.raises(ClosureError, match="is no folder"):
        closed(ticket, root=tmp_path / "none")


def test_names_in_the_statement_are_relative_to_the_root_given(
    ticket: Path, tmp_path: Path
) -> None:
    closure = closed(ticket, root=tmp_path.parent)
    assert f"{tmp_path.name}/run/telemetry.json" in closure.subjects


def test_a_name_longer_than_the_system_allows_is_no_file_of_a_run(tmp_path: Path) -> None:
    from trueup.gates.documents.run import Run
    from trueup.gates.profile.load import load_profile

    assert Run(tmp_path, "run", load_profile("nl")).inside("x" * 300) is None


@pytest.mark.parametrize("name", ["thread.json", "board.json", "evidence.json"])
def test_a_document_that_is_too_large_is_not_read(name: str, ticket: Path) -> None:
    with (ticket.parent / name).open("r+b") as file:
        file.truncate(20 << 20)
    closure = closed(ticket)
    assert rules(closure) & {"CLO070", "CLO085", "CLO050"}
    assert not closure.passed


def test_a_ticket_that_is_too_large_is_refused(ticket: Path) -> None:
    ticket.write_bytes(ticket.read_bytes() + b"# " + b"x" * (1 << 20))
    with pytest.raises(ClosureError, match="too large"):
        closed(ticket)


@pytest.mark.parametrize("name", ["thread.json", "board.json", "evidence.json"])
def test_a_document_nested_too_deeply_is_not_read(name: str, ticket: Path) -> None:
    (ticket.parent / name).write_text("[" * 50_000)
    assert not closed(ticket).passed


@pytest.mark.parametrize("there", [None, "folder", "fifo", "loop"])
def test_a_ticket_that_is_no_file_is_refused(there: str | None, tmp_path: Path) -> None:
    path = tmp_path / "ticket.toml"
    if there == "folder":
        path.mkdir()
    elif there == "fifo":
        os.mkfifo(path)
    elif there == "loop":
        path.symlink_to(path)
    with pytest.raises(ClosureError) as refusal:
        closed(path)
    assert "ticket.toml" in str(refusal.value)


def test_a_checkpoint_that_cannot_be_read_is_undetermined(
    ticket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trueup.gates.closure import files as module

    real = module.digest

    def refusing(path: Path) -> Any:
        if path.name == "step_5.bin":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(module, "digest", refusing)
    assert rules(closed(ticket)) == {"CLO002"}


def test_what_was_judged_does_not_depend_on_where_one_stands(
    ticket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = closed(ticket).statement
    monkeypatch.chdir(tmp_path)
    assert closed(Path("ticket.toml")).statement == here
    monkeypatch.chdir(tmp_path / "run")
    assert closed(Path("../ticket.toml")).statement == here
