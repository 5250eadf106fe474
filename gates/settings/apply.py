"""What settings make of a verdict: other severities, findings waived, and waivers that are not fit.

Nothing disappears: what was waived stays in the verdict beside its waiver, a severity that was
changed keeps the one it had. A finding that says that something was not read or not judged can be
neither waived nor made milder: the verdict would then pass data at which nobody has looked.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trueup.gates.catalogue.rules import Entry, closest_ids
from trueup.gates.collector import Collector
from trueup.gates.errors import SettingsError
from trueup.gates.findings import (
    Finding,
    Severity,
    SeverityChange,
    Verdict,
    WaiverStatus,
    WaiverUse,
    Where,
)
from trueup.gates.settings.match import Names, fits
from trueup.gates.settings.model import Settings, SeverityOverride, Waiver

_ORDER: tuple[Severity, ...] = ("error", "warning", "note")


def check_rules(settings: Settings, known: Iterable[Entry]) -> None:
    """Raise `SettingsError` where the settings name a rule that is not known, or not to be had."""
    by_id = {entry.id: entry for entry in known}
    for override in settings.severities:
        entry = _known(override.rule, override.place, by_id, settings)
        if not entry.waivable and _ORDER.index(override.severity) > _ORDER.index(entry.severity):
            raise _refused(settings, override.place, entry, "cannot be made milder")
    for waiver in settings.waivers:
        entry = _known(waiver.rule, f"{waiver.place}.rule", by_id, settings)
        if not entry.waivable:
            raise _refused(settings, f"{waiver.place}.rule", entry, "cannot be waived")


def _known(rule: str, place: str, by_id: dict[str, Entry], settings: Settings) -> Entry:
    if rule not in by_id:
        raise SettingsError(
            f"{place}: unknown rule", where=settings.path, got=rule,
            fix=closest_ids(rule, by_id.values()) or "`trueup explain` lists every id",
        )  # fmt: skip
    return by_id[rule]


def _refused(settings: Settings, place: str, entry: Entry, what: str) -> SettingsError:
    return SettingsError(
        f"{place}: {entry.id} {what}", where=settings.path,
        got=f"{entry.summary}, which says that something was not read or not judged",
        fix=entry.fix,
    )  # fmt: skip


@dataclass(slots=True)
class _Use:
    """A waiver while findings are held to it."""

    waiver: Waiver
    findings: list[Finding]
    beyond: list[Finding]  # fit but for the steps
    status: WaiverStatus = "unused"


def apply_settings(
    verdict: Verdict, settings: Settings, *, run: str, today: datetime.date | None = None
) -> Verdict:
    """The verdict under these settings. `run` is the path that was judged."""
    today = today or datetime.datetime.now(datetime.UTC).date()
    names = Names(run, settings.folder)
    findings, changes = _severities(verdict.findings, settings, names)
    uses = [_Use(waiver, [], []) for waiver in settings.waivers]
    kept = [finding for finding in findings if not _waive(finding, uses, names, today)]
    artifacts = {info.path for info in verdict.artifacts} | {one.artifact for one in findings}
    for use in uses:
        use.status = _status(use, artifacts, names, today)
    every = sorted([*kept, *_own(uses, settings)], key=lambda one: _ORDER.index(one.severity))
    failed = any(finding.severity == "error" for finding in every)
    return replace(
        verdict,
        verdict="fail" if failed else "pass",
        findings=tuple(every),
        waivers=tuple(_used(use) for use in uses),
        severity_changes=changes,
        settings=settings.path,
        settings_digest=settings.digest,
    )


def _severities(
    findings: Iterable[Finding], settings: Settings, names: Names
) -> tuple[list[Finding], tuple[SeverityChange, ...]]:
    """Findings with the severities of the settings: the first override that fits decides."""
    counts: dict[str, tuple[SeverityOverride, Severity, int]] = {}
    out = []
    for finding in findings:
        override = next(
            (
                one
                for one in settings.severities
                if one.rule == finding.rule and names.fit(one.artifact, finding.artifact)
            ),
            None,
        )
        if override is None or override.severity == finding.severity:
            out.append(finding)
            continue
        before = finding.severity
        out.append(replace(finding, severity=override.severity, severity_was=before))
        count = counts.get(override.place, (override, before, 0))[2]
        counts[override.place] = (override, before, count + 1)
    changes = tuple(
        SeverityChange(one.rule, before, one.severity, one.place, one.artifact, one.reason, count)
        for one, before, count in counts.values()
    )
    return out, changes


def _waive(finding: Finding, uses: list[_Use], names: Names, today: datetime.date) -> bool:
    """Whether a waiver in force covers the finding; the first one takes it."""
    for use in uses:
        waiver = use.waiver
        if (
            waiver.rule != finding.rule
            or waiver.expires < today
            or not names.fit(waiver.artifact, finding.artifact)
            or not fits(waiver.key, finding.where.key)
        ):
            continue
        if _within(finding.where, waiver.steps):
            use.findings.append(finding)
            return True
        use.beyond.append(finding)
    return False


def _within(where: Where, steps: tuple[int, int] | None) -> bool:
    """Whether all of a finding lies within the steps; one without steps lies nowhere."""
    if steps is None:
        return True
    found = where.steps or (None if where.step is None else (where.step, where.step))
    return found is not None and steps[0] <= found[0] and found[1] <= steps[1]


def _status(
    use: _Use, artifacts: Iterable[str], names: Names, today: datetime.date
) -> WaiverStatus:
    if use.waiver.expires < today:
        return "expired"
    if use.findings:
        return "used"
    if use.waiver.artifact and not any(names.fit(use.waiver.artifact, one) for one in artifacts):
        return "elsewhere"
    return "unused"


def _own(uses: Iterable[_Use], settings: Settings) -> tuple[Finding, ...]:
    """What is found about the waivers themselves."""
    collector = Collector()
    for use in uses:
        waiver, name = use.waiver, {"expired": "expired_waiver", "unused": "idle_waiver"}
        if use.status not in name:
            continue
        got = f"{waiver.rule} until {waiver.expires}: {waiver.reason}"
        if use.beyond and waiver.steps:
            places = ", ".join(str(one.where) for one in use.beyond[:3])
            got = f"{got}; beyond its steps {waiver.steps[0]}..{waiver.steps[1]}: {places}"
        collector.of_kind(
            name[use.status], settings.path, Where(line=waiver.line, key=waiver.place), got
        )
    return collector.findings()


def _used(use: _Use) -> WaiverUse:
    waiver = use.waiver
    return WaiverUse(
        rule=waiver.rule,
        reason=waiver.reason,
        expires=waiver.expires.isoformat(),
        status=use.status,
        place=waiver.place,
        artifact=waiver.artifact,
        key=waiver.key,
        steps=waiver.steps,
        approved_by=waiver.approved_by,
        ticket=waiver.ticket,
        findings=tuple(use.findings),
    )
