"""`judge`: a run directory or one telemetry file in, a `Verdict` out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.gates.artifacts import Found, find_artifacts
from trueup.gates.errors import Unreadable
from trueup.gates.findings import ArtifactInfo, RuleOutcome, Verdict, Where
from trueup.gates.telemetry.profile import load_profile
from trueup.gates.telemetry.rules import Profile

if TYPE_CHECKING:
    from trueup.gates.collector import Collector
    from trueup.gates.read.limits import Limits

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class _Judged:
    """What one artifact gave."""

    info: ArtifactInfo
    outcomes: list[RuleOutcome]


def judge(
    path: str | os.PathLike[str],
    profile: str = "nl",
    *,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> Verdict:
    """Judge a run directory or one telemetry file by a built-in profile or a user's TOML.

    Raises `Unreadable` if there is nothing that could be judged (the border is described in
    `trueup.gates.errors`), and `ProfileError` if the profile itself is not fit.
    """
    from trueup.gates.collector import Collector
    from trueup.gates.telemetry import compile as engine

    loaded = load_profile(profile)
    collector = Collector()
    found = find_artifacts(Path(path), str(path), loaded, collector)
    engine.prove_engine()
    for name, value in engine.switches().items():
        collector.of_kind("engine_switch", name, Where(key=name), f"{name}={value}")
    judged = _all(found, loaded, collector, progress, limits)
    return _verdict(judged, loaded, collector)


def _all(
    found: list[Found],
    profile: Profile,
    collector: Collector,
    progress: Progress | None,
    limits: Limits | None,
) -> list[_Judged]:
    """Judge each artifact; one that cannot be read is a finding if another one can."""
    total = sum(artifact.size for artifact in found)
    judged: list[_Judged] = []
    refused: list[tuple[Found, Unreadable]] = []
    done = 0
    for artifact in found:
        base = done

        def report(now: int, _: int, base: int = base) -> None:
            if progress is not None:
                progress(base + now, total)

        try:
            judged.append(_table(artifact, profile, collector, report, limits))
        except Unreadable as error:
            refused.append((artifact, error))
        done += artifact.size
    if refused and not judged:
        raise refused[0][1]
    for artifact, refusal in refused:
        got = f"{refusal.what}, {refusal.got}" if refusal.got else refusal.what
        collector.of_kind("unreadable_artifact", artifact.name, Where(), got)
    return judged


def _table(
    artifact: Found,
    profile: Profile,
    collector: Collector,
    progress: Progress,
    limits: Limits | None,
) -> _Judged:
    from trueup.gates.read.reader import Reader
    from trueup.gates.telemetry.table import TableJudge

    name = artifact.name
    reader = Reader(
        artifact.path,
        name=name,
        report=lambda fault: collector.of_fault(name, fault),
        nullable=profile.nullable,
        step_key=profile.step,
        limits=limits,
        progress=progress,
    )
    table = TableJudge(profile, name, collector)
    for batch in reader.batches():
        table.batch(batch, reader.engine.table.null_keys)
    if not reader.rows:
        got = f"0 rows accepted in {reader.opened.size} bytes"
        collector.of_kind("zero_rows", name, Where(), got)
    outcomes = table.finish()
    info = ArtifactInfo(
        path=name,
        kind=artifact.kind,
        form="JSON list" if reader.opened.form == "list" else "JSON lines",
        bytes=reader.opened.size,
        rows=reader.rows,
        columns=len(reader.engine.table.columns),
        late_keys=reader.engine.table.late,
    )
    return _Judged(info, outcomes)


def _verdict(judged: list[_Judged], profile: Profile, collector: Collector) -> Verdict:
    outcomes = _merged([one.outcomes for one in judged], profile)
    checks = sum(outcome.columns for outcome in outcomes if outcome.status != "not_applied")
    rows = sum(one.info.rows for one in judged)
    if not checks:
        names = ", ".join(one.info.path for one in judged)
        collector.of_kind("zero_checks", names, Where(), f"0 checks ran on {rows} rows")
    findings = collector.findings()
    failed = any(finding.severity == "error" for finding in findings)
    return Verdict(
        verdict="fail" if failed else "pass",
        profile=profile.id,
        rows=rows,
        checks=checks,
        findings=findings,
        artifacts=tuple(one.info for one in judged),
        bytes=sum(one.info.bytes for one in judged),
        columns=sum(one.info.columns for one in judged),
        rules=tuple(outcomes),
        engines=_engines(),
        profile_digest=f"sha256:{profile.digest}",
    )


def _merged(each: list[list[RuleOutcome]], profile: Profile) -> list[RuleOutcome]:
    """One outcome for each rule over all artifacts: the worst of them."""
    order = ("false", "undetermined", "true", "not_applied")
    out = []
    for rule, *same in zip(profile.rules, *each, strict=True):
        worst = min(same, key=lambda outcome: order.index(outcome.status))
        columns, rows = sum(one.columns for one in same), sum(one.rows for one in same)
        out.append(replace(worst, columns=columns, rows=rows, summary=rule.summary))
    return out


def _engines() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("polars", "pandera", "msgspec")}
