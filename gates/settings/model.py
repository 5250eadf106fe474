"""What a `trueup.toml` says, as plain frozen data."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from trueup.gates.findings import Severity
from trueup.gates.read.limits import Limits

FILE = "trueup.toml"


@dataclass(frozen=True, slots=True)
class Waiver:
    """Findings of one rule that do not count, until a date and for a reason."""

    rule: str
    reason: str
    expires: datetime.date  # the last day it holds
    place: str  # `waiver[0]`
    artifact: str = ""  # a glob; empty: every artifact
    key: str = ""  # a glob; empty: every key, and findings without one
    steps: tuple[int, int] | None = None  # first and last
    approved_by: str = ""
    ticket: str = ""
    line: int | None = None  # where it begins in the file


@dataclass(frozen=True, slots=True)
class SeverityOverride:
    """Another severity for a rule, everywhere or for some artifacts."""

    rule: str
    severity: Severity
    place: str  # `severity.TEL012`
    artifact: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """One settings file. Without a file: the defaults, which change nothing."""

    path: str = ""  # as the caller knows it; empty where there is no file
    folder: str = ""  # absolute; what paths and globs in the file are relative to
    digest: str = ""
    profile: str | None = None
    runs: tuple[str, ...] = ()
    limits: Limits | None = None
    severities: tuple[SeverityOverride, ...] = ()
    waivers: tuple[Waiver, ...] = ()
