"""Telemetry read once more for plots: a few curves, thinned as they are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.render.paths import is_url

if TYPE_CHECKING:
    from trueup.gates.findings import ArtifactInfo, Finding, Verdict
    from trueup.gates.profile.rules import Profile

_CURVES = 8  # on one page; findings come first
_BUCKETS = 1500  # about two for each pixel of a plot
_STEP = "step"
_ALWAYS = ("loss",)


@dataclass
class Series:
    """One metric over steps, kept as the least and greatest value of each bucket of rows."""

    key: str
    marks: tuple[int, ...]
    buckets: list[tuple[int, float, float]] = field(default_factory=list)
    _rows: int = 1
    _open: list[tuple[int, float]] = field(default_factory=list)

    def add(self, step: int, value: float) -> None:
        """Take one row; memory stays bounded however many there are."""
        self._open.append((step, value))
        if len(self._open) >= self._rows:
            self.close()
        if len(self.buckets) > 2 * _BUCKETS:
            pairs = zip(self.buckets[::2], self.buckets[1::2], strict=False)
            self.buckets = [(a[0], min(a[1], b[1]), max(a[2], b[2])) for a, b in pairs]
            self._rows *= 2

    def close(self) -> None:
        """Make a bucket of the rows taken since the last one."""
        if self._open:
            values = [value for _, value in self._open]
            self.buckets.append((self._open[0][0], min(values), max(values)))
            self._open = []


def read_series(verdict: Verdict, profile: Profile | None = None) -> list[tuple[str, list[Series]]]:
    """Give the curves of every table: the loss, and what findings are about.

    A table that cannot be read again has none: the verdict stands without its plots.
    """
    from trueup.gates.errors import GateError

    found = []
    for artifact in verdict.artifacts:
        if artifact.document or is_url(artifact.path):
            continue
        wanted = _wanted(verdict.findings, artifact)
        try:
            series = _read(artifact, wanted, profile)
        except (GateError, OSError):
            continue
        if series:
            found.append((artifact.path, series))
    return found


def _wanted(findings: Iterable[Finding], artifact: ArtifactInfo) -> dict[str, tuple[int, ...]]:
    """Map each key to be drawn to the steps its findings name."""
    steps: dict[str, list[int]] = {}
    for finding in findings:
        if finding.artifact != artifact.path or finding.where.key is None:
            continue
        places = [finding.where, *(example.where for example in finding.examples)]
        known = [place.step for place in places if place.step is not None]
        steps.setdefault(finding.where.key, []).extend(known)
    for key in _ALWAYS:
        steps.setdefault(key, [])
    kept = [key for key in steps if key != _STEP][: _CURVES - 1]
    return {key: tuple(sorted(set(steps[key]))) for key in dict.fromkeys([*kept, *_ALWAYS])}


def _read(
    artifact: ArtifactInfo, wanted: dict[str, tuple[int, ...]], profile: Profile | None
) -> list[Series]:
    from trueup.gates.read.tables import open_table

    step = _STEP if profile is None else profile.step
    series = [Series(key, marks) for key, marks in wanted.items() if key != step]
    table = open_table(
        Path(artifact.path),
        name=artifact.path,
        report=lambda fault: None,
        step_key=step,
        nesting=None if profile is None else profile.nesting,
    )
    for batch in table.batches():
        frame = batch.frame
        if step not in frame.columns or not frame.schema[step].is_numeric():
            continue
        steps = frame[step].to_list()
        for one in series:
            if one.key in frame.columns and frame.schema[one.key].is_numeric():
                _take(one, steps, frame[one.key].to_list())
    for one in series:
        one.close()
    return [one for one in series if len(one.buckets) > 1]


def _take(series: Series, steps: Sequence[float | None], values: Sequence[float | None]) -> None:
    """Take the rows that have a step of training and a number; the others have no place."""
    for step, value in zip(steps, values, strict=True):
        if step is not None and step >= 0 and value is not None and math.isfinite(value):
            series.add(int(step), float(value))
