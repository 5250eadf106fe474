"""`judge_ledger`: a ledger of runs by itself, for the job that keeps it."""

from __future__ import annotations

import importlib.metadata
from dataclasses import replace
from pathlib import Path

from trueup.gates.acceptance.attempts import open_ledger
from trueup.gates.acceptance.found import Found
from trueup.gates.acceptance.inputs import Folder
from trueup.gates.acceptance.model import Criterion, Judgement
from trueup.gates.findings import Where
from trueup.gates.read.limits import Limits

_OF = {
    "chained": ("ledger_broken",),
    "one_attempt": ("rejected_rerun",),
    "diagnosed": ("no_diagnosis",),
    "void_with_evidence": ("void_unfounded",),
}
_ASKED = {
    "chained": "every line holds the digest of the line before it",
    "one_attempt": "no rerun that is not called one",
    "diagnosed": "a diagnosis for every attempt after a failed one",
    "void_with_evidence": "evidence for every void run",
}


def judge_ledger(path: str | Path, head: str = "") -> Judgement:
    """Judge a ledger; `head` is the digest of a line that it must still hold.

    Raises `Unreadable` if there is no line in it.
    """
    file = Path(path)
    found = Found()
    shown = "" if str(file.parent) == "." else str(file.parent)
    folder = Folder(file.parent, shown, found.fault, Limits())
    ledger = open_ledger(folder, file.name)
    for one in ledger.breaks:
        found.add(one.kind, ledger.name, one.where, one.got, one.expected)
    wrong = [one.kind for one in ledger.breaks]
    if head and not any(record.digest == head for record in ledger.records):
        wrong.append("ledger_broken")
        found.add("ledger_broken", ledger.name, Where(), f"its head is {ledger.head}",
                  f"a line with the digest {head}")  # fmt: skip
    criteria = tuple(
        Criterion(
            f"ledger.{name}", "", "ledger", "false" if set(kinds) & set(wrong) else "true",
            f"{len(ledger.records)} records", _ASKED[name],
        )
        for name, kinds in _OF.items()
    )  # fmt: skip
    return Judgement(
        id="ledger",
        criteria=criteria,
        findings=found.findings(),
        artifacts=tuple(replace(info, document=True) for info in folder.opened.values()),
        engines={"trueup": importlib.metadata.version("trueup")},
    )
