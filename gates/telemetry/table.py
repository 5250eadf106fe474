"""Judges one table of telemetry, batch by batch, by all rules of a profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from trueup.gates.collector import EXAMPLES, Collector
from trueup.gates.documents.run import Column, TableSummary
from trueup.gates.findings import Example, RuleOutcome, Status, Where, show
from trueup.gates.profile.rules import Profile, Rule, Scope
from trueup.gates.read.rows.engine import Batch
from trueup.gates.telemetry.compile import failing
from trueup.gates.telemetry.probe import INTEGERS, Probe, View
from trueup.gates.telemetry.registry import CHECKS
from trueup.gates.telemetry.summary import column_summaries, joined

_INDEX = "\0index"


@dataclass(slots=True)
class _Progress:
    """What one rule has read so far."""

    columns: set[str] = field(default_factory=set)
    rows: int = 0
    broken: bool = False
    unknown: bool = False
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one scope, and where each of them stands in the batch."""

    frame: pl.DataFrame
    index: pl.Series


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
        self._null_keys: frozenset[str] = frozenset()

    def batch(self, batch: Batch, null_keys: set[str]) -> None:
        """Judge a batch. `null_keys` are the keys that were written as null so far."""
        if not batch.frame.height:
            return
        self._null_keys = frozenset(null_keys)
        scopes = self._scopes(batch.frame)
        self._learn(scopes["config"].frame, null_keys)
        self._summarise(scopes["step"].frame)
        for scope, rows in scopes.items():
            if rows.frame.height:
                self._judge(scope, rows, batch)

    def _scopes(self, frame: pl.DataFrame) -> dict[Scope, _Rows]:
        indexed = frame.with_columns(pl.int_range(pl.len()).alias(_INDEX))
        step, config_step = self._profile.step, self._profile.config_step
        numeric = step in frame.columns and frame.schema[step].is_numeric()
        is_config = (pl.col(step) == config_step).fill_null(False) if numeric else pl.lit(False)
        parts: dict[Scope, pl.DataFrame] = {
            "config": indexed.filter(is_config),
            "step": indexed.filter(~is_config),
            "all": indexed,
        }
        return {
            scope: _Rows(part.drop(_INDEX), part.get_column(_INDEX))
            for scope, part in parts.items()
        }

    def _learn(self, config: pl.DataFrame, null_keys: set[str]) -> None:
        """Configuration rows say which rules apply. A null is told from a key that is not there."""
        if not config.height:
            return
        for name in null_keys:
            self._config.setdefault(name, None)
        for row in config.head(1_000).iter_rows(named=True):
            self._config.update({name: v for name, v in row.items() if v is not None})

    def _summarise(self, steps: pl.DataFrame) -> None:
        """Remember what the documents of the run are held against."""
        self._rows += steps.height
        for name, column in column_summaries(steps).items():
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

    def _judge(self, scope: Scope, rows: _Rows, batch: Batch) -> None:
        compiled: dict[str, list[Probe]] = {}
        schema = dict(rows.frame.schema)
        for rule in self._rules:
            if rule.rows == scope and (rule.when is None or rule.when.holds(self._config)):
                probes = self._probes(rule, rows.frame, schema)
                if probes:
                    compiled[rule.id] = probes
        if not compiled:
            return
        broken = failing(compiled, rows.frame)
        for rule in self._rules:
            if rule.id in broken:
                self._describe(rule, compiled[rule.id], rows, batch)

    def _probes(
        self, rule: Rule, frame: pl.DataFrame, schema: dict[str, pl.DataType]
    ) -> list[Probe]:
        check, progress = CHECKS[rule.check], self._progress[rule.id]
        names = rule.names([*schema, *sorted(self._null_keys - schema.keys())])
        view = View(frame, rule, names, self._config, progress.state, schema, self._null_keys)
        probes = check.build(view) if check.build is not None and names else []
        if check.observe is not None:
            check.observe(view)
            progress.columns |= {name for name in names if view.has(name)}
        progress.columns |= {probe.key for probe in probes}
        progress.rows += frame.height
        return probes

    def _describe(self, rule: Rule, probes: list[Probe], rows: _Rows, batch: Batch) -> None:
        """Count the rows that fail at each key, and show the first of them."""
        progress = self._progress[rule.id]
        frame = rows.frame.with_columns(rows.index.alias(_INDEX))
        bad = [~probe.ok.fill_null(False) for probe in probes]
        counts = frame.select(
            one.sum().alias(str(i)) if probe.shown else (pl.len() * one.first()).alias(str(i))
            for i, (one, probe) in enumerate(zip(bad, probes, strict=True))
        ).row(0)
        for probe, one, count in zip(probes, bad, counts, strict=True):
            if not count:
                continue
            failed = frame.with_columns(probe.ok.is_null().alias("\0null")).filter(one)
            unknown = bool(failed.get_column("\0null").all())
            progress.unknown |= unknown
            progress.broken |= not unknown
            examples = [
                self._example(probe, row, batch)
                for row in failed.head(EXAMPLES).iter_rows(named=True)
            ]
            self._collector.of_rule(
                rule, self._artifact, examples, failed.height, self._steps(failed)
            )

    def _example(self, probe: Probe, row: dict[str, Any], batch: Batch) -> Example:
        at, step = row[_INDEX], row.get(self._profile.step)
        where = Where(
            line=int(batch.lines[at]) or None,
            row=int(batch.rows[at]),
            step=step if isinstance(step, int) and not isinstance(step, bool) else None,
            key=probe.key,
        )
        got = _got(probe, row)
        return Example(where, f"undetermined: {got}" if row["\0null"] else got)

    def _steps(self, failed: pl.DataFrame) -> tuple[int, int] | None:
        name = self._profile.step
        if name not in failed.columns or failed.schema[name] not in INTEGERS:
            return None
        low, high = failed.get_column(name).min(), failed.get_column(name).max()
        return (low, high) if isinstance(low, int) and isinstance(high, int) else None

    def finish(self) -> list[RuleOutcome]:
        """Answer what only the whole run can, and say of each rule what became of it."""
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
        if not columns and not results:
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


def _got(probe: Probe, row: dict[str, Any]) -> str:
    if not probe.shown:
        return "absent"
    if len(probe.shown) == 1:
        value = row[probe.shown[0]]
        return "absent" if value is None else show(value)
    common = probe.key[: probe.key.rfind(".") + 1]
    return ", ".join(f"{name.removeprefix(common)} {show(row[name])}" for name in probe.shown)
