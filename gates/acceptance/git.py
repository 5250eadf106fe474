"""Asks git when a file was first committed as it is now. Reads objects, runs nothing else."""

from __future__ import annotations

import datetime
import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trueup.gates.acceptance.errors import AcceptanceError

_SECONDS = 30
_COMMITS = 1000
# A repository may be a stranger's: no prompt, no fetch of missing objects (which would run the
# command of its remote), no hook, no monitor, no signature program.
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C",
}  # fmt: skip
_OPTIONS = ("--no-replace-objects", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
            "-c", "log.showSignature=false")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Committed:
    """The first commit that holds a file as it is now."""

    commit: str
    at: datetime.datetime


def first_commit_of(file: Path, sha256: str) -> Committed | None:
    """When the file's present bytes were first committed; None if they never were.

    Raises `AcceptanceError` if git, or a repository, is not there.
    """
    if shutil.which("git") is None:
        raise AcceptanceError("git is not installed", where=str(file), fix="leave out `in_git`")
    name = f"./{file.name}"
    listed = _git(file, "log", f"-n{_COMMITS}", "--reverse", "--format=%H %cI", "--", name)
    for line in listed.decode("ascii", "replace").splitlines():
        commit, _, time = line.partition(" ")
        blob = _git(file, "cat-file", "blob", f"{commit}:{name}", missing=True)
        if hashlib.sha256(blob).hexdigest() == sha256:
            return Committed(commit, datetime.datetime.fromisoformat(time))
    return None


def _git(file: Path, *words: str, missing: bool = False) -> bytes:
    """The output of a git command beside a file; empty where an object may be missing."""
    try:
        done = subprocess.run(
            ["git", *_OPTIONS, *words], cwd=file.parent, env={**os.environ, **_QUIET},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AcceptanceError("git gives no answer", where=str(file), got=str(error)) from None
    if done.returncode and not missing:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise AcceptanceError(
            "is in no git repository that can be read", where=str(file),
            got=said[-1] if said else f"exit code {done.returncode}",
            fix="leave out `in_git`, or run where the repository is",
        )  # fmt: skip
    return done.stdout
