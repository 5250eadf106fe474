"""Reads the results of an evaluation document: one list or object for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueup.gates.documents.model import Pointer
from trueup.gates.evals.numbers import Cell, cell
from trueup.gates.evals.results import Better, Eval, Perplexity, Score, Stages

_GROUPS = {"zeroshot": "tasks", "niah": "cells", "passkey": "lengths"}
_CLAIMS = ("average", "forgetting", "backward_transfer", "forward_transfer")


def is_document(kind: str | None, results: Any) -> bool:
    """Whether results of a kind are in this form, and not the raw output of a script."""
    if not isinstance(results, dict):
        return False
    marks = {**_GROUPS, "continual": "matrix", "pg19": "loss", "metrics": "metrics"}
    return kind in marks and marks[kind or ""] in results


def read_results(kind: str, results: Any, at: Pointer) -> Eval:
    """The results of one kind; parts that are not as they should be are left out."""
    readers: dict[str, Callable[[dict[str, Any], Pointer], Eval]] = {
        "continual": _continual,
        "pg19": _pg19,
        "metrics": _metrics,
    }
    if kind in _GROUPS:
        return _groups(kind, results, at)
    return readers[kind](results, at)


def _groups(kind: str, results: dict[str, Any], at: Pointer) -> Eval:
    """Lists of accuracies: tasks, cells, lengths."""
    key = _GROUPS[kind]
    found = results.get(key)
    entries = list(enumerate(found)) if isinstance(found, list) else []
    scores = tuple(
        _score(_name(kind, entry), entry, (*at, key, index), "accuracy", "higher")
        for index, entry in entries
        if isinstance(entry, dict)
    )
    total, mean = results.get("total"), results.get("mean")
    totals = {name: cell(total, *at, "total", name) for name in ("n", "correct", "accuracy")}
    weighting = mean.get("weighting") if isinstance(mean, dict) else None
    return Eval(
        kind, "document", at, scores,
        totals={name: one for name, one in totals.items() if one is not None},
        mean=cell(mean, *at, "mean", "accuracy"),
        weighting=weighting if isinstance(weighting, str) else "task",
    )  # fmt: skip


def _name(kind: str, entry: dict[str, Any]) -> str:
    if kind == "zeroshot":
        return str(entry.get("name"))
    if kind == "niah":
        return f"context {entry.get('context')} depth {entry.get('depth')}"
    return f"length {entry.get('length')}"


def _score(
    name: str, entry: dict[str, Any], at: Pointer, metric: str, better: Better, value: str = ""
) -> Score:
    def of(key: str) -> Cell | None:
        return cell(entry, *at, key)

    return Score(
        name, at, metric, better, of(value or metric), of("n"), of("correct"), of("stderr"),
        of("baseline"), of("memorized"), of("delta"),
    )  # fmt: skip


def _pg19(results: dict[str, Any], at: Pointer) -> Eval:
    parts = {key: results.get(key) for key in ("baseline", "memorized", "delta")}
    scores = []
    for metric in ("loss", "ppl"):
        cells = {key: cell(part, *at, key, metric) for key, part in parts.items()}
        scores.append(Score(metric, at, metric, "lower", cell(results, *at, metric), **cells))
    sides = [
        _perplexity(part, (*at, key)) for key, part in parts.items()
        if key != "delta" and isinstance(part, dict)
    ]  # fmt: skip
    return Eval(
        "pg19", "document", at, tuple(scores), perplexities=(_perplexity(results, at), *sides)
    )


def _perplexity(part: dict[str, Any], at: Pointer) -> Perplexity:
    names = ("loss", "ppl", "nll", "tokens", "bytes", "bits_per_token", "bits_per_byte")
    return Perplexity(at, **{name: cell(part, *at, name) for name in names})


def _metrics(results: dict[str, Any], at: Pointer) -> Eval:
    found = results.get("metrics")
    scores = []
    for name, entry in (found if isinstance(found, dict) else {}).items():
        if isinstance(entry, dict):
            better: Better = "lower" if entry.get("better") == "lower" else "higher"
            metric = "accuracy" if entry.get("unit") == "accuracy" else name
            scores.append(_score(name, entry, (*at, "metrics", name), metric, better, "value"))
    return Eval("metrics", "document", at, tuple(scores))


def _continual(results: dict[str, Any], at: Pointer) -> Eval:
    names = results.get("tasks")
    tasks = tuple(str(name) for name in names) if isinstance(names, list) else ()
    metric = "loss" if results.get("metric") == "loss" else "accuracy"
    better: Better = "lower" if metric == "loss" else "higher"
    matrix = _matrix(results, "matrix", at)
    claims = {name: cell(results, *at, name) for name in _CLAIMS}
    initial = results.get("initial")
    width = len(initial) if isinstance(initial, list) else 0
    stages = Stages(
        at, tasks, better, matrix,
        tuple(cell(initial, *at, "initial", j) for j in range(width)),
        {name: claim for name, claim in claims.items() if claim is not None},
    )  # fmt: skip
    return Eval(
        "continual", "document", at, _stage_scores(results, at, stages, metric), stages=stages
    )


def _matrix(results: dict[str, Any], key: str, at: Pointer) -> tuple[tuple[Cell | None, ...], ...]:
    rows = results.get(key)
    return tuple(
        tuple(cell(row, *at, key, i, j) for j in range(len(row))) if isinstance(row, list) else ()
        for i, row in enumerate(rows if isinstance(rows, list) else [])
    )


def _stage_scores(
    results: dict[str, Any], at: Pointer, stages: Stages, metric: str
) -> tuple[Score, ...]:
    """Every measured cell of the matrix, with what stands at its place in the other matrices."""
    baseline, delta = _matrix(results, "baseline", at), _matrix(results, "delta", at)
    counts = results.get("n")

    def of(matrix: tuple[tuple[Cell | None, ...], ...], i: int, j: int) -> Cell | None:
        return matrix[i][j] if i < len(matrix) and j < len(matrix[i]) else None

    scores = []
    for i, row in enumerate(stages.matrix):
        for j, value in enumerate(row):
            if value is None or j >= len(stages.tasks):
                continue
            other = of(baseline, i, j)
            scores.append(
                Score(
                    f"{stages.tasks[j]} after stage {i}", (*at, "matrix", i, j), metric,
                    stages.better, value, cell(counts, *at, "n", j), baseline=other,
                    memorized=value if other is not None else None, delta=of(delta, i, j),
                )
            )  # fmt: skip
    return tuple(scores)
