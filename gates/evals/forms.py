"""Holds an evaluation to the JSON Schema of its kind and form."""

from __future__ import annotations

from typing import Any

from trueup.gates.documents.model import Answer, Flaw, Pointer, Subject
from trueup.gates.documents.schema import MAX_BREAKS, breaks
from trueup.gates.evals.read import KINDS, MAX_VALUES, eval_of, holds_too_much
from trueup.gates.profile.rules import Rule


def eval_form(subject: Subject, rule: Rule) -> Answer:
    """The document is an evaluation of a known kind, and fits the schema of that kind."""
    data = subject.document.data
    if holds_too_much(data):
        got = f"holds more than {MAX_VALUES} values; nothing of it was looked at"
        return Answer(1, (Flaw(subject.document.where(), got),))
    read = eval_of(subject)
    is_own = isinstance(data, dict) and "results" in data
    flaws = _against(subject, data, "evaluation", ()) if is_own else []
    if read.kind is None:
        if not any(flaw.where.key == "kind" for flaw in flaws):
            expected = f"a kind: {', '.join(KINDS)}"
            got = f"no kind of evaluation can be told; expected {expected}"
            flaws.append(Flaw(subject.document.where(), got))
        return Answer(1, tuple(flaws))
    name = f"{read.kind}_script" if read.form == "script" else read.kind
    flaws += _against(subject, data["results"] if is_own else data, name, read.results)
    return Answer(1, tuple(flaws[:MAX_BREAKS]))


def _against(subject: Subject, data: Any, schema: str, at: Pointer) -> list[Flaw]:
    """What a schema says against `data`, which stands at `at` in the document."""
    return [
        Flaw(subject.document.where(*at, *one.pointer), str(one))
        for one in breaks(data, f"evals/{schema}")
        if at or one.pointer[:1] != ("results",) or one.expected != "a finite number"
    ]
