"""Judges a run as a repository's settings say: its profile, its limits, its waivers."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from glob import iglob
from itertools import islice
from pathlib import Path

from trueup.gates.errors import SettingsError
from trueup.gates.findings import Verdict
from trueup.gates.judge import judge
from trueup.gates.profile.load import built_in
from trueup.gates.settings.model import Settings

DEFAULT_PROFILE = "nl"
MAX_RUNS = 10_000


def profile_of(settings: Settings, given: str | None) -> str:
    """The profile that was asked for, else that of the settings, else the default."""
    if given is not None or settings.profile is None:
        return given or DEFAULT_PROFILE
    if settings.profile in built_in():
        return settings.profile
    return os.path.relpath(os.path.join(settings.folder, settings.profile))


def runs_of(settings: Settings) -> list[str]:
    """The paths that the settings' patterns of runs match. Raises `SettingsError` if none does."""
    found: list[str] = []
    for pattern in settings.runs:
        matches = iglob(pattern, root_dir=settings.folder, recursive=True)
        inside = sorted(islice(matches, MAX_RUNS + 1))
        if len(inside) > MAX_RUNS:
            raise SettingsError(
                "gate.runs: matches too much", where=settings.path,
                got=f"more than {MAX_RUNS} paths for {pattern}",
                fix="name the run directories themselves, as in runs/*",
            )  # fmt: skip
        paths = [os.path.relpath(os.path.join(settings.folder, one)) for one in inside]
        found += [path for path in paths if path not in found]
    if not found:
        raise SettingsError(
            "gate.runs: matches nothing" if settings.runs else "names no runs",
            where=settings.path, got=", ".join(settings.runs),
            fix="give a run directory, or correct `runs` in the table [gate]",
        )  # fmt: skip
    return found


def prepare(settings: Settings, profile: str) -> None:
    """Raise `SettingsError` before anything is judged where a rule is not known."""
    if not settings.waivers and not settings.severities:
        return
    from trueup.gates.catalogue.rules import entries
    from trueup.gates.settings.apply import check_rules

    check_rules(settings, entries(profile))


def judge_under(
    settings: Settings,
    path: str | Path,
    profile: str | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    live: bool = False,
    today: datetime.date | None = None,
) -> Verdict:
    """Judge a run under settings. Raises what `judge` raises, and `SettingsError`."""
    chosen = profile_of(settings, profile)
    prepare(settings, chosen)
    verdict = judge(path, chosen, progress=progress, limits=settings.limits, live=live)
    if not settings.path:
        return verdict
    from trueup.gates.settings.apply import apply_settings

    return apply_settings(verdict, settings, run=str(path), today=today)
