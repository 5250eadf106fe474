"""Rules on the files of a bundle: what the manifest lists is there, is that, and is all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from trueup.gates.bundle.manifest import NAME, Manifest, read_manifest
from trueup.gates.bundle.paths import clashes, flaw_of_path
from trueup.gates.documents.model import Answer, Flaw, Pointer, Subject
from trueup.gates.documents.schema import breaks
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

MAX_FILES, MAX_DEPTH = 100_000, 64
_MOST = 200  # flaws of one kind that are told; the rest would say nothing new
Judge = Callable[[Subject, Manifest, Rule], Answer]


def is_at_root(subject: Subject) -> bool:
    """Whether a manifest stands at the top of what is judged."""
    return subject.path.resolve().parent == Path(subject.run.root).resolve()


def of_manifest(judge: Judge) -> Callable[[Subject, Rule], Answer]:
    """A check that answers for manifests of bundles, and passes over other files of that name."""

    def check(subject: Subject, rule: Rule) -> Answer:
        manifest = read_manifest(subject.document.data)
        if manifest is None:
            return Answer(0, (), "is no manifest of a bundle")
        return judge(subject, manifest, rule)

    check.__name__ = judge.__name__
    check.__doc__ = judge.__doc__
    return check


def flaw(subject: Subject, pointer: Pointer, got: str) -> Flaw:
    """A flaw at a place of the manifest."""
    return Flaw(subject.document.where(*pointer), got)


def bundle_form(subject: Subject, rule: Rule) -> Answer:
    """The manifest fits its schema; below the top, other files may be called manifest.json."""
    document = subject.document
    manifest = read_manifest(document.data)
    if manifest is None and not is_at_root(subject):
        return Answer(0, (), "is no manifest of a bundle, and does not stand at its top")
    if manifest is None:
        return Answer(1, (Flaw(document.where(), "is no manifest of a bundle"),))
    name = "bundle/manifest" + ("_script" if manifest.form == "script" else "")
    return Answer(
        1,
        tuple(Flaw(document.where(*one.pointer), str(one)) for one in breaks(document.data, name)),
    )


@of_manifest
def bundle_paths(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """Every path is relative, plain, and leads nowhere but into the bundle."""
    flaws = []
    for entry in manifest.entries:
        wrong = flaw_of_path(entry.path)
        if not wrong and entry.path == NAME:
            wrong = "is the manifest itself"
        if wrong:
            flaws.append(flaw(subject, entry.pointer, f"{show(entry.path)} {wrong}"))
    return Answer(len(manifest.entries), tuple(flaws[:_MOST]))


@of_manifest
def bundle_clashes(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """No file is listed twice, also not where case or the typing of accents is not told apart."""
    places = {entry.path: entry.pointer for entry in manifest.entries}
    flaws = [
        flaw(subject, places[path], f"{show(path)}, after {show(other)}")
        for path, other in clashes(entry.path for entry in manifest.entries)
    ]
    return Answer(len(manifest.entries), tuple(flaws[:_MOST]))


def plain_file(subject: Subject, path: str) -> Path | None:
    """The regular file of a path in the bundle, reached without any link."""
    if flaw_of_path(path):
        return None
    base = subject.path.resolve().parent
    at = base
    for part in path.split("/"):
        at = at / part
        if at.is_symlink():
            return None
    return at if at.is_file() else None


@of_manifest
def bundle_present(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """Every listed file is there, as a regular file."""
    flaws = []
    for entry in manifest.entries:
        if not flaw_of_path(entry.path) and plain_file(subject, entry.path) is None:
            at = subject.path.resolve().parent / entry.path
            what = "is a link or no file" if os.path.lexists(at) else "is not there"
            flaws.append(flaw(subject, entry.pointer, f"{show(entry.path)} {what}"))
    return Answer(len(manifest.entries), tuple(flaws[:_MOST]))


@of_manifest
def bundle_digests(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """Every file has the SHA-256 that is listed, computed anew."""
    read, flaws = 0, []
    for entry in manifest.entries:
        file = plain_file(subject, entry.path)
        if file is None or entry.sha256 is None:
            continue
        read += 1
        where = subject.document.where(*entry.pointer)
        try:
            digest = subject.run.digest(file)
        except OSError as error:
            got = f"{show(entry.path)} cannot be read: {error.strerror}"
            flaws.append(Flaw(where, got, "undetermined"))
            continue
        if not digest.steady:
            flaws.append(Flaw(where, f"{show(entry.path)} changed while read", "undetermined"))
        elif digest.sha256 != entry.sha256:
            flaws.append(Flaw(where, f"{show(entry.path)} has {digest.sha256}"))
    return Answer(read, tuple(flaws[:_MOST]), "" if read else "no listed file could be read")


@of_manifest
def bundle_sizes(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """Every file has the size that is listed."""
    read, flaws = 0, []
    for entry in manifest.entries:
        file = plain_file(subject, entry.path)
        if file is None or entry.size is None:
            continue
        read += 1
        size = file.stat().st_size
        if size != entry.size:
            got = f"{show(entry.path)} has {size} bytes, not {entry.size}"
            flaws.append(flaw(subject, entry.pointer, got))
    return Answer(read, tuple(flaws[:_MOST]), "" if read else "the manifest states no size")


@of_manifest
def bundle_unlisted(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """No other file lies in the bundle, hidden ones included."""
    listed = {entry.path for entry in manifest.entries} | {subject.path.name}
    seen = 0
    flaws: list[Flaw] = []
    for path, entry in _walk(subject.path.resolve().parent):
        seen += 1
        if seen > MAX_FILES:
            got = f"more than {MAX_FILES} files; the rest was not looked at"
            return Answer(seen, (*flaws, Flaw(subject.document.where(), got, "undetermined")))
        is_link = entry.is_symlink()
        if (path not in listed or is_link) and len(flaws) < _MOST:
            got = f"{show(path)}, a link" if is_link else show(path)
            flaws.append(flaw(subject, (), got))
    return Answer(seen, tuple(flaws))


def _walk(base: Path) -> list[tuple[str, os.DirEntry[str]]]:
    """Everything below a folder that is no folder itself, in order; links are not followed.

    A folder that is too deep, or may not be read, stands for whatever is in it.
    """
    found: list[tuple[str, os.DirEntry[str]]] = []
    waiting: list[tuple[str, int, os.DirEntry[str] | None]] = [("", 0, None)]
    while waiting and len(found) <= MAX_FILES:
        folder, depth, itself = waiting.pop()
        try:
            with os.scandir(base / folder) as scanned:
                entries = sorted(scanned, key=lambda one: one.name, reverse=True)
        except OSError:
            if itself is None:
                raise
            found.append((folder, itself))
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode) and depth < MAX_DEPTH:
                waiting.append((path, depth + 1, entry))
            else:
                found.append((path, entry))
    return sorted(found, key=lambda pair: pair[0])


@of_manifest
def bundle_order(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """Files and variants stand in the order of their names, so that one input gives one text."""
    if manifest.form == "script":
        return Answer(0, (), "a script's manifest has no order")
    flaws: list[Flaw] = []
    files = [(entry.path, entry.pointer) for entry in manifest.entries]
    variants = [(variant.name, variant.pointer) for variant in manifest.variants]
    for names in (files, variants):
        for (before, _), (name, pointer) in pairwise(names):
            if name < before and len(flaws) < _MOST:
                flaws.append(flaw(subject, pointer, f"{show(name)} stands after {show(before)}"))
    return Answer(len(files) + len(variants), tuple(flaws))


@of_manifest
def bundle_totals(subject: Subject, manifest: Manifest, rule: Rule) -> Answer:
    """The number of files and of bytes are those of the list."""
    if not manifest.total:
        return Answer(0, (), "the manifest states no totals")
    sizes = [entry.size for entry in manifest.entries if entry.size is not None]
    sums = {"files": len(manifest.entries), "bytes": sum(sizes)}
    flaws = [
        flaw(subject, ("total", name), f"{stated}, but the list has {sums[name]}")
        for name, stated in manifest.total.items()
        if name in sums and stated != sums[name]
    ]
    return Answer(len(manifest.total), tuple(flaws))
