"""Rules on what must stand beside a checkpoint: its metadata, and a digest."""

from __future__ import annotations

import re
from pathlib import Path

from trueup.gates.checkpoint.files import list_names, sidecar_names, sidecar_of
from trueup.gates.checkpoint.form_checks import check
from trueup.gates.documents.model import Answer, DocumentCheck, Subject
from trueup.gates.documents.paths import get
from trueup.gates.errors import ProfileError
from trueup.gates.profile.rules import Rule

_BOTH = ("weights", "pickle")


def _is_checkpoint(subject: Subject, rule: Rule) -> bool:
    try:
        return re.search(rule.params["pattern"], subject.path.name) is not None
    except re.error as error:
        raise ProfileError(f"params.pattern: {error}", where=rule.id) from None


def has_sidecar(subject: Subject, rule: Rule) -> Answer:
    """A checkpoint has its metadata beside it."""
    if not _is_checkpoint(subject, rule):
        return Answer(0, reason="no name of a checkpoint")
    names = sidecar_names(subject.path)
    if sidecar_of(subject) is not None or any(_beside(subject, name) for name in names):
        return Answer(1)
    return Answer(1, (subject.flaw(f"no {names[-3]} beside {subject.path.name}"),))


def has_digest(subject: Subject, rule: Rule) -> Answer:
    """A digest of the checkpoint is stated: by its sidecar, or by a list that names it."""
    if not _is_checkpoint(subject, rule):
        return Answer(0, reason="no name of a checkpoint")
    sidecar = sidecar_of(subject)
    data = sidecar.document.data if sidecar is not None else None
    listed = get(data, "files", subject.path.name)
    if listed or any(get(data, key) for key in rule.params["keys"]):
        return Answer(1)
    for other in subject.run.subjects:
        if other.kind == "digest" and _lists(other, subject.path):
            return Answer(1)
    if any(_beside(subject, name) for name in list_names(subject.path)):
        return Answer(1)  # one file was named: its list was not read, but stands there
    got = f"neither a sidecar nor a list of digests speaks of {subject.path.name}"
    return Answer(1, (subject.flaw(got),))


def _lists(digests: Subject, file: Path) -> bool:
    entries = digests.document.data["entries"]
    run, folder = digests.run, digests.path.parent
    return any(
        entry["name"].endswith(file.name) and run.inside(entry["name"], folder) == file
        for entry in entries
    )


def _beside(subject: Subject, name: str) -> bool:
    """Whether a file that was no artifact of its own stands beside (one file was named)."""
    alone = len(subject.run.artifacts) == 1
    return alone and subject.run.inside(name, subject.path.parent) is not None


CHECKS: tuple[DocumentCheck, ...] = (
    check("has_sidecar", "a file whose name matches `pattern` has its metadata beside it",
          has_sidecar, _BOTH, pattern=(str,)),
    check("has_digest", "a digest of a file whose name matches `pattern` is stated, by its sidecar "
          "(one of `keys`) or a list", has_digest, _BOTH, pattern=(str,), keys=(list,)),
)  # fmt: skip
