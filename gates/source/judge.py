"""`lint`: source files in, a `Verdict` out, as every gate gives it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from trueup.gates.errors import Unreadable
from trueup.gates.findings import Verdict
from trueup.gates.source.config import Config
from trueup.gates.source.files import find_files
from trueup.gates.source.grammar import TooSlow
from trueup.gates.source.read import not_understood, read_unit
from trueup.gates.source.rules import (
    adaptive,
    atomics,
    bodies,
    copies,
    flags,
    indices,
    markers,
    monitors,
    names,
)
from trueup.gates.source.sets.judge import set_hits
from trueup.gates.source.unit import Hit, Unit
from trueup.gates.source.verdict import FileResult, Located, Waiver, verdict_of
from trueup.gates.source.waivers import inline_waivers

Progress = Callable[[int, int], None]  # files done, files in all
_RULES: tuple[ModuleType, ...] = (
    atomics, copies, adaptive, monitors, names, markers, bodies, flags, indices,
)  # fmt: skip
_BATCH = 64  # files that a worker takes at once
_ALONE = 200  # fewer files than this are judged without workers


@dataclass(frozen=True, slots=True)
class _Batch:
    files: tuple[Path, ...]
    config: Config

    def judged(self) -> list[FileResult]:
        return [judge_file(file, self.config) for file in self.files]


def lint(
    paths: Sequence[str],
    config: Config,
    *,
    progress: Progress | None = None,
    jobs: int = 0,
    excluded_ok: bool = False,
) -> Verdict:
    """Judge source files by the structural rules. `jobs`: processes, 0 for as many as cores.

    Raises `Unreadable` if there is nothing to judge, or settings name what is not there; with
    `excluded_ok` it is no error that the settings exclude every file.
    """
    found = find_files(paths, config, excluded_ok=excluded_ok)
    results = _all(found.files, config, progress, jobs)
    closed = tuple(
        FileResult(folder, folder, "", 0, 0, (Located("source_unreadable", None, None, why),))
        for folder, why in found.closed
    )
    return verdict_of((*results, *closed), set_hits(config), config)


def _all(
    files: tuple[Path, ...], config: Config, progress: Progress | None, jobs: int
) -> list[FileResult]:
    report = progress or (lambda done, total: None)
    workers = min(jobs or os.cpu_count() or 1, len(files) // _BATCH + 1)
    out: list[FileResult] = []
    if workers < 2 or len(files) < _ALONE:
        for done, file in enumerate(files):
            report(done, len(files))
            out.append(judge_file(file, config))
        return out
    batches = [_Batch(files[i : i + _BATCH], config) for i in range(0, len(files), _BATCH)]
    context = multiprocessing.get_context("forkserver")  # a thread may be drawing the progress
    try:
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            for results in pool.map(_Batch.judged, batches):
                out += results
                report(len(out), len(files))
    except BrokenProcessPool:
        raise Unreadable(
            "a process that judged files was ended", where=str(files[len(out)]),
            expected="memory for two files at least", fix="judge with --jobs 1, or fewer files",
        ) from None  # fmt: skip
    return out


def judge_file(file: Path, config: Config) -> FileResult:
    """Judge one file by the rules on single files."""
    unit, refused = read_unit(file, config)
    try:
        if unit is not None:
            return _judged(unit)
    except TooSlow:
        refused = "its tree takes too long to be searched"
    found = (Located("source_unreadable", None, None, refused),)
    return FileResult(str(file), str(file), "", 0, 0, found)


def _judged(unit: Unit) -> FileResult:
    waivers, hits = inline_waivers(unit)
    hits += not_understood(unit)
    for rule in _RULES:
        if unit.kind in rule.KINDS and (rule.HINT is None or rule.HINT.search(unit.raw)):
            hits += rule.check(unit)
    return FileResult(
        unit.name, unit.relative, unit.kind, len(unit.raw), unit.lines,
        tuple(_located(unit, hit) for hit in sorted(set(hits), key=_order)),
        tuple(Waiver(one, *unit.place(one.at)) for one in waivers),
    )  # fmt: skip


def _order(hit: Hit) -> tuple[int, str, str]:
    return hit.at, hit.kind, hit.got


def _located(unit: Unit, hit: Hit) -> Located:
    return Located(hit.kind, *unit.place(hit.at), hit.got)
