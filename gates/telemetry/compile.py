"""Asks the rules of a batch in one query, and lets pandera judge the answers, its switches pinned.

pandera can be switched off from outside: by environment variables, by a lazy frame (only names
and types are checked then), by a configuration context. The frame of answers is eager, the
configuration is pinned for each call, what pandera says must agree with the answers themselves,
and before anything is judged a frame that must fail has to fail.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.config import ValidationDepth, config_context
from pandera.errors import SchemaErrors

from trueup.gates.documents.run import Column
from trueup.gates.errors import GateError
from trueup.gates.telemetry.probe import Probe

_WAITING = 256  # batches; judging a few answers costs as much as judging thousands
_FIX = "unset every PANDERA_* variable, and compare versions with `trueup doctor`"


def switches() -> dict[str, str]:
    """Variables of the environment that would change what pandera checks."""
    return {name: value for name, value in os.environ.items() if name.startswith("PANDERA_")}


def answers(
    compiled: dict[str, list[Probe]],
    frame: pl.DataFrame,
    columns: Mapping[str, Column] | None = None,
) -> pl.DataFrame:
    """One row for each rule: whether all its probes hold on every row. Null: undetermined.

    What the least and largest values of the columns tell already is not asked again.
    """
    probes = [probe for some in compiled.values() for probe in some]
    told: list[bool | None] = [_is_known(probe, frame.height, columns) or None for probe in probes]
    open_ones = [i for i, known in enumerate(told) if not known]
    asked = [probes[i].ok.all(ignore_nulls=False).alias(str(i)) for i in open_ones]
    try:
        found = frame.select(asked).row(0) if asked else ()
    except pl.exceptions.PolarsError as error:
        raise GateError("the table engine cannot ask a rule", got=str(error)[:500]) from None
    for i, answer in zip(open_ones, found, strict=True):
        told[i] = answer
    holds: list[bool | None] = []
    at = 0
    for some in compiled.values():
        part = told[at : at + len(some)]
        holds.append(False if False in part else None if None in part else True)
        at += len(some)
    return pl.DataFrame(
        {"rule": list(compiled), "holds": pl.Series("holds", holds, dtype=pl.Boolean)}
    )


def _is_known(probe: Probe, height: int, columns: Mapping[str, Column] | None) -> bool:
    return probe.quick is not None and columns is not None and probe.quick(columns, height)


@functools.cache
def _schema() -> pa.DataFrameSchema:
    """Every answer is true. Undetermined counts as not holding."""
    holds = pa.Check(
        lambda data: data.lazyframe.select(pl.col("holds").fill_null(False)),
        name="holds", ignore_na=False,
    )  # fmt: skip
    columns = {"rule": pa.Column(pl.String), "holds": pa.Column(pl.Boolean, nullable=True)}
    return pa.DataFrameSchema(columns, checks=holds, strict=True)


def failing(
    compiled: dict[str, list[Probe]],
    frame: pl.DataFrame,
    columns: Mapping[str, Column] | None = None,
) -> set[str]:
    """The names of the rules that do not hold on every row."""
    return judged(answers(compiled, frame, columns))


def judged(told: pl.DataFrame) -> set[str]:
    """The rules that do not hold by these answers, as pandera finds."""
    broken = _judged(told)
    if broken != set(told.filter(~pl.col("holds").fill_null(False)).get_column("rule")):
        raise GateError(
            "the table engine does not judge what it was told",
            got=f"{len(broken)} rules failing", expected=str(told.get_column("holds").to_list()),
            fix=_FIX,
        )  # fmt: skip
    return broken


class Judge:
    """Judges answers at once where one of them is not true, and all others together."""

    def __init__(self) -> None:
        """Nothing waits yet."""
        self._waiting: list[pl.DataFrame] = []

    def failing(
        self, compiled: dict[str, list[Probe]], frame: pl.DataFrame, columns: Mapping[str, Column]
    ) -> set[str]:
        """The names of the rules that do not hold on every row of this batch."""
        told = answers(compiled, frame, columns)
        if not told.get_column("holds").all(ignore_nulls=False):
            return judged(told)
        self._waiting.append(told)
        if len(self._waiting) >= _WAITING:
            self.finish()
        return set()

    def finish(self) -> None:
        """Have what waits judged. It holds, or the engine contradicts itself."""
        if self._waiting:
            judged(pl.concat(self._waiting))
            self._waiting.clear()


def _judged(told: pl.DataFrame) -> set[str]:
    """The rules that pandera finds not to hold."""
    with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
        try:
            _schema().validate(told, lazy=True)
        except SchemaErrors as errors:
            for error in errors.schema_errors:
                _of_ours(error)
            places = errors.failure_cases.get_column("index").to_list()
            return set(told.get_column("rule").gather(places))
    return set()


def _of_ours(error: Any) -> None:
    if getattr(error.check, "name", None) != "holds":
        raise GateError("the table engine stopped with an error of its own", got=str(error)[:500])


def prove_engine() -> None:
    """Raise unless the engine fails a frame that must fail, and passes one that must pass."""
    compiled = {
        "other": [Probe("x", pl.col("x").is_null() | pl.col("x").is_not_null(), ("x",))],
        "canary": [Probe("x", pl.col("x").is_finite(), ("x",))],
    }
    bad = failing(compiled, pl.DataFrame({"x": [1.0, float("nan"), 2.0]}))
    unknown = failing(compiled, pl.DataFrame({"x": [1.0, None]}))
    good = failing(compiled, pl.DataFrame({"x": [1.0, 2.0]}))
    if (bad, unknown, good) != ({"canary"}, {"canary"}, set()):
        raise GateError(
            "the table engine does not check what it is told to", got=f"pandera {pa.__name__}",
            expected="a NaN and a null to fail a check for finite values", fix=_FIX,
        )  # fmt: skip
