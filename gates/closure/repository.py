"""What a git repository says about commits and the files in them.

git runs as a subprocess with plumbing commands only, no shell, no pager, and none of the user's or
the machine's configuration; names come from the repository, so nothing is passed as an option.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

_TIMEOUT = 120  # seconds
_MAX_OUTPUT = 64 << 20
_MAX_COMMITS = 20_000
_PERSON = re.compile(rb"^(author|committer) .*> (-?\d{1,12}) [+-]\d{4}$", re.MULTILINE)
# What a repository's own configuration could make git run. Then it may belong to another user, as
# checkouts in a CI container do.
_SAFE = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false",
         "safe.directory=*")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the work. Git stores two dates; either can be set by whoever commits."""

    id: str
    authored: datetime
    committed: datetime

    @property
    def earliest(self) -> datetime:
        """The earlier of its two dates: work cannot have begun after it."""
        return min(self.authored, self.committed)


class GitFailed(Exception):
    """Git could not answer; the message is for people."""


@dataclass(slots=True)
class Repository:
    """One repository on disk. Every answer may raise `GitFailed`."""

    folder: Path
    shown: str
    _kinds: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _silent: bool = False  # it did not answer once: nothing is asked again

    def has(self, commit: str) -> bool:
        """Whether the commit is there."""
        return self._kind(commit, commit) == "commit"

    def kind_at(self, commit: str, path: str) -> str | None:
        """`blob`, `tree` or None for a path at a commit; the root is the path `.`."""
        clean = inner_path(path)
        if clean is None:
            return None
        return self._kind(f"{commit}:{clean}", f"{commit}^{{tree}}" if clean == "." else None)

    def _kind(self, name: str, instead: str | None) -> str | None:
        key = (name, instead or "")
        if key not in self._kinds:
            out = self._ask(["cat-file", "--batch-check"], (instead or name).encode() + b"\n")
            words = out.split()
            known = len(words) == 3 and words[1] in (b"blob", b"tree", b"commit")
            self._kinds[key] = words[1].decode() if known else None
        return self._kinds[key]

    def read(self, commit: str, path: str) -> bytes | None:
        """A file's bytes at a commit; None if there is no such file."""
        clean = inner_path(path)
        if clean is None or "\n" in clean or self.kind_at(commit, clean) != "blob":
            return None
        return self._ask(["cat-file", "blob", f"{commit}:{clean}"])

    def is_ancestor(self, base: str, commit: str) -> bool:
        """Whether `base` is among the ancestors of `commit`, or the commit itself."""
        return self._run(["merge-base", "--is-ancestor", base, commit]).returncode == 0

    def work(self, base: str, commit: str) -> list[Commit]:
        """The commits of the work, newest first."""
        most = f"--max-count={_MAX_COMMITS + 1}"
        out = self._ask(["rev-list", "--header", most, *_of(base, commit)])
        commits = [_commit(entry) for entry in out.split(b"\0") if entry.strip()]
        if len(commits) > _MAX_COMMITS:
            raise GitFailed(f"more than {_MAX_COMMITS} commits between base and commit")
        return commits

    def changed(self, base: str, commit: str) -> list[str]:
        """Every file that a commit of the work changed, also one that was changed back.

        Of a merge, only what differs from all its parents.
        """
        ids = self._ask(["rev-list", f"--max-count={_MAX_COMMITS}", *_of(base, commit)])
        out = self._ask(
            ["diff-tree", "--stdin", "-r", "-c", "--root", "--no-commit-id", "--name-only", "-z",
             "--no-renames", "--no-ext-diff", "--no-textconv"], ids,
        )  # fmt: skip
        names = {name.decode("utf-8", "backslashreplace") for name in out.split(b"\0") if name}
        return sorted(names)

    def last_change(self, commit: str, path: str) -> Commit | None:
        """The last commit, up to `commit`, that changed a file."""
        out = self._ask(["rev-list", "--header", "--max-count=1", commit, "--", path])
        return _commit(out.rstrip(b"\0")) if out.strip() else None

    def commit(self, commit: str) -> Commit:
        """One commit."""
        return _commit(self._ask(["rev-list", "--header", "--max-count=1", commit]).rstrip(b"\0"))

    def _ask(self, arguments: list[str], given: bytes = b"") -> bytes:
        done = self._run(arguments, given)
        if done.returncode:
            said = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
            raise GitFailed(said[0] if said else f"git exited with {done.returncode}")
        if len(done.stdout) > _MAX_OUTPUT:
            raise GitFailed(f"git answered more than {_MAX_OUTPUT} bytes")
        return done.stdout

    def _run(self, arguments: list[str], given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        if self._silent:
            raise GitFailed(f"git did not answer within {_TIMEOUT} seconds")
        settings = [part for one in _SAFE for part in ("-c", one)]
        try:
            return subprocess.run(
                ["git", "--no-pager", "--no-optional-locks", "--literal-pathspecs", *settings,
                 "-C", str(self.folder), *arguments],
                input=given, capture_output=True, env=_environment(self.folder),
                timeout=_TIMEOUT, check=False,
            )  # fmt: skip
        except FileNotFoundError:
            raise GitFailed("git is not installed") from None
        except subprocess.TimeoutExpired:
            self._silent = True
            raise GitFailed(f"git did not answer within {_TIMEOUT} seconds") from None
        except (OSError, ValueError) as error:
            raise GitFailed(str(error)) from None


def _of(base: str, commit: str) -> list[str]:
    return [commit] if base == "root" else [commit, f"^{base}"]


def _commit(entry: bytes) -> Commit:
    """One commit from its raw text; a date that says nothing is the beginning of time."""
    name = entry.lstrip(b"\n").split(b"\n", 1)[0].decode("ascii", "replace")
    head = entry.split(b"\n\n", 1)[0]
    dates = {who.decode(): int(when) for who, when in _PERSON.findall(head)}
    return Commit(name, _moment(dates.get("author", 0)), _moment(dates.get("committer", 0)))


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def inner_path(path: str) -> str | None:
    """A path inside a repository in its plain form; None if it would leave it."""
    if not path or "\0" in path or "\n" in path or path.startswith(("/", "~")) or "\\" in path:
        return None
    clean = os.path.normpath(path)
    return None if clean == ".." or clean.startswith("../") else clean


def _environment(folder: Path) -> dict[str, str]:
    """The caller's environment without anything that would send git elsewhere."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # a missing object is missing: a fetch could run anything
        "GIT_NO_REPLACE_OBJECTS": "1",  # a replaced commit would show another history
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_CEILING_DIRECTORIES": str(folder.parent),  # this folder, not one above it
    }
