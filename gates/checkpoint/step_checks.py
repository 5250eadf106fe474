"""Rules on a sidecar's step: against the file's name, the telemetry, and the other checkpoints."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from trueup.gates.checkpoint.files import checkpoints_of, sidecars, stem_of
from trueup.gates.checkpoint.form_checks import check, on_sidecars
from trueup.gates.checkpoint.telemetry import steps_of
from trueup.gates.documents.model import Answer, DocumentCheck, Subject
from trueup.gates.documents.paths import get
from trueup.gates.errors import ProfileError
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule


def whole(value: Any) -> int | None:
    """A whole number; None for true, false and everything else."""
    return value if type(value) is int else None


def step_in_name(subject: Subject, rule: Rule) -> Answer:
    """The number in the file names of sidecar and checkpoint is the step."""
    step = whole(get(subject.document.data, "step"))
    names = {subject.path.name, *(Path(one.name).name for one in checkpoints_of(subject, ()))}
    read, flaws = 0, []
    try:
        numbers = re.compile(rule.params["pattern"])
    except re.error as error:
        raise ProfileError(f"params.pattern: {error}", where=rule.id) from None
    for name in sorted(names):
        found = numbers.search(stem_of(name))
        if found is None or step is None:
            continue
        read += 1
        if int(found[1]) != step:
            flaws.append(subject.flaw(f"{step}, but the file is {show(name)}", "step"))
    return Answer(read, tuple(flaws), "no file name holds a step")


def step_in_telemetry(subject: Subject, rule: Rule) -> Answer:
    """The step lies within those of the telemetry, or at most `slack` rows after them."""
    step, steps = whole(get(subject.document.data, "step")), steps_of(subject.run)
    if steps is None or step is None:
        return Answer(0, reason="no telemetry with steps" if steps is None else "no step")
    latest = steps.last + steps.interval * rule.params["slack"]
    if steps.first <= step <= latest:
        return Answer(1)
    got = f"{step}, but telemetry covers steps {steps.first} to {steps.last}"
    return Answer(1, (subject.flaw(got, "step"),))


def steps_in_time(subject: Subject, rule: Rule) -> Answer:
    """Of two checkpoints of a folder, the one of the larger step was created later."""
    step, created = whole(get(subject.document.data, "step")), _moment(subject)
    if step is None or created is None:
        return Answer(0, reason="no step, or no time with a zone")
    read, flaws = 0, []
    for other in _others(subject):
        theirs, then = whole(get(other.document.data, "step")), _moment(other)
        if theirs is None or then is None or theirs >= step:
            continue
        read += 1
        if then >= created:
            got = f"{created.isoformat()}, but {other.path.name} of step {theirs} says "
            flaws.append(subject.flaw(got + then.isoformat(), "created_at"))
    return Answer(read, tuple(flaws[:1]), "no checkpoint of an earlier step")


def weights_differ(subject: Subject, rule: Rule) -> Answer:
    """Checkpoints of different steps are not the same to the last bit."""
    data = subject.document.data
    step, own = whole(get(data, "step")), _digest(subject, rule.params["keys"])
    if step is None or own is None:
        return Answer(0, reason="no step, or no digest of the checkpoint")
    read, flaws = 0, []
    for other in _others(subject):
        theirs, digest = (
            whole(get(other.document.data, "step")),
            _digest(other, rule.params["keys"]),
        )
        if theirs is None or digest is None or theirs >= step:
            continue
        read += 1
        if digest == own:
            got = f"the same bytes as at step {theirs} ({other.path.name})"
            flaws.append(subject.flaw(got, "step"))
    return Answer(read, tuple(flaws[:1]), "no checkpoint of an earlier step")


def same_throughout(subject: Subject, rule: Rule) -> Answer:
    """The values at `keys` are those of the first checkpoint of the folder."""
    every = [subject, *_others(subject)]
    first = min(every, key=lambda one: (_order(one), one.path.name))
    if first is subject:
        return Answer(0, reason="the first checkpoint, or the only one")
    read, flaws = 0, []
    for key in rule.params["keys"]:
        mine, theirs = (get(one.document.data, key) for one in (subject, first))
        if mine is None or theirs is None:
            continue
        read += 1
        if mine != theirs or type(mine) is not type(theirs):
            got = f"{show(mine)}, but {first.path.name} says {show(theirs)}"
            flaws.append(subject.flaw(got, key))
    return Answer(read, tuple(flaws), f"states none of {', '.join(rule.params['keys'])}")


def _others(subject: Subject) -> list[Subject]:
    """The other sidecars of the same folder."""
    return [
        one for one in sidecars(subject.run)
        if one is not subject and one.path.parent == subject.path.parent
    ]  # fmt: skip


def _order(subject: Subject) -> float:
    step = whole(get(subject.document.data, "step"))
    return float("inf") if step is None else step


def _moment(subject: Subject) -> datetime | None:
    """When a checkpoint was created; None where the zone is open."""
    text = get(subject.document.data, "created_at")
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _digest(subject: Subject, keys: list[str]) -> str | None:
    found = next(
        (get(subject.document.data, k) for k in keys if get(subject.document.data, k)), None
    )
    return found if isinstance(found, str) else None


CHECKS: tuple[DocumentCheck, ...] = (
    check("step_in_name", "the number that `pattern` finds in the file names is `step`",
          on_sidecars(step_in_name), pattern=(str,)),
    check("step_in_telemetry", "`step` lies within the steps of the telemetry, or at most `slack` "
          "of its intervals after them", on_sidecars(step_in_telemetry), slack=(int,)),
    check("steps_in_time", "of two checkpoints, the one of the larger step was created later",
          on_sidecars(steps_in_time)),
    check("weights_differ", "checkpoints of different steps have different digests at `keys`",
          on_sidecars(weights_differ), keys=(list,)),
    check("same_throughout", "the values at `keys` are those of the first checkpoint of the folder",
          on_sidecars(same_throughout), keys=(list,)),
)  # fmt: skip
