"""Rules on pickles: which globals they may name, and what an archive of them holds."""

from __future__ import annotations

from fnmatch import fnmatchcase

from trueup.gates.checkpoint.form_checks import check
from trueup.gates.documents.model import Answer, DocumentCheck, Subject
from trueup.gates.profile.rules import Rule

_PICKLE = ("pickle",)


def globals_allowed(subject: Subject, rule: Rule) -> Answer:
    """Every global that a pickle names is one of `allowed` (`*` stands for a part of a name)."""
    named, allowed = subject.document.data["globals"], rule.params["allowed"]
    exact = {one for one in allowed if "*" not in one}
    patterns = [one for one in allowed if "*" in one]
    flaws = []
    for name, at in named.items():
        if name in exact or any(_fits(name, pattern) for pattern in patterns):
            continue
        flaws.append(subject.flaw(f"{name} at byte {at['byte']}", at["pickle"]))
    return Answer(max(len(named), 1), tuple(flaws))


def _fits(name: str, pattern: str) -> bool:
    """A star stands for a part of a name, never for a dot: `torch.*Storage` is no `torch.hub.x`."""
    return name.count(".") == pattern.count(".") and fnmatchcase(name, pattern)


def holds_a_pickle(subject: Subject, rule: Rule) -> Answer:
    """An archive has exactly one data.pkl, in one folder with everything else."""
    data = subject.document.data
    if not data["archive"]:
        return Answer(len(data["pickles"]))
    names = [one["name"] for one in data["entries"]]
    main = [name for name in names if name.rsplit("/", 1)[-1] == "data.pkl"]
    flaws = []
    if len(main) != 1:
        flaws.append(subject.flaw(f"{len(main)} entries are data.pkl"))
    elif len({name.split("/", 1)[0] for name in names}) != 1:
        flaws.append(subject.flaw("entries outside the folder of data.pkl", main[0]))
    return Answer(max(len(names), 1), tuple(flaws))


CHECKS: tuple[DocumentCheck, ...] = (
    check("globals_allowed", "every global that a pickle names is in `allowed`",
          globals_allowed, _PICKLE, allowed=(list,)),
    check("holds_a_pickle", "an archive has exactly one data.pkl, and one folder",
          holds_a_pickle, _PICKLE),
)  # fmt: skip
