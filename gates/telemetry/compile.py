"""Asks the rules of a batch in one query, and lets pandera judge the answers, its switches pinned.

pandera can be switched off from outside: by environment variables, by a lazy frame (only names
and types are checked then), by a configuration context. The frame of answers is eager, the
configuration is pinned for each call, what pandera says must agree with the answers themselves,
and before anything is judged a frame that must fail has to fail.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.config import ValidationDepth, config_context
from pandera.errors import SchemaErrors

from trueup.gates.errors import GateError
from trueup.gates.telemetry.probe import Probe

_FIX = "unset every PANDERA_* variable, and compare versions with `trueup doctor`"


def switches() -> dict[str, str]:
    """Variables of the environment that would change what pandera checks."""
    return {name: value for name, value in os.environ.items() if name.startswith("PANDERA_")}


def answers(compiled: dict[str, list[Probe]], frame: pl.DataFrame) -> pl.DataFrame:
    """One row for each rule: whether all its probes hold on every row. Null: undetermined."""
    probes = [probe for some in compiled.values() for probe in some]
    asked = [probe.ok.all(ignore_nulls=False).alias(str(i)) for i, probe in enumerate(probes)]
    try:
        told = frame.select(asked).row(0)
    except pl.exceptions.PolarsError as error:
        raise GateError("the table engine cannot ask a rule", got=str(error)[:500]) from None
    holds: list[bool | None] = []
    at = 0
    for some in compiled.values():
        part = told[at : at + len(some)]
        holds.append(False if False in part else None if None in part else True)
        at += len(some)
    return pl.DataFrame(
        {"rule": list(compiled), "holds": pl.Series("holds", holds, dtype=pl.Boolean)}
    )


@functools.cache
def _schema() -> pa.DataFrameSchema:
    """Every answer is true. Undetermined counts as not holding."""
    holds = pa.Check(
        lambda data: data.lazyframe.select(pl.col("holds").fill_null(False)),
        name="holds", ignore_na=False,
    )  # fmt: skip
    columns = {"rule": pa.Column(pl.String), "holds": pa.Column(pl.Boolean, nullable=True)}
    return pa.DataFrameSchema(columns, checks=holds, strict=True)


def failing(compiled: dict[str, list[Probe]], frame: pl.DataFrame) -> set[str]:
    """The names of the rules that do not hold on every row."""
    told = answers(compiled, frame)
    broken = _judged(told)
    if broken != set(told.filter(~pl.col("holds").fill_null(False)).get_column("rule")):
        raise GateError(
            "the table engine does not judge what it was told",
            got=f"{len(broken)} rules failing", expected=str(told.get_column("holds").to_list()),
            fix=_FIX,
        )  # fmt: skip
    return broken


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
