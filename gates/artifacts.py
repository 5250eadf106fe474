"""Finds the artifacts of a run directory by the profile's patterns, and never leaves it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where
from trueup.gates.neighbours import almost
from trueup.gates.profile.rules import Profile
from trueup.gates.read.sources.forms import without_codec

if TYPE_CHECKING:
    from trueup.gates.collector import Collector

MAX_DEPTH = 16
MAX_FILES = 100_000


@dataclass(frozen=True, slots=True)
class Found:
    """One artifact: where it is, how it is called in reports, what it is."""

    path: Path
    name: str
    kind: str
    size: int


def find_artifacts(path: Path, name: str, profile: Profile, collector: Collector) -> list[Found]:
    """All artifacts under a directory, or the one file. Raises `Unreadable` if there is none.

    A file that is named itself has the kind of the first pattern that fits its name, and is
    telemetry if none does.
    """
    if not os.path.lexists(path):
        raise Unreadable(
            "does not exist", where=name, expected="a run directory or a telemetry file",
            fix="check the path, and that its folder may be searched",
        )  # fmt: skip
    if not os.path.isdir(path):  # unlike those of pathlib, it takes what cannot be looked at
        size = path.stat().st_size if os.path.exists(path) else 0
        return [Found(path, name, kind_of(path.name, profile) or "telemetry", size)]
    root = Path(os.path.realpath(path))
    found: list[Found] = []
    for relative in _files(root, name, collector):
        kind = wanted(relative, name, profile, collector)
        if kind is None:
            continue
        target = Path(os.path.realpath(root / relative))
        if not target.is_relative_to(root):
            collector.of_kind("link_out", _join(name, relative), Where(), f"a link to {target}")
        elif os.path.isfile(target):
            if all(target != other.path for other in found):
                found.append(Found(target, _join(name, relative), kind, target.stat().st_size))
        elif os.path.lexists(root / relative) and not os.path.isdir(target):
            # What vanished meanwhile is nothing; a folder behind a link is not entered.
            got = "not a regular file" if os.path.exists(target) else "a link to nothing"
            collector.of_kind("unreadable_artifact", _join(name, relative), Where(), got)
    if not found:
        patterns = [p for artifact in profile.artifacts for p in artifact.patterns]
        others = [f"{one.got} ({one.summary})" for one in collector.findings()]
        raise Unreadable(
            "holds no artifact of this profile", where=name,
            got=others[0] if others else "no matching file",
            expected=f"a file that matches one of {', '.join(patterns)}",
            fix="name the file itself, or add its pattern to the profile",
        )  # fmt: skip
    return found


def wanted(relative: str, name: str, profile: Profile, collector: Collector) -> str | None:
    """The kind of artifact that a file in a run directory is; what only comes close is told."""
    kind = kind_of(relative, profile)
    if kind is None:
        close = almost(relative, lambda plain: kind_of(plain, profile) is not None)
        if close is not None:
            got = f"a name close to {close}"
            collector.of_kind("artifact_unread", _join(name, relative), Where(), got)
    return kind


def _join(name: str, relative: str) -> str:
    return os.path.join(name, relative)


def kind_of(relative: str, profile: Profile) -> str | None:
    """The kind of artifact that a file of this name is, if any.

    A pattern with a slash is held against the whole path, one without against the file
    name; neither tells capitals from small letters, lest `Eval/NIAH.JSON` go unjudged. Telemetry
    that is compressed is found by the pattern of the plain file.
    """
    plain = without_codec(relative)
    for artifact in profile.artifacts:
        for pattern in artifact.patterns:
            if _fits(relative, pattern):
                return artifact.kind
            if artifact.kind == "telemetry" and plain is not None and _fits(plain, pattern):
                return artifact.kind
    return None


def _fits(relative: str, pattern: str) -> bool:
    name = relative.rsplit("/", 1)[-1]
    return fnmatchcase((relative if "/" in pattern else name).lower(), pattern.lower())


def _files(root: Path, name: str, collector: Collector) -> Iterator[str]:
    """Relative paths in sorted order; directories behind a link are not entered."""
    count = 0

    def closed(error: OSError) -> None:
        inner = os.path.relpath(error.filename, root)
        got = error.strerror or str(error)
        collector.of_kind("not_searched", _join(name, inner), Where(), got)

    for folder, folders, names in os.walk(root, followlinks=False, onerror=closed):
        relative = os.path.relpath(folder, root)
        depth = 0 if relative == "." else relative.count(os.sep) + 1
        linked = [one for one in folders if os.path.islink(os.path.join(folder, one))]
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in linked)
        if depth >= MAX_DEPTH and folders:
            got = f"{len(folders)} folders below"
            collector.of_kind("not_searched", _join(name, relative), Where(), got)
            folders.clear()
        for one in sorted([*names, *linked]):
            count += 1
            if count > MAX_FILES:
                raise Unreadable(
                    "holds too many files", where=str(root), got=f"more than {MAX_FILES}",
                    fix="name the telemetry file itself",
                )  # fmt: skip
            yield one if relative == "." else f"{relative}/{one}".replace(os.sep, "/")
