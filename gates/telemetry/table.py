"""Judges one table of telemetry, batch by batch, by all rules of a profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from trueup.gates.collector import Collector
from trueup.gates.documents.run import Column, TableSummary
from trueup.gates.findings import Example, RuleOutcome, Status, Where
from trueup.gates.profile.rules import Profile, Rule
from trueup.gates.read.rows.engine import Batch
from trueup.gates.telemetry.compile import Judge
from trueup.gates.telemetry.describe import failures
from trueup.gates.telemetry.probe import INTEGERS, Probe, View
from trueup.gates.telemetry.registry import CHECKS
from trueup.gates.telemetry.scopes import Rows, by_scope
from trueup.gates.telemetry.summary import joined


@dataclass(slots=True)
class _Progress:
    """What one rule has read so far."""

    columns: set[str] = field(default_factory=set)
    rows: int = 0
    broken: bool = False
    unknown: bool = False
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Known:
    """What was worked out for one set of columns, and holds while they stay as they are."""

    schema: dict[str, pl.DataType]
    null_keys: frozenset[str]
    names: dict[str, list[str]] = field(default_factory=dict)  # rule -> the columns it reads
    probes: dict[str, list[Probe]] = field(
        default_factory=dict
    )  # of checks that did not look at the rows


class TableJudge:
    """Call `batch` for each batch in order, then `finish` once."""

    def __init__(self, profile: Profile, artifact: str, collector: Collector) -> None:
        """Nothing is read yet."""
        self._profile, self._artifact, self._collector = profile, artifact, collector
        self._config: dict[str, Any] = {}
        self._rules = profile.rules_on("telemetry")
        self._progress = {rule.id: _Progress() for rule in self._rules}
        self._columns: dict[str, Column] = {}
        self._first: int | None = None
        self._last: int | None = None
        self._rows = 0
        self._known = _Known({}, frozenset())
        self._engine = Judge()

    def batch(self, batch: Batch, null_keys: set[str]) -> None:
        """Judge a batch. `null_keys` are the keys that were written as null so far."""
        if not batch.frame.height:
            return
        schema = dict(batch.frame.schema)
        if schema != self._known.schema or null_keys != self._known.null_keys:
            self._known = _Known(schema, frozenset(null_keys))
        groups = by_scope(batch, self._profile)
        for rows in groups:
            if "config" in rows.scopes:
                self._learn(rows.frame, null_keys)
            if "step" in rows.scopes:
                self._summarise(rows)
        for rows in groups:
            self._judge(rows, batch)

    def _learn(self, config: pl.DataFrame, null_keys: set[str]) -> None:
        """Configuration rows say which rules apply. A null is told from a key that is not there."""
        before = dict(self._config)
        for name in null_keys:
            self._config.setdefault(name, None)
        for row in config.head(1_000).iter_rows(named=True):
            self._config.update({name: v for name, v in row.items() if v is not None})
        if self._config != before:
            self._known.probes.clear()

    def _summarise(self, rows: Rows) -> None:
        """Remember what the documents of the run are held against."""
        steps = rows.frame
        self._rows += steps.height
        for name, column in rows.columns.items():
            self._columns[name] = joined(self._columns.get(name), column)
        known = steps.get_column(self._profile.step) if self._profile.step in steps else None
        if known is not None and known.dtype in INTEGERS and known.count():
            values = known.drop_nulls()
            self._first = values[0] if self._first is None else self._first
            self._last = values[-1]

    def summary(self, path: Path) -> TableSummary:
        """What the table showed, for the rules that join it with other artifacts."""
        return TableSummary(
            self._artifact, path, self._rows, self._first, self._last,
            dict(self._config), dict(self._columns),
        )  # fmt: skip

    def _judge(self, rows: Rows, batch: Batch) -> None:
        compiled: dict[str, list[Probe]] = {}
        asked = [rule for scope in rows.scopes for rule in self._rules if rule.rows == scope]
        for rule in asked:
            if rule.when is None or rule.when.holds(self._config):
                probes = self._probes(rule, rows)
                if probes:
                    compiled[rule.id] = probes
        if not compiled:
            return
        broken = self._engine.failing(compiled, rows.frame, rows.columns)
        for rule in asked:
            if rule.id in broken:
                self._describe(rule, compiled[rule.id], rows, batch)

    def _probes(self, rule: Rule, rows: Rows) -> list[Probe]:
        """The rule's conditions on these rows. What holds no value here was not read."""
        progress = self._progress[rule.id]
        probes = self._built(rule, rows, progress)
        progress.rows += rows.frame.height
        progress.columns |= {
            probe.key
            for probe in probes
            if probe.key not in progress.columns
            and (not probe.shown or probe.shown[0] in rows.filled)
        }
        return probes

    def _built(self, rule: Rule, rows: Rows, progress: _Progress) -> list[Probe]:
        check, known = CHECKS[rule.check], self._known
        if rule.id in known.probes:
            return known.probes[rule.id]
        if rule.id not in known.names:
            known.names[rule.id] = rule.names(
                [*known.schema, *sorted(known.null_keys - known.schema.keys())]
            )
        names = known.names[rule.id]
        view = View(rows, rule, names, self._config, progress.state, known.schema, known.null_keys)
        probes = check.build(view) if check.build is not None and names else []
        if check.observe is not None:
            check.observe(view)
            progress.columns |= rows.filled.intersection(names)
        elif not view.looked:
            known.probes[rule.id] = probes
        return probes

    def _describe(self, rule: Rule, probes: list[Probe], rows: Rows, batch: Batch) -> None:
        """Count the rows that fail at each key, and show the first of them."""
        progress = self._progress[rule.id]
        for failed in failures(probes, rows):
            progress.unknown |= failed.unknown
            progress.broken |= not failed.unknown
            self._collector.of_rule(
                rule, self._artifact, failed.examples(batch, self._profile.step),
                failed.rows.height, failed.steps(self._profile.step),
            )  # fmt: skip

    def finish(self) -> list[RuleOutcome]:
        """Answer what only the whole run can, and say of each rule what became of it."""
        self._engine.finish()
        return [self._finish(rule) for rule in self._rules]

    def _finish(self, rule: Rule) -> RuleOutcome:
        progress, check = self._progress[rule.id], CHECKS[rule.check]
        if rule.when is not None and not rule.when.holds(self._config):
            return RuleOutcome(rule.id, "not_applied", 0, 0, f"applies when {rule.when}")
        results = check.finish(rule, progress.state) if check.finish is not None else []
        for result in (result for result in results if not result.ok):
            progress.broken |= result.ok is False
            progress.unknown |= result.ok is None
            got = result.got if result.ok is False else f"undetermined: {result.got}"
            example = Example(Where(key=result.key, step=result.step), got)
            self._collector.of_rule(rule, self._artifact, [example])
        columns, rows = len(progress.columns), progress.rows
        if check.observe is not None and columns and not results:
            reason = progress.state.get("reason", f"fewer than {rule.params.get('min_rows')} rows")
            return RuleOutcome(rule.id, "not_applied", columns, rows, reason)
        if not columns and not results and not (progress.broken or progress.unknown):
            return self._vacuous(rule, rows)
        status: Status = (
            "false" if progress.broken else "undetermined" if progress.unknown else "true"
        )
        return RuleOutcome(rule.id, status, columns, rows)

    def _vacuous(self, rule: Rule, rows: int) -> RuleOutcome:
        target = rule.pattern or ", ".join(rule.keys)
        reason = self._progress[rule.id].state.get("reason", f"no column matches {target}")
        if rule.absent == "skip":
            return RuleOutcome(rule.id, "not_applied", 0, rows, reason)
        self._collector.of_kind(
            "rule_reads_nothing", self._artifact, Where(key=rule.id), f"{rule.id}: {reason}"
        )
        return RuleOutcome(rule.id, "undetermined", 0, rows, reason)
