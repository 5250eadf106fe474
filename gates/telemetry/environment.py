"""Variables of the environment with which the table engine would not even start."""

from __future__ import annotations

import os

from trueup.gates.errors import GateError

_DEPTHS = ("SCHEMA_ONLY", "DATA_ONLY", "SCHEMA_AND_DATA")


def refuse_environment() -> None:
    """Raise `GateError` for a value that makes an import fail, or a thread pool panic."""
    depth = os.environ.get("PANDERA_VALIDATION_DEPTH")
    if depth is not None and depth not in _DEPTHS:
        _refuse("PANDERA_VALIDATION_DEPTH", depth, f"one of {', '.join(_DEPTHS)}")
    threads = os.environ.get("POLARS_MAX_THREADS")
    if threads and not threads.strip("0"):  # what is no number is passed over
        _refuse("POLARS_MAX_THREADS", threads, "a whole number, 1 or more")


def _refuse(name: str, value: str, expected: str) -> None:
    raise GateError(
        "the table engine cannot start with this variable of the environment", where=name,
        got=repr(value)[:200], expected=expected, fix=f"unset {name}",
    )  # fmt: skip
