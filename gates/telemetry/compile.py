"""Compiles the rules of one batch to a pandera schema, and runs it with its switches pinned.

pandera can be switched off from outside: by environment variables, by a lazy frame (only names
and types are checked then), by a configuration context. Frames here are eager, the configuration
is pinned for each call, and before anything is judged a frame that must fail has to fail.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pandera.polars as pa
import polars as pl
from pandera.config import ValidationDepth, config_context
from pandera.errors import SchemaErrors

from trueup.gates.errors import GateError
from trueup.gates.telemetry.probe import Probe


def switches() -> dict[str, str]:
    """Variables of the environment that would change what pandera checks."""
    return {name: value for name, value in os.environ.items() if name.startswith("PANDERA_")}


def _holds(probes: list[Probe]) -> Callable[[Any], pl.LazyFrame]:
    def ok(data: Any) -> pl.LazyFrame:
        every = pl.all_horizontal([probe.ok.fill_null(False) for probe in probes])
        frame: pl.LazyFrame = data.lazyframe.select(every.alias("ok"))
        return frame

    return ok


def compile_schema(compiled: dict[str, list[Probe]]) -> pa.DataFrameSchema:
    """One schema with one check for each rule. Undetermined counts as not holding."""
    checks = [
        pa.Check(_holds(probes), name=name, ignore_na=False, n_failure_cases=1)
        for name, probes in compiled.items()
    ]
    return pa.DataFrameSchema(checks=checks, strict=False)


def failing(compiled: dict[str, list[Probe]], frame: pl.DataFrame) -> set[str]:
    """The names of the rules that do not hold on every row."""
    schema = compile_schema(compiled)
    with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
        try:
            schema.validate(frame, lazy=True)
        except SchemaErrors as errors:
            return {_name(error, compiled) for error in errors.schema_errors}
    return set()


def _name(error: Any, compiled: dict[str, list[Probe]]) -> str:
    name = getattr(error.check, "name", None)
    if name not in compiled:
        raise GateError("the table engine stopped with an error of its own", got=str(error)[:500])
    return str(name)


def prove_engine() -> None:
    """Raise unless the engine fails a frame that must fail, and passes one that must pass."""
    compiled = {"canary": [Probe("x", pl.col("x").is_finite(), ("x",))]}
    bad = failing(compiled, pl.DataFrame({"x": [1.0, float("nan"), 2.0]}))
    unknown = failing(compiled, pl.DataFrame({"x": [1.0, None]}))
    good = failing(compiled, pl.DataFrame({"x": [1.0, 2.0]}))
    if (bad, unknown, good) != ({"canary"}, {"canary"}, set()):
        raise GateError(
            "the table engine does not check what it is told to", got=f"pandera {pa.__name__}",
            expected="a NaN and a null to fail a check for finite values",
            fix="unset every PANDERA_* variable, and compare versions with `trueup doctor`",
        )  # fmt: skip
