"""`judge`: a run directory or one artifact in, a `Verdict` out."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.gates.artifacts import Found, find_artifacts, wanted
from trueup.gates.documents.run import Run
from trueup.gates.errors import Unreadable
from trueup.gates.findings import ArtifactInfo, RuleOutcome, Verdict, Where
from trueup.gates.profile.load import load_profile
from trueup.gates.profile.rules import Profile
from trueup.gates.read.sources.names import is_url

if TYPE_CHECKING:
    from trueup.gates.collector import Collector
    from trueup.gates.read.limits import Limits

Progress = Callable[[int, int], None]  # bytes done, bytes in all


@dataclass(frozen=True, slots=True)
class _How:
    """How tables are read."""

    limits: Limits
    live: bool


@dataclass(slots=True)
class _Parts:
    """What has been judged so far."""

    infos: list[ArtifactInfo] = field(default_factory=list)
    outcomes: list[list[RuleOutcome]] = field(default_factory=list)  # of each table
    refused: list[tuple[Found, Unreadable]] = field(default_factory=list)


def judge(
    path: str | os.PathLike[str],
    profile: str = "nl",
    *,
    progress: Progress | None = None,
    limits: Limits | None = None,
    live: bool = False,
) -> Verdict:
    """Judge a run directory or one artifact by a built-in profile or a user's TOML.

    `path` may be a URL that fsspec knows: its artifacts are fetched, judged, and removed again.
    `live`: the run may still be writing, so that an unfinished last line is a warning.
    Raises `Unreadable` if there is nothing that could be judged (the border is described in
    `trueup.gates.errors`), and `ProfileError` if the profile itself is not fit.
    """
    from trueup.gates.collector import Collector
    from trueup.gates.read.limits import Limits

    loaded = load_profile(profile)
    collector = Collector()
    how = _How(limits or Limits(), live)
    name = os.fspath(path)
    if not is_url(name):
        return _judge(Path(name), name, loaded, collector, progress, how)
    from trueup.gates.read.sources.names import shown
    from trueup.gates.read.sources.remote import fetched

    folder = shown(name).split("?", 1)[0].rstrip("/")
    with fetched(
        name, lambda relative: wanted(relative, folder, loaded, collector) is not None,
        how.limits, collector.of_fault,
    ) as copy:  # fmt: skip
        return _judge(copy.path, copy.name, loaded, collector, progress, how)


def _judge(
    where: Path,
    name: str,
    profile: Profile,
    collector: Collector,
    progress: Progress | None,
    how: _How,
) -> Verdict:
    """Judge what lies at a local path, under the name that reports give it."""
    found = find_artifacts(where, name, profile, collector)
    whole = os.path.isdir(where)
    run = Run(where if whole else where.parent, name, profile, found)
    judged = _Parts()
    _tables(run, judged, collector, progress, how)
    outcomes = _documents(run, judged, collector, how.limits)
    _refusals(judged, collector)
    if whole:
        _missing(run, collector)
    return _verdict(run, judged, outcomes, collector)


def _tables(
    run: Run,
    judged: _Parts,
    collector: Collector,
    progress: Progress | None,
    how: _How,
) -> None:
    """Judge each table of telemetry, and keep in the run what it showed."""
    tables = [artifact for artifact in run.artifacts if artifact.kind == "telemetry"]
    if not tables:
        return
    from trueup.gates.telemetry.environment import refuse_environment

    refuse_environment()
    from trueup.gates.telemetry import compile as engine

    engine.prove_engine()
    for name, value in engine.switches().items():
        collector.of_kind("engine_switch", name, Where(key=name), f"{name}={value}")
    total = sum(artifact.size for artifact in tables)
    done = 0
    for artifact in tables:

        def report(now: int, _: int, base: int = done) -> None:
            if progress is not None:
                progress(base + now, total)

        try:
            _table(artifact, run, judged, collector, report, how)
        except Unreadable as error:
            judged.refused.append((artifact, error))
        done += artifact.size


def _table(
    artifact: Found,
    run: Run,
    judged: _Parts,
    collector: Collector,
    progress: Progress,
    how: _How,
) -> None:
    from trueup.gates.read.tables import open_table
    from trueup.gates.telemetry.table import TableJudge

    name, profile = artifact.name, run.profile
    source = open_table(
        artifact.path,
        name=name,
        report=lambda fault: collector.of_fault(name, fault),
        nullable=profile.nullable,
        step_key=profile.step,
        nesting=profile.nesting,
        timestamps=profile.timestamps,
        limits=how.limits,
        progress=progress,
        live=how.live,
    )
    table = TableJudge(profile, name, collector)
    for batch in source.batches():
        table.batch(batch, source.reader.null_keys)
    if not source.rows:
        got = f"0 rows accepted in {source.size} bytes"
        collector.of_kind("zero_rows", name, Where(), got)
    judged.outcomes.append(table.finish())
    run.tables.append(table.summary(artifact.path))
    judged.infos.append(
        ArtifactInfo(
            path=name,
            kind=artifact.kind,
            form=source.form,
            bytes=source.size,
            rows=source.rows,
            columns=source.reader.columns,
            late_keys=source.reader.late,
        )
    )


def _documents(run: Run, judged: _Parts, collector: Collector, limits: Limits) -> list[RuleOutcome]:
    """Judge everything that is no table, after the tables: it is held against what they showed."""
    found = [artifact for artifact in run.artifacts if artifact.kind != "telemetry"]
    if not found:
        return [
            RuleOutcome(
                rule.id, "not_applied", 0, 0, f"no artifact of the kind {rule.on}", rule.summary
            )
            for rule in run.profile.rules
            if rule.on != "telemetry"
        ]
    from trueup.gates.documents.judge import judge_rules, read_all

    infos, refused = read_all(found, run, collector, limits)
    judged.infos += infos
    judged.refused += refused
    return judge_rules(run, collector)


def _refusals(judged: _Parts, collector: Collector) -> None:
    """An artifact that cannot be read is a finding if another one can."""
    if judged.refused and not judged.infos:
        raise judged.refused[0][1]
    for artifact, refusal in judged.refused:
        got = f"{refusal.what}, {refusal.got}" if refusal.got else refusal.what
        collector.of_kind("unreadable_artifact", artifact.name, Where(), got)


def _missing(run: Run, collector: Collector) -> None:
    """A kind of artifact that the profile requires of a run directory."""
    there = {artifact.kind for artifact in run.artifacts}
    for kind in run.profile.artifacts:
        if kind.required and kind.kind not in there:
            collector.of_kind(
                "artifact_missing", run.name, Where(key=kind.kind),
                f"no file matches {', '.join(kind.patterns)}",
            )  # fmt: skip


def _verdict(
    run: Run, judged: _Parts, documents: list[RuleOutcome], collector: Collector
) -> Verdict:
    outcomes = [*_merged(judged.outcomes, run.profile), *documents]
    checks = sum(outcome.columns for outcome in outcomes if outcome.status != "not_applied")
    rows = sum(info.rows for info in judged.infos)
    if not checks:
        names = ", ".join(info.path for info in judged.infos)
        collector.of_kind("zero_checks", names, Where(), f"0 checks ran on {rows} rows")
    findings = collector.findings()
    failed = any(finding.severity == "error" for finding in findings)
    return Verdict(
        verdict="fail" if failed else "pass",
        profile=run.profile.id,
        rows=rows,
        checks=checks,
        findings=findings,
        artifacts=tuple(judged.infos),
        bytes=sum(info.bytes for info in judged.infos),
        columns=sum(info.columns for info in judged.infos),
        rules=tuple(outcomes),
        engines=_engines(),
        profile_digest=f"sha256:{run.profile.digest}",
    )


def _merged(each: list[list[RuleOutcome]], profile: Profile) -> list[RuleOutcome]:
    """One outcome for each rule on telemetry over all tables: the worst of them."""
    order = ("false", "undetermined", "true", "not_applied")
    out = []
    rules = profile.rules_on("telemetry")
    if not each:
        reason = "no artifact of the kind telemetry"
        return [RuleOutcome(rule.id, "not_applied", 0, 0, reason, rule.summary) for rule in rules]
    for rule, *same in zip(rules, *each, strict=True):
        worst = min(same, key=lambda outcome: order.index(outcome.status))
        columns, rows = sum(one.columns for one in same), sum(one.rows for one in same)
        out.append(replace(worst, columns=columns, rows=rows, summary=rule.summary))
    return out


def _engines() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("polars", "pandera", "msgspec", "jsonschema")}
