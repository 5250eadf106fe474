"""Decides what a bundle is made of: the artifacts of run directories, by a profile's patterns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from trueup.gates.artifacts import MAX_DEPTH, MAX_FILES, find_artifacts
from trueup.gates.bundle.errors import BundleError
from trueup.gates.bundle.manifest import NAME
from trueup.gates.bundle.paths import clashes, flaw_of_path
from trueup.gates.collector import Collector
from trueup.gates.findings import show
from trueup.gates.profile.load import load_profile
from trueup.gates.profile.rules import Profile


@dataclass(frozen=True, slots=True)
class Item:
    """One file to be bundled: where it is, how it is called in the bundle, what it is."""

    source: Path
    path: str
    kind: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes into a bundle, in the order of its paths."""

    items: tuple[Item, ...]
    profile: Profile
    variants: tuple[str, ...]  # the names that the profile asks for
    left_out: int  # files of the run directories that are not taken


def plan_bundle(sources: Sequence[Path], profile: str, also: Sequence[str] = ()) -> Plan:
    """The plan for one or more run directories; raises `BundleError` or what the gates raise.

    Of several directories, each becomes a folder of the bundle under its own name.
    """
    loaded = load_profile(profile)
    items: list[Item] = []
    left_out = 0
    for source, lead in zip(sources, _leads(sources), strict=True):
        kinds = _artifacts(source, loaded)
        for path, target in _files(Path(os.path.realpath(source))):
            kind = kinds.get(target)
            if kind is None and any(_fits(path, pattern) for pattern in also):
                kind = "other"
            if path == NAME:  # of a bundle that this directory was; this one gets its own
                continue
            if kind is None:
                left_out += 1
            else:
                items.append(Item(target, lead + path, kind))
    _fit(items)
    return Plan(tuple(sorted(items, key=lambda i: i.path)), loaded, _wanted(loaded), left_out)


def _leads(sources: Sequence[Path]) -> list[str]:
    """What stands before the paths of each directory."""
    for source in sources:
        if not source.is_dir():
            what = "is no directory" if source.exists() else "does not exist"
            raise BundleError(what, where=str(source), expected="a run directory")
    if len(sources) == 1:
        return [""]
    names = [source.resolve().name for source in sources]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise BundleError(
                "two run directories have one name", where=str(sources[index]), got=show(name),
                fix="rename one of them, or bundle the directory that holds both",
            )  # fmt: skip
    return [f"{name}/" for name in names]


def _artifacts(source: Path, profile: Profile) -> dict[Path, str]:
    """The kind of each artifact's file; refuses links out and folders that were not searched."""
    collector = Collector()
    found = find_artifacts(source, str(source), profile, collector)
    for finding in collector.findings():
        raise BundleError(
            finding.summary, where=finding.artifact, got=finding.got,
            expected=finding.expected, fix=finding.fix,
        )  # fmt: skip
    return {one.path: one.kind for one in found}


def _files(root: Path) -> list[tuple[str, Path]]:
    """Every file that is not hidden, with what it is: a link stands for the file it leads to."""
    found: list[tuple[str, Path]] = []
    for folder, folders, names in os.walk(root, followlinks=False, onerror=_closed):
        relative = os.path.relpath(folder, root)
        lead = "" if relative == "." else f"{relative}/"
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        if lead.count("/") >= MAX_DEPTH:
            folders.clear()
        for name in sorted(names):
            target = Path(os.path.realpath(os.path.join(folder, name)))
            is_inside = target.is_relative_to(root)
            if not name.startswith(".") and is_inside and target.is_file():
                found.append((f"{lead}{name}", target))
        if len(found) > MAX_FILES:
            raise BundleError(
                "holds too many files", where=str(root), got=f"more than {MAX_FILES}",
                fix="bundle a directory that holds one run",
            )  # fmt: skip
    return found


def _closed(error: OSError) -> None:
    raise BundleError(
        "cannot be looked into", where=str(error.filename), got=error.strerror or str(error),
        fix="give leave to read it, or move it out of the run",
    )  # fmt: skip


def _fits(path: str, pattern: str) -> bool:
    """As in a profile: a pattern with a slash is held against the whole path."""
    return fnmatchcase(path if "/" in pattern else path.rsplit("/", 1)[-1], pattern)


def _fit(items: Iterable[Item]) -> None:
    """Refuse names that could not be unpacked elsewhere."""
    paths = [item.path for item in items]
    for path in paths:
        wrong = flaw_of_path(path)
        if wrong:
            raise BundleError(
                f"a path {wrong}", where=show(path), expected="a plain name", fix="rename the file"
            )
    for path, other in clashes(sorted(paths)):
        raise BundleError(
            "two paths are one where case or accents are not told apart", where=show(path),
            got=f"also {show(other)}", fix="rename one of them",
        )  # fmt: skip


def _wanted(profile: Profile) -> tuple[str, ...]:
    """The variants that the profile's own rule asks for."""
    rules = (rule for rule in profile.rules if rule.check == "bundle_variants")
    names: list[Any] = [name for rule in rules for name in rule.params["variants"]]
    return tuple(dict.fromkeys(names))


def variant_of(path: str, stated: str | None, names: Sequence[str]) -> str | None:
    """Whose a file is: by what it states, by a folder of that name, by the end of its own name."""
    if stated is not None:
        return stated
    *folders, last = path.split("/")
    stem = last.split(".", 1)[0]
    fitting = [name for name in names if name in folders or stem == name]
    fitting += [name for name in names if stem.endswith((f"_{name}", f"-{name}"))]
    return max(fitting, key=len, default=None)
