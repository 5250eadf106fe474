"""Rules on lists of digests: what they name is there, inside, and has the digest."""

from __future__ import annotations

from trueup.gates.checkpoint.files import (
    checkpoints_of,
    leads_out,
    link_out,
    sidecar_of,
    stem_of,
    weights_beside,
)
from trueup.gates.checkpoint.form_checks import check
from trueup.gates.checkpoint.join_checks import digest_flaws
from trueup.gates.documents.model import Answer, DocumentCheck, Subject
from trueup.gates.documents.paths import get
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

_ON = ("digest",)


def names_inside(subject: Subject, rule: Rule) -> Answer:
    """No entry leads out of the run directory: by `..`, an absolute path or a link."""
    flaws = []
    entries = subject.document.data["entries"]
    for index, entry in enumerate(entries):
        why = leads_out(entry["name"])
        if why is None and link_out(subject.run, entry["name"], subject.path.parent):
            why = "a link that leads out of the run directory"
        if why is not None:
            flaws.append(subject.flaw(f"{show(entry['name'])}: {why}", "entries", index))
    return Answer(len(entries), tuple(flaws))


def files_there(subject: Subject, rule: Rule) -> Answer:
    """Every entry names a file, from the folder of the list."""
    read, flaws = 0, []
    for index, entry in enumerate(subject.document.data["entries"]):
        name = entry["name"]
        if leads_out(name) is not None or link_out(subject.run, name, subject.path.parent):
            continue  # the matter of names_inside
        read += 1
        if subject.run.inside(name, subject.path.parent) is not None:
            continue
        base = name.rsplit("/", 1)[-1]
        beside = base != name and subject.run.inside(base, subject.path.parent) is not None
        hint = f"; {show(base)} stands beside the list" if beside else ""
        flaws.append(subject.flaw(f"{show(name)} is not there{hint}", "entries", index))
    return Answer(read, tuple(flaws), "no entry names a file of the run directory")


def digests_match(subject: Subject, rule: Rule) -> Answer:
    """Every file has its digest, computed in one pass."""
    read, flaws = 0, []
    for index, entry in enumerate(subject.document.data["entries"]):
        file = subject.run.inside(entry["name"], subject.path.parent)
        if file is None:
            continue
        read += 1
        flaws += digest_flaws(subject, ("entries", index), entry["sha256"], file, entry["name"])
    return Answer(read, tuple(flaws), "no entry names a file that is there")


def names_its_checkpoint(subject: Subject, rule: Rule) -> Answer:
    """The list of a checkpoint (same stem) names it."""
    beside = weights_beside(subject)
    entries = subject.document.data["entries"]
    if not beside:
        stem = stem_of(subject.path.name)
        return Answer(0, reason=f"no checkpoint has the stem {stem}")
    named = {subject.run.inside(entry["name"], subject.path.parent) for entry in entries}
    if any(file in named for file in beside):
        return Answer(len(entries))
    names = ", ".join(show(entry["name"]) for entry in entries[:3])
    got = f"names {names}, but stands beside {show(beside[0].name)}"
    return Answer(len(entries), (subject.flaw(got, "entries", 0),))


def agrees_with_sidecar(subject: Subject, rule: Rule) -> Answer:
    """List and sidecar state the same digest of a checkpoint."""
    read, flaws = 0, []
    for index, entry in enumerate(subject.document.data["entries"]):
        file = subject.run.inside(entry["name"], subject.path.parent)
        owner = next(
            (one for one in subject.run.subjects if file is not None and one.path == file), None
        )
        other = sidecar_of(owner) if owner is not None else None
        if other is None:
            continue
        for named in checkpoints_of(other, tuple(rule.params["keys"])):
            stated = get(other.document.data, *named.sha256_at) if named.sha256_at else None
            if named.file != file or not isinstance(stated, str):
                continue
            read += 1
            if stated.lower() != entry["sha256"]:
                got = f"{entry['sha256']}, but {other.path.name} says {show(stated)}"
                flaws.append(subject.flaw(got, "entries", index))
    return Answer(read, tuple(flaws), "no sidecar states a digest of what is listed")


CHECKS: tuple[DocumentCheck, ...] = (
    check("digest_names_inside", "no entry leads out of the run directory", names_inside, _ON),
    check("digest_files_there", "every entry names a file, from the folder of the list",
          files_there, _ON),
    check("digests_match", "every file that is listed has its digest", digests_match, _ON),
    check("digest_names_checkpoint", "the list beside a checkpoint names it",
          names_its_checkpoint, _ON),
    check("digest_agrees_with_sidecar", "list and sidecar (first of `keys`) state the same digest",
          agrees_with_sidecar, _ON, keys=(list,)),
)  # fmt: skip
