"""One rule held to a few rows, whole and cut into batches: both must say the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trueup.gates.collector import Collector
from trueup.gates.findings import Finding
from trueup.gates.profile.load import parse_profile
from trueup.gates.profile.rules import Profile
from trueup.gates.read.limits import Limits
from trueup.gates.read.rows.reader import Reader
from trueup.gates.telemetry.table import TableJudge

Row = dict[str, Any]

HEAD = """
[profile]
id = "own"
summary = "one rule"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[table]
nested = "flatten"
nullable = ['^.*$']
[[rule]]
id = "OWN001"
severity = "error"
summary = "s"
why = "w"
expected = "e"
fix = "f"
absent = "skip"
"""


@dataclass(frozen=True)
class Told:
    """What became of the rule."""

    status: str
    reason: str
    findings: tuple[Finding, ...]

    @property
    def got(self) -> list[str]:
        """What each finding shows."""
        return [finding.got for finding in self.findings]

    @property
    def keys(self) -> list[str | None]:
        """Where each finding is."""
        return [finding.where.key for finding in self.findings]


def _told(profile: Profile, path: Path, limits: Limits | None) -> Told:
    collector = Collector()
    reader = Reader(
        path, report=lambda fault: collector.of_fault(path.name, fault), limits=limits,
        nullable=profile.nullable, step_key=profile.step, nesting=profile.nesting,
    )  # fmt: skip
    table = TableJudge(profile, path.name, collector)
    for batch in reader.batches():
        table.batch(batch, reader.engine.table.null_keys)
    (outcome,) = table.finish()
    found = (one for one in collector.findings() if one.rule == "OWN001")
    ordered = sorted(found, key=lambda one: str(one.where.key))  # in no order of batches
    return Told(outcome.status, outcome.reason, tuple(ordered))


Tell = Callable[..., Told]


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Judges rows by one rule, whose check and parameters are given as TOML."""

    def tell(rule: str, rows: list[Row], *, cut: bool = True) -> Told:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        profile = parse_profile(f"{HEAD}{rule}\n".encode(), "own.toml")
        whole = _told(profile, path, None)
        for size in (30, 200) if cut else ():
            parts = _told(profile, path, Limits(first_piece=size, piece=size))
            assert (parts.status, parts.keys, parts.got) == (whole.status, whole.keys, whole.got)
            assert [one.count for one in parts.findings] == [one.count for one in whole.findings]
        return whole

    return tell
