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

from trueup.gates.telemetry.groups import as_text
from trueup.gates.telemetry.probe import NUMERIC, View, exact, number

MAX_GROUPS = 10_000  # a file can make us remember this many
_SEP = "\x1f"
_GROUP, _PLACE = "\0group", "\0place"  # no key has such a name
_UNKNOWN = pl.Float64()


@dataclass(slots=True)
class _Group:
    """What is remembered of one group."""

    segment: int = 0
    declared: float | None = None  # by the resume that began the segment
    furthest: float | None = None
    last: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)


class Past:
    """Expressions over the rows of a batch, to be evaluated on `frame`. End with `settle`."""

    def __init__(self, view: View, names: list[str]) -> None:
        """`names` are the columns asked for; with `resume` the first of them is the step."""
        self._view, self._names = view, names
        params = view.rule.params
        self._by = [name for name in params.get("by", ()) if view.has(name)]
        self.resume: str | None = params.get("resume")
        self._config_step = params.get("config_step", -1)
        self._groups: dict[str, _Group] = view.state.setdefault("past:" + names[-1], {})
        self.resumes = self.resume is not None and view.is_number(self.resume)
        segmented = self.resumes or any(group.segment for group in self._groups.values())
        self._plain = not self._by and not segmented
        self.frame = view.frame if self._plain else self._placed(view.frame)

    def _placed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows with their group, and their group and segment, as text."""
        group = pl.concat_str(
            [pl.lit(""), *(as_text(self._view, name).fill_null("") for name in self._by)],
            separator=_SEP,
        )
        grouped = frame.with_columns(
            group.alias(_GROUP), (pl.int_range(pl.len()) * 0 + self.is_resume).alias(_PLACE)
        )
        known = {key: one.segment for key, one in self._groups.items()}
        segment = pl.col(_PLACE).cum_sum().over(_GROUP)
        segment += _mapped(_GROUP, known, pl.Int64()).fill_null(0)
        place = pl.concat_str([pl.col(_GROUP), segment.cast(pl.String)], separator=_SEP)
        return grouped.with_columns(place.alias(_PLACE))

    def value(self, name: str) -> pl.Expr:
        """The column, with NaN as unknown; in rows that hold all columns asked for, steps alone."""
        value = self._alone(name)
        others = [self._alone(other).is_null() for other in self._names if other != name]
        if self.resume is not None:
            others.append(self.is_config)
        return pl.when(pl.any_horizontal(others)).then(None).otherwise(value) if others else value

    def _alone(self, name: str) -> pl.Expr:
        kind = self._view.schema.get(name)
        if kind is None:
            return pl.lit(None, dtype=_UNKNOWN)
        return exact(self._view, name) if kind in NUMERIC else pl.col(name)

    def before(self, name: str) -> pl.Expr:
        """The last value before this row; null in the first row of a segment."""
        filled = self.value(name).forward_fill()
        if self._plain:
            last = self._only().last.get(name)
            shifted = filled.shift(1)
            return shifted if last is None else shifted.fill_null(self._literal(last, name))
        return filled.shift(1).over(_PLACE).fill_null(self._carried("last", name))

    def first(self, name: str) -> pl.Expr:
        """The first value of the segment, this row's included."""
        here = self.value(name).drop_nulls().first()
        if self._plain:
            known = self._only().first.get(name)
            return here if known is None else self._literal(known, name)
        return pl.coalesce(self._carried("first", name), here.over(_PLACE))

    @property
    def declared(self) -> pl.Expr:
        """The step that the segment's resume declares; null before any."""
        if self._plain or self.resume is None:
            return pl.lit(None, dtype=_UNKNOWN)
        own = pl.lit(None, dtype=_UNKNOWN)
        if self.resumes:
            own = pl.when(self.is_resume).then(number(self.resume)).otherwise(None)
        known = {key: one.declared for key, one in self._groups.items()}
        return own.forward_fill().over(_GROUP).fill_null(_mapped(_GROUP, known, _UNKNOWN))

    @property
    def furthest(self) -> pl.Expr:
        """The largest value of the first column in earlier rows of the group."""
        here = self.value(self._names[0]).cast(_UNKNOWN).cum_max().forward_fill().shift(1)
        if self._plain:
            known = self._only().furthest
            return here if known is None else pl.max_horizontal(here, pl.lit(known, dtype=_UNKNOWN))
        carried = {key: one.furthest for key, one in self._groups.items()}
        return pl.max_horizontal(here.over(_GROUP), _mapped(_GROUP, carried, _UNKNOWN))

    @property
    def is_resume(self) -> pl.Expr:
        """Whether the row declares a resume."""
        if not self.resumes or self.resume is None:
            return pl.lit(False)
        return pl.col(self.resume).is_not_null() & self.is_config

    @property
    def is_config(self) -> pl.Expr:
        """Whether the row is one of configuration, which only a profile with `resume` says."""
        if self.resume is None or not self._counts():
            return pl.lit(False)
        is_config: pl.Expr = number(self._names[0]) == self._config_step
        return is_config.fill_null(False)

    def settle(self, ok: pl.Expr) -> pl.Expr:
        """A condition of `frame` as one of the batch, and remember what the next batch needs."""
        return self.settle_all(ok)[0]

    def settle_all(self, *conditions: pl.Expr) -> list[pl.Expr]:
        """Several conditions of `frame`, as `settle` does."""
        if self._plain:
            self._advance_plain()
            return list(conditions)
        told = self.frame.select(ok.alias(str(i)) for i, ok in enumerate(conditions))
        self.advance()
        if len(self._groups) > MAX_GROUPS:
            self._view.state["reason"] = f"more than {MAX_GROUPS} groups"
            return [pl.lit(None, dtype=pl.Boolean) for _ in conditions]
        return [settled(answer) for answer in told.get_columns()]

    def advance(self) -> None:
        """Remember what the next batch needs. `settle` does."""
        if self._plain:
            self._advance_plain()
            return
        every = range(len(self._names))
        furthest = pl.col("v0").cast(_UNKNOWN).max() if self._counts() else pl.lit(None)
        ends = (
            self.frame.select(
                _GROUP, _PLACE, self.declared.alias("declared"),
                *(self.value(name).alias(f"v{i}") for i, name in enumerate(self._names)),
            )
            .group_by(_GROUP, _PLACE, maintain_order=True)
            .agg(
                pl.col("declared").last(), furthest.alias("furthest"),
                *(pl.col(f"v{i}").drop_nulls().first().alias(f"f{i}") for i in every),
                *(pl.col(f"v{i}").drop_nulls().last().alias(f"l{i}") for i in every),
            )
        )  # fmt: skip
        for row in ends.iter_rows(named=True):
            self._take(self._groups.setdefault(row[_GROUP], _Group()), row)

    def _take(self, group: _Group, row: dict[str, Any]) -> None:
        segment = int(row[_PLACE].rsplit(_SEP, 1)[1])
        if segment != group.segment:
            group.segment, group.last, group.first = segment, {}, {}
        group.declared = row["declared"]
        if row["furthest"] is not None:
            far = row["furthest"]
            group.furthest = far if group.furthest is None else max(far, group.furthest)
        for i, name in enumerate(self._names):
            if row[f"f{i}"] is not None:
                group.first.setdefault(name, row[f"f{i}"])
                group.last[name] = row[f"l{i}"]

    def _advance_plain(self) -> None:
        group = self._only()
        for index, name in enumerate(self._names):
            if not self._view.has(name):
                continue
            known = self.frame.select(self.value(name)).to_series().drop_nulls()
            if not len(known):
                continue
            group.first.setdefault(name, known[0])
            group.last[name] = known[-1]
            high = known.max() if index == 0 and self._counts() else None
            if isinstance(high, int | float):
                group.furthest = high if group.furthest is None else max(high, group.furthest)

    def _only(self) -> _Group:
        return self._groups.setdefault("", _Group())

    def _counts(self) -> bool:
        return self._view.is_number(self._names[0])

    def _carried(self, which: str, name: str) -> pl.Expr:
        known = {
            f"{key}{_SEP}{group.segment}": getattr(group, which).get(name)
            for key, group in self._groups.items()
        }
        return _mapped(_PLACE, known, self._view.schema.get(name, _UNKNOWN))

    def _literal(self, value: Any, name: str) -> pl.Expr:
        return pl.lit(value, dtype=self._view.schema.get(name, _UNKNOWN))


def settled(told: pl.Series) -> pl.Expr:
    """Answers that were worked out for the rows of a batch, as a condition of that batch."""
    if bool(told.all(ignore_nulls=False)):
        return pl.lit(True)
    row = pl.int_range(pl.len())
    bad = (~told).fill_null(False).arg_true().cast(pl.Int64)
    unknown = told.is_null().arg_true().cast(pl.Int64)
    return pl.when(row.is_in(unknown.implode())).then(None).otherwise(~row.is_in(bad.implode()))


def _mapped(column: str, known: dict[str, Any], kind: pl.DataType) -> pl.Expr:
    """What is remembered for the text of a column; null where nothing is."""
    told = {key: value for key, value in known.items() if value is not None}
    if not told:
        return pl.lit(None, dtype=kind)
    values = pl.Series(list(told.values()), dtype=kind, strict=False)
    keys = pl.Series(list(told), dtype=pl.String)
    return pl.col(column).replace_strict(keys, values, default=None, return_dtype=kind)
