"""What git is asked; a hostile repository or environment neither lies nor runs anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from trueup.gates.closure.repository import GitFailed, Repository, inner_path

QUIET = {
    "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}  # fmt: skip


def git(folder: Path, *words: str, date: str = "2026-03-02T09:00:00+01:00") -> str:
    environment = {**QUIET, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, env=environment
    )
    return done.stdout.decode().strip()


def commit(folder: Path, date: str = "2026-03-02T09:00:00+01:00", **files: str) -> str:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x", date=date)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    made.mkdir()
    git(made, "init", "-q", "--initial-branch=main", "--template=")
    return made


def opened(folder: Path) -> Repository:
    return Repository(Path(os.path.realpath(folder)), str(folder))


def test_files_and_commits_are_read_at_a_commit(folder: Path) -> None:
    first = commit(folder, a="1", sub__b="2")
    second = commit(folder, date="2026-03-03T09:00:00+01:00", a="3")
    found = opened(folder)
    assert found.has(first)
    assert not found.has("12" * 20)
    assert found.read(first, "a") == b"1"
    assert found.read(second, "./sub/../a") == b"3"
    assert found.read(second, "sub") is None
    assert found.kind_at(second, "sub") == "tree"
    assert found.kind_at(second, ".") == "tree"
    assert found.kind_at(second, "none") is None
    assert [one.id for one in found.work(first, second)] == [second]
    assert found.changed(first, second) == ["a"]
    last = found.last_change(second, "sub/b")
    assert last is not None
    assert last.id == first


def test_the_first_commit_of_all_has_its_files_too(folder: Path) -> None:
    only = commit(folder, a="1")
    found = opened(folder)
    assert [one.id for one in found.work("root", only)] == [only]
    assert found.changed("root", only) == ["a"]
    assert found.is_ancestor(only, only)


def test_a_file_that_was_changed_back_was_changed(folder: Path) -> None:
    base = commit(folder, a="1", b="1")
    commit(folder, b="2")
    last = commit(folder, b="1", c="1")
    assert opened(folder).changed(base, last) == ["b", "c"]


def test_of_a_merge_only_what_differs_from_all_its_parents(folder: Path) -> None:
    start = commit(folder, a="1")
    git(folder, "checkout", "-qb", "work")
    commit(folder, mine="1")
    git(folder, "checkout", "-q", "main")
    base = commit(folder, theirs="1")
    git(folder, "checkout", "-q", "work")
    git(folder, "merge", "-q", "--no-ff", "--no-commit", "main")
    (folder / "smuggled").write_text("1")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "merge")
    head = git(folder, "rev-parse", "HEAD")
    assert opened(folder).changed(base, head) == ["mine", "smuggled"]
    assert not opened(folder).is_ancestor(head, start)


def test_odd_names_are_names(folder: Path) -> None:
    base = commit(folder, a="1")
    (folder / "--output=x").write_text("1")
    (folder / 'q"\n\t').write_text("1")
    os.mkdir(folder / ":(top)")
    (folder / ":(top)" / "é").write_text("1")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    head = git(folder, "rev-parse", "HEAD")
    found = opened(folder)
    assert found.changed(base, head) == ["--output=x", ":(top)/é", 'q"\n\t']
    assert found.read(head, "--output=x") == b"1"
    assert found.read(head, ":(top)/é") == b"1"
    assert found.read(head, 'q"\n\t') is None  # a line break is no part of a path in a ticket


@pytest.mark.parametrize(
    "path", ["", "/a", "../a", "a/../../b", "~/a", "a\0b", "a\nb", "a\\b", ".."]
)
def test_a_path_that_leaves_the_repository_is_none(path: str, folder: Path) -> None:
    head = commit(folder, a="1")
    assert inner_path(path) is None
    assert opened(folder).read(head, path) is None
    assert opened(folder).kind_at(head, path) is None


def test_a_replaced_commit_is_not_believed(folder: Path) -> None:
    base = commit(folder, a="1")
    late = commit(folder, date="2026-03-05T09:00:00+01:00", a="2")
    git(folder, "checkout", "-q", base)
    forged = commit(folder, date="2026-01-01T09:00:00+01:00", a="9")
    git(folder, "replace", late, forged)
    found = opened(folder)
    assert found.read(late, "a") == b"2"
    assert found.commit(late).earliest.isoformat() == "2026-03-05T08:00:00+00:00"


def test_a_grafted_history_is_not_believed(folder: Path) -> None:
    base = commit(folder, a="1")
    middle = commit(folder, a="2")
    last = commit(folder, a="3")
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "grafts").write_text(f"{last} {base}\n")
    assert [one.id for one in opened(folder).work(base, last)] == [last, middle]


def test_the_environment_sends_git_nowhere_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = commit(folder, a="1")
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "--template=")
    commit(other, a="forged")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.cat-file")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "!false")
    assert opened(folder).read(head, "a") == b"1"


def test_nothing_that_the_repository_configures_is_run(folder: Path, tmp_path: Path) -> None:
    head = commit(folder, a="1", **{"_dot_gitattributes": "* diff=evil filter=evil\n"})
    base = commit(folder, b="1")
    last = commit(folder, b="2")
    mark = tmp_path / "ran"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    for key, value in {
        "core.fsmonitor": str(script), "core.pager": str(script), "core.sshCommand": str(script),
        "diff.external": str(script), "diff.evil.textconv": str(script),
        "diff.evil.command": str(script), "filter.evil.smudge": str(script),
        "filter.evil.clean": str(script), "gpg.program": str(script), "log.showSignature": "true",
        "core.hooksPath": str(tmp_path), "core.alternateRefsCommand": str(script),
        "remote.origin.url": f"ext::{script}", "protocol.ext.allow": "always",
        "remote.origin.promisor": "true", "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1", "uploadpack.packObjectsHook": str(script),
    }.items():  # fmt: skip
        git(folder, "config", key, value)
    (tmp_path / "post-checkout").symlink_to(script)
    found = opened(folder)
    assert not found.has("12" * 20)  # a promised object that is missing stays missing
    assert found.read(head, "a") == b"1"
    assert found.work(base, last)
    assert found.changed(base, last) == ["b"]
    assert found.last_change(last, "a") is not None
    with pytest.raises(GitFailed):
        found.work("12" * 20, last)
    assert not mark.exists()


def test_a_shallow_clone_lacks_the_base(folder: Path, tmp_path: Path) -> None:
    base = commit(folder, a="1")
    head = commit(folder, a="2")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{folder}", "shallow")
    found = opened(tmp_path / "shallow")
    assert found.has(head)
    assert not found.has(base)


def test_a_folder_inside_a_repository_is_none_itself(folder: Path) -> None:
    commit(folder, sub__a="1")
    with pytest.raises(GitFailed):
        opened(folder / "sub").has("12" * 20)


def test_without_git_it_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = commit(folder, a="1")
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(GitFailed, match="not installed"):
        opened(folder).has(head)


def test_dates_beyond_reckoning_are_the_beginning_of_time(folder: Path) -> None:
    raw = commit(folder, a="1")
    text = git(folder, "cat-file", "commit", raw).replace("1772438400", "99999999999999")
    done = subprocess.run(
        ["git", "-C", str(folder), "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        input=text.encode() + b"\n", capture_output=True, check=True, env=QUIET,
    )  # fmt: skip
    odd = done.stdout.decode().strip()
    assert opened(folder).commit(odd).earliest.year == 1970
