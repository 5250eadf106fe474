"""`lint`: source files in, a `Verdict` out, as every gate gives it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from trueup.gates.catalogue.kinds import families, kinds
from trueup.gates.findings import (
    ArtifactInfo,
    Example,
    Finding,
    RuleOutcome,
    Status,
    Verdict,
    WaiverUse,
    Where,
)
from trueup.gates.source.config import Config
from trueup.gates.source.files import MAX_FILE, find_files, relative
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
from trueup.gates.source.sets import audits, documented, kernels, registered
from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Hit, Unit, kind_of
from trueup.gates.source.waivers import inline_waivers, unused, waived

Progress = Callable[[int, int], None]  # files done, files in all
_RULES: tuple[ModuleType, ...] = (
    atomics, copies, adaptive, monitors, names, markers, bodies, flags, indices,
)  # fmt: skip
_SETS: tuple[ModuleType, ...] = (kernels, documented, audits, registered)
_BATCH = 64  # files that a worker takes at once
_ALONE = 200  # fewer files than this are judged without workers


@dataclass(frozen=True, slots=True)
class Located:
    """A finding in one file, as a worker hands it back."""

    kind: str
    line: int | None
    column: int | None
    got: str
    waived: tuple[str, str] | None = None  # its reason and end, where a waiver allows it


@dataclass(frozen=True, slots=True)
class FileResult:
    """What one file gave."""

    name: str
    language: str
    size: int
    lines: int
    found: tuple[Located, ...]


def lint(
    paths: Sequence[str], config: Config, *, progress: Progress | None = None, jobs: int = 0
) -> Verdict:
    """Judge source files by the structural rules. `jobs`: processes, 0 for as many as cores.

    Raises `Unreadable` if there is nothing to judge, or settings name what is not there.
    """
    files = find_files(paths, config)
    results = _all(files, config, progress, jobs)
    found: list[Finding] = []
    waivers: list[WaiverUse] = []
    placed = [(result.name, one) for result in results for one in result.found]
    for name, one in [*placed, *_sets(config)]:
        if one.waived is None:
            found.append(_finding(name, one))
        else:
            waivers.append(_waiver(name, one))
    return _verdict(results, tuple(found), tuple(waivers), config)


def _finding(name: str, one: Located) -> Finding:
    """One finding for each place: findings in source are told one by one."""
    kind = kinds()[one.kind]
    where = Where(line=one.line, column=one.column)
    return Finding(
        kind.id, kind.severity, name, where, one.got, kind.expected, kind.fix, kind.summary, 1,
        (Example(where, one.got),),
    )  # fmt: skip


def _waiver(name: str, one: Located) -> WaiverUse:
    reason, until = one.waived or ("", "")
    kind = kinds()[one.kind]
    place = f"{name}:{one.line}"
    return WaiverUse(
        kind.id, reason, until or "never", "used", place, name, findings=(_finding(name, one),)
    )


def _all(
    files: list[Path], config: Config, progress: Progress | None, jobs: int
) -> list[FileResult]:
    report = progress or (lambda done, total: None)
    workers = min(jobs or os.cpu_count() or 1, len(files) // _BATCH + 1)
    if workers < 2 or len(files) < _ALONE:
        out = []
        for done, file in enumerate(files):
            report(done, len(files))
            out.append(judge_file(file, config))
        return out
    batches = [files[i : i + _BATCH] for i in range(0, len(files), _BATCH)]
    out = []
    with ProcessPoolExecutor(workers) as pool:
        for results in pool.map(_judge_batch, batches, [config] * len(batches)):
            out += results
            report(len(out), len(files))
    return out


def _judge_batch(files: list[Path], config: Config) -> list[FileResult]:
    return [judge_file(file, config) for file in files]


def judge_file(file: Path, config: Config) -> FileResult:
    """Judge one file by the rules on single files."""
    unit, refused = _read(file, config)
    if unit is None:
        return FileResult(str(file), "", 0, 0, (Located("source_unreadable", None, None, refused),))
    waivers, hits = inline_waivers(unit)
    hits += _broken(unit)
    for rule in _RULES:
        if unit.kind in rule.KINDS and (rule.HINT is None or rule.HINT.search(unit.raw)):
            hits += rule.check(unit)
    found = []
    for hit in sorted(set(hits), key=lambda hit: (hit.at, hit.kind)):
        line, column = unit.place(hit.at)
        allowed = waived(waivers, kinds()[hit.kind].id, line)
        said = None if allowed is None else (allowed.reason, str(allowed.until or ""))
        found.append(Located(hit.kind, line, column, hit.got, said))
    for hit in unused(waivers):
        found.append(Located(hit.kind, *unit.place(hit.at), hit.got))
    return FileResult(unit.name, unit.kind, len(unit.raw), unit.raw.count(b"\n"), tuple(found))


def _read(file: Path, config: Config) -> tuple[Unit | None, str]:
    kind = kind_of(file.name)
    try:
        size = file.stat().st_size
        if kind is None or size > MAX_FILE:
            return None, f"{size} bytes, at most {MAX_FILE} are read"
        raw = file.read_bytes()
        raw.decode("utf-8")
    except OSError as error:
        return None, str(error.strerror)
    except UnicodeDecodeError as error:
        return None, f"not UTF-8 at byte {error.start}"
    return Unit(str(file), relative(file, config), kind, raw, config), ""


def _broken(unit: Unit) -> list[Hit]:
    """Text that has no tree: nothing can be said of it."""
    if unit.kind == "python" and unit.tree is None:
        return [Hit("source_unreadable", 0, "not Python that can be parsed")]
    return []


def _sets(config: Config) -> list[tuple[str, Located]]:
    """What the rules over several files find; they read the whole folder of the settings."""
    wanted = ("kernels", "documented", "audit", "registry", "monitors")
    if not any(config.data.get(name) for name in wanted):
        return []
    units: dict[str, Unit] = {}
    for file in find_files([str(config.root)], config):
        unit, _ = _read(file, config)
        if unit is not None:
            units[unit.relative] = unit
    tree = Tree(config, units)
    found = [placed for one in _SETS for placed in one.check(tree)]
    return [_located(placed, units, config) for placed in found]


def _located(placed: Placed, units: dict[str, Unit], config: Config) -> tuple[str, Located]:
    unit = units.get(placed.file)
    name = unit.name if unit is not None else placed.file or config.name
    where: tuple[int | None, int | None] = (None, None)
    if unit is not None and placed.at is not None:
        where = unit.place(placed.at)
    return name, Located(placed.kind, *where, placed.got)


def _verdict(
    results: list[FileResult],
    found: tuple[Finding, ...],
    waivers: tuple[WaiverUse, ...],
    config: Config,
) -> Verdict:
    rules = _outcomes(results, {finding.rule for finding in found}, config)
    failed = any(finding.severity == "error" for finding in found)
    return Verdict(
        verdict="fail" if failed else "pass",
        profile="source",
        rows=sum(one.lines for one in results),
        checks=sum(rule.columns for rule in rules),
        findings=found,
        artifacts=tuple(
            ArtifactInfo(one.name, "source", one.language, one.size, one.lines, 0)
            for one in results
        ),
        bytes=sum(one.size for one in results),
        rules=rules,
        engines=_engines(),
        waivers=waivers,
    )


_ASKED_OF: dict[str, tuple[str, ...]] = {
    "atomic_used": atomics.KINDS, "monitor_writes": monitors.KINDS,
    "placeholder_marker": markers.KINDS, "waiver_unusable": markers.KINDS,
    "waiver_unused": markers.KINDS, "source_unreadable": markers.KINDS,
}  # fmt: skip
_DECLARED = {
    "flag_undeclared": "flags", "retired_name": "names", "kernel_sets_differ": "kernels",
    "documented_value_differs": "documented", "audit_undecided": "audit",
    "audit_miscounted": "audit", "buffer_unregistered": "registry",
    "mechanism_unmonitored": "monitors",
}  # fmt: skip


def _outcomes(
    results: list[FileResult], broken: set[str], config: Config
) -> tuple[RuleOutcome, ...]:
    """Of each kind of source finding, how many files it was asked of."""
    out = []
    for kind in families()["source"]:
        table = _DECLARED.get(kind.name)
        if table is None:
            asked = _ASKED_OF.get(kind.name, adaptive.KINDS)
            read = sum(result.language in asked for result in results)
            reason = "" if read else "no file of a language it reads"
        else:
            read = int(table in config.data)
            reason = "" if read else f"no [{table}] in {config.name or 'lint.toml'}"
        status: Status = "false" if kind.id in broken else "true" if read else "not_applied"
        out.append(RuleOutcome(kind.id, status, read, 0, reason, kind.summary))
    return tuple(out)


def _engines() -> dict[str, str]:
    from importlib.metadata import version

    names = ("tree-sitter", "tree-sitter-cuda", "tree-sitter-rust")
    return {name: version(name) for name in names}
