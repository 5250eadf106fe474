"""Reads an evaluation in either form: a document of its own, or what a script wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trueup.gates.documents.model import Pointer, Subject
from trueup.gates.evals import document, script
from trueup.gates.evals.numbers import cell
from trueup.gates.evals.results import Eval, Memory, Named

KINDS = ("zeroshot", "niah", "continual", "passkey", "pg19", "metrics")
SCHEMA = "trueup.eval/1"
MAX_VALUES = 50_000  # of one document; a real one has some hundreds


def eval_of(subject: Subject) -> Eval:
    """The evaluation of a document of the run, worked out once."""
    key = ("eval", subject.path)
    if key not in subject.run.memo:
        subject.run.memo[key] = read_eval(subject.document.data)
    found: Eval = subject.run.memo[key]
    return found


def holds_too_much(data: Any) -> bool:
    """Whether a document has more values than any evaluation: nothing of it is looked at then."""
    waiting, count = [data], 0
    while waiting and count <= MAX_VALUES:
        value = waiting.pop()
        count += 1
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
    return count > MAX_VALUES


def read_eval(data: Any) -> Eval:
    """What rules see of it. Nothing in it is trusted: what is not as it should be is left out."""
    if holds_too_much(data):
        return Eval(None, "document", ())
    if not isinstance(data, dict) or "results" not in data:
        kind = script.kind_of(data)
        return script.read_results(kind, data, ()) if kind else Eval(None, "script", ())
    at: Pointer = ("results",)
    results, kind = data["results"], data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return _with_head(Eval(None, "document", at), data)
    if script.kind_of(results) == kind and not document.is_document(kind, results):
        return _with_head(script.read_results(kind, results, at), data)
    if isinstance(results, dict):
        return _with_head(document.read_results(kind, results, at), data)
    return _with_head(Eval(kind, "document", at), data)


def _with_head(read: Eval, data: dict[str, Any]) -> Eval:
    """Add what stands around the results."""
    created, variant = data.get("created_at"), data.get("variant")
    return replace(
        read,
        checkpoints=_checkpoints(data) or read.checkpoints,
        created_at=created if isinstance(created, str) else None,
        variant=variant if isinstance(variant, str) else None,
        memory=_memory(data, read.memory),
    )


def _checkpoints(data: dict[str, Any]) -> tuple[Named, ...]:
    """The one checkpoint, or those of a sequence of stages."""
    if "checkpoint" in data:
        return (_named(data["checkpoint"], ("checkpoint",)),)
    several = data.get("checkpoints")
    if not isinstance(several, list):
        return ()
    return tuple(_named(one, ("checkpoints", index)) for index, one in enumerate(several))


def _named(part: Any, at: Pointer) -> Named:
    if not isinstance(part, dict):
        return Named(at, part if isinstance(part, str) else None)
    path, sha256 = part.get("path"), part.get("sha256")
    return Named(
        at,
        path if isinstance(path, str) else None,
        sha256 if isinstance(sha256, str) else None,
        cell(part, *at, "step"),
    )


def _memory(data: dict[str, Any], inner: Memory) -> Memory:
    part = data.get("memorize")
    if not isinstance(part, dict):
        return inner
    enabled, stats = part.get("enabled"), part.get("stats")
    at: Pointer = ("memorize", "stats")
    cells = [
        (key, cell(stats, *at, key)) for key in (stats if isinstance(stats, dict) else {})
    ]  # fmt: skip
    events = [one for key, one in cells if one is not None and key.endswith("_update_events")]
    norms = [one for key, one in cells if one is not None and key.endswith("_updates")]
    return Memory(
        enabled if isinstance(enabled, bool) else inner.enabled,
        ("memorize",),
        (*events, *inner.events),
        (*norms, *inner.norms),
    )
