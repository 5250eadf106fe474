"""Rules that tie an evaluation to the checkpoint it measured."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from trueup.gates.documents.model import Answer, Flaw, Subject
from trueup.gates.evals.answers import answer, flaw, unsure
from trueup.gates.evals.read import eval_of
from trueup.gates.evals.results import Named
from trueup.gates.findings import show
from trueup.gates.profile.rules import Rule

_STEP = re.compile(r"step[_-]?([0-9]{1,18})(?![0-9])")
_SIDECARS = ("{stem}.meta.json", "{name}.meta.json", "{stem}.json", "{stem}.yaml")
_TIMES = ["created_at", "saved_at", "timestamp"]
_STEPS = ["step", "global_step"]
_FIXED = 315_619_200  # 2 January 1980: archives with fixed times carry none later
_NOT_THERE = "names no checkpoint that is in the run directory"


def eval_names_checkpoint(subject: Subject, rule: Rule) -> Answer:
    """The document says which checkpoint it measured: path, SHA-256 and step."""
    named = eval_of(subject).checkpoints
    if not named:
        return Answer(1, (flaw(subject, (), "names no checkpoint"),))
    flaws = []
    for one in named:
        parts = {"path": one.path, "sha256": one.sha256, "step": one.step}
        missing = [name for name, value in parts.items() if value is None]
        if missing:
            flaws.append(flaw(subject, one.pointer, f"does not say {', '.join(missing)}"))
    return answer(len(named), flaws, "")


def checkpoint_file(subject: Subject, named: Named) -> Path | None:
    """The file a path leads to: from the nearest folder above the document that has it."""
    if named.path is None:
        return None
    run = subject.run
    root = Path(run.root).resolve()
    for folder in subject.path.resolve().parents:
        if not folder.is_relative_to(root):
            break
        found = run.inside(named.path, folder)
        if found is not None:
            return found
    return None


def eval_checkpoint_inside(subject: Subject, rule: Rule) -> Answer:
    """The checkpoint is a file of the run directory."""
    named = [one for one in eval_of(subject).checkpoints if one.path is not None]
    flaws = [
        flaw(subject, one.pointer, f"{show(one.path)} is no file in the run directory")
        for one in named
        if checkpoint_file(subject, one) is None
    ]
    return answer(len(named), flaws, "names no path of a checkpoint")


def eval_checkpoint_digest(subject: Subject, rule: Rule) -> Answer:
    """The checkpoint has the SHA-256 the document states, computed anew."""
    read, flaws = 0, []
    for one in eval_of(subject).checkpoints:
        file = checkpoint_file(subject, one)
        if file is None or one.sha256 is None:
            continue
        read += 1
        at = (*one.pointer, "sha256")
        try:
            digest = subject.run.digest(file)
        except OSError as error:
            flaws.append(unsure(subject, at, f"{show(one.path)} cannot be read: {error.strerror}"))
            continue
        if not digest.steady:
            flaws.append(unsure(subject, at, f"{show(one.path)} changed while it was read"))
        elif digest.sha256 != one.sha256:
            got = f"{show(one.sha256)}, but {show(one.path)} has {digest.sha256}"
            flaws.append(flaw(subject, at, got))
    return answer(read, flaws, f"{_NOT_THERE}, with a digest")


def sidecar(subject: Subject, file: Path) -> Subject | None:
    """The metadata that stands beside a checkpoint, if the profile has it read."""
    memo = subject.run.memo
    if "sidecars" not in memo:
        memo["sidecars"] = {
            one.path: one for one in subject.run.subjects if one.kind == "metadata"
        }  # fmt: skip
    names = (form.format(stem=file.stem, name=file.name) for form in _SIDECARS)
    found = (memo["sidecars"].get(file.parent / name) for name in names)
    return next((one for one in found if one is not None), None)


def _stated(subject: Subject | None, keys: Iterable[str]) -> Any:
    data = subject.document.data if subject is not None else None
    if not isinstance(data, dict):
        return None
    return next((data[key] for key in keys if key in data), None)


def eval_checkpoint_step(subject: Subject, rule: Rule) -> Answer:
    """The step is that of the checkpoint's metadata and of its file name."""
    keys = rule.params.get("steps", _STEPS)
    read, flaws = 0, []
    for one in eval_of(subject).checkpoints:
        if one.step is None or one.path is None:
            continue
        others: list[tuple[str, Any]] = []
        found = _STEP.findall(one.path.rsplit("/", 1)[-1])
        if found:
            others.append(("the file name", int(found[-1])))
        file = checkpoint_file(subject, one)
        beside = sidecar(subject, file) if file is not None else None
        stated = _stated(beside, keys)
        if beside is not None and stated is not None:
            others.append((beside.path.name, stated))
        for where, step in others:
            read += 1
            if step != one.step.value or isinstance(step, bool):
                got = f"{show(one.step.value)}, but {where} says {show(step)}"
                flaws.append(flaw(subject, one.step, got))
    return answer(read, flaws, "neither metadata nor a file name says the checkpoint's step")


def eval_newer(subject: Subject, rule: Rule) -> Answer:
    """The evaluation is younger than its checkpoint, by what both state, else by their files."""
    keys = rule.params.get("times", _TIMES)
    document = eval_of(subject)
    read = 0
    flaws: list[Flaw] = []
    for one in document.checkpoints:
        file = checkpoint_file(subject, one)
        if file is None:
            continue
        read += 1
        found = _order(subject, document.created_at, _stated(sidecar(subject, file), keys), file)
        flaws += [found] if found is not None else []
    return answer(read, flaws, _NOT_THERE)


def _order(subject: Subject, mine: Any, other: Any, file: Path) -> Flaw | None:
    """What is wrong with the two times as they are stated."""
    at = ("created_at",)
    for whose, stated in (("its own", mine), ("its checkpoint's", other)):
        if stated is not None and instant(stated) is None:
            return unsure(subject, at, f"{whose} time {show(stated)} is no point in time")
    own, then = instant(mine), instant(other)
    if own is None or then is None:
        return _by_files(subject, file)
    if own < then:
        return flaw(subject, at, f"created {own.isoformat()}, its checkpoint {then.isoformat()}")
    return None


def instant(text: Any) -> datetime | None:
    """A point in time; None if the text is none, or leaves its zone open."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _by_files(subject: Subject, file: Path) -> Flaw | None:
    """Where one of the two does not state its time, the files' own times must do."""
    mine, other = (path.stat().st_mtime for path in (subject.path, file))
    at = ("created_at",)
    said = "the two do not both state when they were created, and their files"
    if mine <= _FIXED or other <= _FIXED:
        return unsure(subject, at, f"{said} carry a fixed time")
    if mine == other:
        return unsure(subject, at, f"{said} have the same time")
    if mine < other:
        when = [datetime.fromtimestamp(t).astimezone().isoformat() for t in (mine, other)]
        return flaw(subject, at, f"written {when[0]}, its checkpoint {when[1]}")
    return None
