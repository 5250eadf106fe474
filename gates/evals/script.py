"""Reads what the evaluation scripts of nested-learning runs write: flat keys, no provenance.

zeroshot   {task}_accuracy, {task}_samples, {task}_baseline_accuracy, {task}_memorize_accuracy,
           {task}_memorize_delta, {task}_{level}_updates, {task}_{level}_update_events
niah       niah_{context}, niah_{context}_baseline_accuracy, ..._memorize_accuracy,
           ..._memorize_delta
passkey    samples, accuracy_base, accuracy_memorize, accuracy_delta, path_stats
pg19       samples, tokens, ppl_base, ppl_memorize, ppl_delta
continual  a list of {checkpoint, segment_losses, segment_baseline_losses,
           segment_memorize_delta, memorize_stats}
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from trueup.gates.documents.model import Pointer
from trueup.gates.evals.numbers import Cell, cell
from trueup.gates.evals.results import Eval, Memory, Named, Score

_CONTEXT = re.compile(r"niah_([0-9]+)(?:_(?:baseline_accuracy|memorize_(?:accuracy|delta)))?")


def kind_of(results: Any) -> str | None:
    """Which script wrote this; None if none of those that are known."""
    if isinstance(results, list):
        is_continual = results and all(
            isinstance(entry, dict) and "segment_losses" in entry for entry in results
        )
        return "continual" if is_continual else None
    if not isinstance(results, dict):
        return None
    if any(_CONTEXT.fullmatch(key) for key in results):
        return "niah"
    if "accuracy_base" in results and "samples" in results:
        return "passkey"
    if "ppl_base" in results and "tokens" in results:
        return "pg19"
    return "zeroshot" if _tasks(results) else None


def read_results(kind: str, results: Any, at: Pointer) -> Eval:
    """The results of one script; parts that are not as they should be are left out."""
    if kind == "continual":
        return _continual(results if isinstance(results, list) else [], at)
    data = results if isinstance(results, dict) else {}
    scores = {"zeroshot": _zeroshot, "niah": _niah, "passkey": _passkey, "pg19": _pg19}[kind](
        data, at
    )
    return Eval(kind, "script", at, scores, memory=_memory(data, at))


def _tasks(results: dict[str, Any]) -> list[str]:
    end = "_samples"
    return [
        key.removesuffix(end)
        for key in results
        if key.endswith(end) and f"{key.removesuffix(end)}_accuracy" in results
    ]


def _zeroshot(results: dict[str, Any], at: Pointer) -> tuple[Score, ...]:
    scores = []
    for task in _tasks(results):
        key = f"{task}_accuracy"
        n = cell(results, *at, f"{task}_samples")
        score = Score(task, (*at, key), value=cell(results, *at, key), n=n)
        scores.append(_with_sides(score, results, at, f"{task}_"))
    return tuple(scores)


def _with_sides(score: Score, results: dict[str, Any], at: Pointer, start: str) -> Score:
    """Add what was measured without and with memorisation."""
    return replace(
        score,
        baseline=cell(results, *at, f"{start}baseline_accuracy"),
        memorized=cell(results, *at, f"{start}memorize_accuracy"),
        delta=cell(results, *at, f"{start}memorize_delta"),
    )


def _niah(results: dict[str, Any], at: Pointer) -> tuple[Score, ...]:
    found = (_CONTEXT.fullmatch(key) for key in results)
    scores = []
    for context in dict.fromkeys(match[1] for match in found if match):
        key = f"niah_{context}"
        score = Score(f"context {context}", (*at, key), value=cell(results, *at, key))
        scores.append(_with_sides(score, results, at, f"{key}_"))
    return tuple(scores)


def _passkey(results: dict[str, Any], at: Pointer) -> tuple[Score, ...]:
    return (
        Score(
            "passkey", (*at, "accuracy_memorize"),
            value=cell(results, *at, "accuracy_memorize"), n=cell(results, *at, "samples"),
            baseline=cell(results, *at, "accuracy_base"),
            memorized=cell(results, *at, "accuracy_memorize"),
            delta=cell(results, *at, "accuracy_delta"),
        ),
    )  # fmt: skip


def _pg19(results: dict[str, Any], at: Pointer) -> tuple[Score, ...]:
    return (
        Score(
            "ppl", (*at, "ppl_memorize"), "ppl", "lower", cell(results, *at, "ppl_memorize"),
            baseline=cell(results, *at, "ppl_base"),
            memorized=cell(results, *at, "ppl_memorize"), delta=cell(results, *at, "ppl_delta"),
        ),
    )  # fmt: skip


def _memory(results: dict[str, Any], at: Pointer) -> Memory:
    """On if the script says which paths it memorised through: it writes them only then."""
    marks = [key for key in results if key.endswith("memorize_paths")]
    places = [(results, at)]
    for key in ("path_stats", "memorize_stats"):
        if isinstance(results.get(key), dict):
            places.append((results[key], (*at, key)))
    return Memory(bool(marks), (*at, marks[0]) if marks else at, *_stats(places))


def _stats(places: list[tuple[dict[str, Any], Pointer]]) -> tuple[tuple[Cell, ...], ...]:
    """Update events, and summed gradient norms."""
    cells = [(key, cell(part, *at, key)) for part, at in places for key in part]
    return tuple(
        tuple(one for key, one in cells if one is not None and key.endswith(end))
        for end in ("_update_events", "_updates")
    )


def _continual(entries: list[Any], at: Pointer) -> Eval:
    scores: list[Score] = []
    named: list[Named] = []
    stats: list[tuple[dict[str, Any], Pointer]] = []
    enabled = False
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            continue
        here = (*at, index)
        path = entry.get("checkpoint")
        named.append(Named((*here, "checkpoint"), path if isinstance(path, str) else None))
        scores += _segments(entry, here, str(path))
        enabled = enabled or "segment_baseline_losses" in entry
        segments = entry.get("memorize_stats")
        stats += [
            (part, (*here, "memorize_stats", name))
            for name, part in (segments if isinstance(segments, dict) else {}).items()
            if isinstance(part, dict)
        ]
    memory = Memory(enabled, at, *_stats(stats))
    return Eval("continual", "script", at, tuple(scores), tuple(named), memory=memory)


def _segments(entry: dict[str, Any], at: Pointer, checkpoint: str) -> list[Score]:
    """The loss of each segment; the losses are the memorized ones where baselines stand beside."""
    after, before = entry.get("segment_losses"), entry.get("segment_baseline_losses")
    moved = entry.get("segment_memorize_delta")
    scores = []
    for name in after if isinstance(after, dict) else {}:
        value = cell(after, *at, "segment_losses", name)
        scores.append(
            Score(
                f"{name} of {checkpoint}", (*at, "segment_losses", name), "loss", "lower", value,
                baseline=cell(before, *at, "segment_baseline_losses", name),
                memorized=None if before is None else value,
                delta=cell(moved, *at, "segment_memorize_delta", name),
            )
        )  # fmt: skip
    return scores
