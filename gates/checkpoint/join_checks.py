"""Rules that hold a sidecar against the files it speaks of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from trueup.gates.checkpoint.canonical import NotCanonical, canonical_digest
from trueup.gates.checkpoint.files import (
    Named,
    checkpoints_of,
    config_file,
    config_of,
    leads_out,
    link_out,
    locate,
)
from trueup.gates.checkpoint.form_checks import check, on_sidecars
from trueup.gates.documents.common import number
from trueup.gates.documents.model import Answer, DocumentCheck, Flaw, Pointer, Subject
from trueup.gates.documents.paths import get, parse_path, select
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_NO_FILE = "the checkpoint is not there"


def checkpoint_there(subject: Subject, rule: Rule) -> Answer:
    """The checkpoint that the sidecar speaks of is a file of the run directory."""
    named = checkpoints_of(subject, ())
    flaws = tuple(
        subject.flaw(f"{show(one.name)} is not in the run directory", *one.pointer)
        for one in named
        if one.file is None
    )
    return Answer(len(named), flaws)


def paths_inside(subject: Subject, rule: Rule) -> Answer:
    """No path is absolute, climbs with `..`, or leads out by a link."""
    data, folder = subject.document.data, subject.path.parent
    read = 0
    flaws: list[Flaw] = []
    for key in rule.params["keys"]:
        for pointer, name in select(data, parse_path(key, rule.id)):
            read += _one_path(subject, pointer, name, folder, flaws)
    files = get(data, "files")
    for name in files if isinstance(files, dict) else ():
        read += _one_path(subject, ("files", name), name, folder, flaws)
    return Answer(read, tuple(flaws), f"states none of {', '.join(rule.params['keys'])}")


def _one_path(
    subject: Subject, pointer: Pointer, name: Any, folder: Path, flaws: list[Flaw]
) -> int:
    if not isinstance(name, str):
        return 0
    why = leads_out(name)
    if why is None and link_out(subject.run, name, folder):
        why = "a link that leads out of the run directory"
    if why is not None:
        flaws.append(subject.flaw(f"{show(name)}: {why}", *pointer))
    return 1


def checkpoint_digest(subject: Subject, rule: Rule) -> Answer:
    """The checkpoint has the SHA-256 that is stated, computed in one pass over the file."""
    data = subject.document.data
    flaws: list[Flaw] = []
    read = 0
    for one in checkpoints_of(subject, tuple(rule.params["keys"])):
        stated = get(data, *one.sha256_at) if one.sha256_at is not None else None
        if one.file is None or not isinstance(stated, str) or one.sha256_at is None:
            continue
        read += 1
        flaws += digest_flaws(subject, one.sha256_at, stated, one.file, one.name)
    return Answer(read, tuple(flaws), f"{_NO_FILE}, or none of {_listed(rule)} is stated")


def digest_flaws(
    subject: Subject, pointer: Pointer, stated: str, file: Path, name: str
) -> list[Flaw]:
    """Whether a file has a digest; undetermined if it cannot be read, or changes meanwhile."""
    try:
        digest = subject.run.digest(file)
    except OSError as error:
        return [subject.unsure(f"{show(name)} cannot be read: {error.strerror}", *pointer)]
    if not digest.steady:
        return [subject.unsure(f"{show(name)} changed while it was read", *pointer)]
    if digest.sha256 != stated.lower():
        return [subject.flaw(f"{show(stated)}, but {show(name)} has {digest.sha256}", *pointer)]
    return []


def checkpoint_size(subject: Subject, rule: Rule) -> Answer:
    """The checkpoint has the size that is stated."""
    named = [one for one in checkpoints_of(subject, ()) if one.file is not None]
    read, flaws = 0, []
    for key in rule.params["keys"]:
        stated = get(subject.document.data, key)
        if number(stated) is None or not named:
            continue
        read += 1
        size = sum(one.file.stat().st_size for one in named if one.file is not None)
        if stated != size:
            flaws.append(subject.flaw(f"{show(stated)}, but {_names(named)} has {size} bytes", key))
    return Answer(read, tuple(flaws), f"{_NO_FILE}, or none of {_listed(rule)} is stated")


def _names(named: list[Named]) -> str:
    return ", ".join(show(one.name) for one in named[:3])


def _listed(rule: Rule) -> str:
    return ", ".join(rule.params["keys"])


def config_digest(subject: Subject, rule: Rule) -> Answer:
    """The configuration has the SHA-256 that is stated, and is the same in file and sidecar."""
    key = rule.params["key"]
    stated = get(subject.document.data, key)
    written = get(subject.document.data, "config")
    named = get(subject.document.data, "config_path")
    file = config_file(subject)
    if isinstance(named, str) and file is None:
        got = f"{show(named)} is not in the run directory"
        return Answer(1, (subject.flaw(got, "config_path"),))
    if file is None and not isinstance(written, dict):
        return Answer(0, reason="no configuration stands in or beside the sidecar")
    flaws = _two_configs(subject, file, written)
    if not isinstance(stated, str):
        return Answer(len(flaws), tuple(flaws), f"{key} is not stated")
    if file is not None:
        flaws += digest_flaws(subject, (key,), stated, file, file.name)
    else:
        computed = _canonical_sha256(written)
        if computed != stated:
            flaws.append(subject.flaw(f"{show(stated)}, but `config` has {computed}", key))
    return Answer(1, tuple(flaws))


def _canonical_sha256(written: Any) -> str:
    try:
        return canonical_digest(written)
    except NotCanonical as error:
        return f"none: {error.got}"


def _two_configs(subject: Subject, file: Path | None, written: Any) -> list[Flaw]:
    """A configuration that stands in the file and in the sidecar says the same in both."""
    config = config_of(subject)
    if file is None or config is None:
        return []
    if config.faulty:
        return [subject.flaw(f"{file.name} cannot be read without faults", "config_path")]
    if isinstance(written, dict) and written != config.data:
        return [subject.flaw(f"`config` differs from {file.name}", "config")]
    return []


def tokenizer_digest(subject: Subject, rule: Rule) -> Answer:
    """The tokenizer's digest is stated, and is that of its file where the run has the file."""
    data = subject.document.data
    config = config_of(subject)
    places = [("the sidecar", get(data, "tokenizer_path"))] + [
        ("the configuration", value)
        for way in rule.params.get("config", [])
        for _, value in select(config.data if config else None, parse_path(way, rule.id))
    ]
    path = next((value for _, value in places if isinstance(value, str) and value), None)
    key = next((one for one in rule.params["keys"] if get(data, one) is not None), None)
    if key is None:
        null = [one for one in rule.params["keys"] if isinstance(data, dict) and one in data]
        if null and path is None:
            return Answer(0, reason=f"{null[0]} is null: the run has no tokenizer")
        got = f"no digest of {show(path)}" if path else f"none of {_listed(rule)} is stated"
        return Answer(1, (subject.flaw(got, rule.params["keys"][0]),))
    stated = get(data, key)
    if not isinstance(stated, str) or not _SHA256.match(stated):
        return Answer(1, (subject.flaw(f"{show(stated)} is no SHA-256", key),))
    file = locate(subject.run, path, subject.path.parent) if path else None
    if file is None:
        return Answer(1)  # the file is not part of the run: its digest can only be stated
    return Answer(1, tuple(digest_flaws(subject, (key,), stated, file, file.name)))


CHECKS: tuple[DocumentCheck, ...] = (
    check("checkpoint_there", "the checkpoint of a sidecar is in the run directory",
          on_sidecars(checkpoint_there)),
    check("paths_inside", "the paths at `keys` do not lead out of the run directory",
          on_sidecars(paths_inside), keys=(list,)),
    check("checkpoint_digest", "the checkpoint has the SHA-256 at the first of `keys` there is",
          on_sidecars(checkpoint_digest), keys=(list,)),
    check("checkpoint_size", "the checkpoint has the size in bytes at `keys`",
          on_sidecars(checkpoint_size), keys=(list,)),
    check("config_digest", "the configuration has the SHA-256 at `key`",
          on_sidecars(config_digest), key=(str,)),
    check("tokenizer_digest", "the tokenizer's SHA-256 is at one of `keys`, and is that of the "
          "file at `tokenizer_path`, or at one of the ways `config` into the configuration",
          on_sidecars(tokenizer_digest), keys=(list,), _config=(list,)),
)  # fmt: skip
