"""What stood in earlier rows: of the same group, and since the run was last resumed.

A *group* is what the columns of `by` have in common (a run, a fold). A *segment* begins with a
configuration row in which the key `resume` holds a value: the last step that the restored state
had done. (In a row of steps the key begins nothing: every row could excuse itself.) All values are
carried from batch to batch, so a verdict does not depend on how a file is cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from trueup.gates.telemetry.probe import NUMERIC, View, exact, number

MAX_GROUPS = 10_000  # a file can make us remember this many
_SEP = "\x1f"


@dataclass(slots=True)
class _Group:
    """What is remembered of one group."""

    segment: int = 0
    declared: float | None = None  # by the resume that began the segment
    furthest: float | None = None
    last: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)


class Past:
    """Expressions over the rows of a batch. Call `advance` once, after they were made."""

    def __init__(self, view: View, names: list[str]) -> None:
        """`names` are the columns asked for; with `resume` the first of them is the step."""
        self._view, self._names = view, names
        params = view.rule.params
        self._by = [name for name in params.get("by", ()) if view.has(name)]
        self.resume: str | None = params.get("resume")
        self._config_step = params.get("config_step", -1)
        self._groups: dict[str, _Group] = view.state.setdefault("past:" + names[0], {})
        self.resumes = self.resume is not None and view.is_number(self.resume)
        segmented = self.resumes or any(group.segment for group in self._groups.values())
        self._plain = not self._by and not segmented

    @property
    def crowded(self) -> bool:
        """More groups than are remembered: nothing can be said of the rows."""
        return len(self._groups) > MAX_GROUPS

    def value(self, name: str) -> pl.Expr:
        """The column; without configuration rows and with NaN as unknown."""
        kind = self._view.schema.get(name)
        if kind is None:
            return pl.lit(None, dtype=pl.Float64)
        if kind not in NUMERIC:
            return pl.col(name)
        value = exact(self._view, name)
        if self.resume is None or name != self._names[0]:
            return value
        return pl.when(self.is_config).then(None).otherwise(value)

    def before(self, name: str) -> pl.Expr:
        """The last value before this row; null in the first row of a segment."""
        filled = self.value(name).forward_fill()
        if self._plain:
            last = self._only().last.get(name)
            shifted = filled.shift(1)
            return shifted if last is None else shifted.fill_null(self._literal(last, name))
        within = self.value(name).forward_fill().over(self._place)
        shifted = within.shift(1).over(self._place)
        return shifted.fill_null(self._carried("last", name))

    def first(self, name: str) -> pl.Expr:
        """The first value of the segment, this row's included."""
        if self._plain:
            known = self._only().first.get(name)
            here = self.value(name).drop_nulls().first()
            return here if known is None else self._literal(known, name)
        here = self.value(name).drop_nulls().first().over(self._place)
        return pl.coalesce(self._carried("first", name), here)

    @property
    def declared(self) -> pl.Expr:
        """The step that the segment's resume declares; null before any."""
        if self.resume is None or self._plain:
            return pl.lit(None, dtype=pl.Float64)
        own = pl.lit(None, dtype=pl.Float64)
        if self.resumes:
            own = pl.when(self.is_resume).then(number(self.resume)).otherwise(None)
        known = {key: g.declared for key, g in self._groups.items() if g.declared is not None}
        filled: pl.Expr = own.forward_fill().over(self._key)
        return filled.fill_null(_mapped(self._key, known))

    @property
    def furthest(self) -> pl.Expr:
        """The largest value of the first column in earlier rows of the group."""
        known = {key: g.furthest for key, g in self._groups.items() if g.furthest is not None}
        here = self.value(self._names[0]).cast(pl.Float64).cum_max().forward_fill()
        here = here.over(self._key).shift(1).over(self._key)
        carried = _mapped(self._key, known)
        return pl.max_horizontal(here, carried)

    @property
    def is_resume(self) -> pl.Expr:
        """Whether the row declares a resume."""
        if not self.resumes or self.resume is None:
            return pl.lit(False)
        return pl.col(self.resume).is_not_null() & self.is_config

    @property
    def is_config(self) -> pl.Expr:
        """Whether the row is one of configuration, which only a profile with `resume` says."""
        if self.resume is None:
            return pl.lit(False)
        is_config: pl.Expr = number(self._names[0]) == self._config_step
        return is_config.fill_null(False)

    def advance(self) -> None:
        """Remember what the next batch needs."""
        view = self._view
        if self._plain:
            self._advance_plain()
            return
        rows = view.frame.select(
            self._key.alias("key"), self._segment.alias("segment"),
            self.declared.alias("declared"),
            *(self.value(name).alias(f"v{i}") for i, name in enumerate(self._names)),
        )  # fmt: skip
        every = range(len(self._names))
        ends = rows.group_by("key", "segment", maintain_order=True).agg(
            pl.col("declared").last(),
            (pl.col("v0").max() if self._is_count() else pl.lit(None)).alias("furthest"),
            *(pl.col(f"v{i}").drop_nulls().first().alias(f"f{i}") for i in every),
            *(pl.col(f"v{i}").drop_nulls().last().alias(f"l{i}") for i in every),
        )
        for row in ends.iter_rows(named=True):
            group = self._groups.setdefault(row["key"], _Group())
            self._take(group, row)

    def _take(self, group: _Group, row: dict[str, Any]) -> None:
        if row["segment"] != group.segment:
            group.segment, group.last, group.first = row["segment"], {}, {}
        group.declared = row["declared"]
        if row["furthest"] is not None:
            group.furthest = max(row["furthest"], group.furthest or row["furthest"])
        for i, name in enumerate(self._names):
            if row[f"f{i}"] is not None:
                group.first.setdefault(name, row[f"f{i}"])
                group.last[name] = row[f"l{i}"]

    def _advance_plain(self) -> None:
        group = self._only()
        for name in self._names:
            if not self._view.has(name):
                continue
            known = self._view.frame.select(self.value(name)).to_series().drop_nulls()
            if len(known):
                group.first.setdefault(name, known[0])
                group.last[name] = known[-1]
                if name == self._names[0] and self._is_count():
                    high = known.max()
                    assert isinstance(high, int | float)
                    group.furthest = high if group.furthest is None else max(high, group.furthest)

    def _only(self) -> _Group:
        return self._groups.setdefault("", _Group())

    def _is_count(self) -> bool:
        return self._view.is_number(self._names[0])

    @property
    def _key(self) -> pl.Expr:
        """The group as text."""
        if not self._by:
            return pl.lit("", dtype=pl.String)
        parts = [pl.col(name).cast(pl.String).fill_null("") for name in self._by]
        return pl.concat_str(parts, separator=_SEP)

    @property
    def _segment(self) -> pl.Expr:
        known = {key: group.segment for key, group in self._groups.items()}
        none = pl.int_range(pl.len(), dtype=pl.Int64) * 0
        begun = self.is_resume.cast(pl.Int64).cum_sum().over(self._key) if self.resumes else none
        return none + begun + _mapped(self._key, known, pl.Int64).fill_null(0)

    @property
    def _place(self) -> pl.Expr:
        """Group and segment as text."""
        return pl.concat_str([self._key, self._segment.cast(pl.String)], separator=_SEP)

    def _carried(self, which: str, name: str) -> pl.Expr:
        known = {
            f"{key}{_SEP}{group.segment}": getattr(group, which)[name]
            for key, group in self._groups.items()
            if name in getattr(group, which)
        }
        return _mapped(self._place, known, self._view.schema.get(name, pl.Float64()))

    def _literal(self, value: Any, name: str) -> pl.Expr:
        return pl.lit(value, dtype=self._view.schema.get(name, pl.Float64()))


def _mapped(
    key: pl.Expr, known: dict[str, Any], kind: pl.DataType | type[pl.DataType] = pl.Float64
) -> pl.Expr:
    if not known:
        return pl.lit(None, dtype=kind)
    values = pl.Series(list(known.values()), dtype=kind, strict=False)
    keys = pl.Series(list(known), dtype=pl.String)
    return key.replace_strict(keys, values, default=None, return_dtype=kind)
