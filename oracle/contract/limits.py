"""The sizes of a contract's axes: which are legal, and up to which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trueup.oracle.contract.model import Limit
from trueup.oracle.errors import ContractError


def read_limits(path: Path, axes: tuple[str, ...], table: Mapping[str, Any]) -> dict[str, Limit]:
    """Read the legal sizes of each axis; raise ContractError for another name or none legal."""
    limits: dict[str, Limit] = {}
    for name, entry in table.items():
        if name not in axes:
            raise ContractError(
                f"limits name `{name}`, which is no axis",
                where=f"{path}: contract.limits",
                expected="one of " + ", ".join(axes),
            )
        limit = Limit(entry.get("min", 1), entry.get("max", 1 << 31), entry.get("multiple", 1))
        if -(-limit.low // limit.multiple) * limit.multiple > limit.high:
            raise ContractError("no size is legal", where=f"{path}: contract.limits.{name}")
        limits[name] = limit
    return limits


def read_tried(
    path: Path, axes: tuple[str, ...], limits: Mapping[str, Limit], table: Mapping[str, int]
) -> dict[str, int]:
    """Read the largest sizes to try; raise ContractError where one leaves no legal size."""
    for name, largest in table.items():
        if name not in axes:
            raise ContractError(
                f"tried names `{name}`, which is no axis",
                where=f"{path}: contract.tried",
                expected="one of " + ", ".join(axes),
            )
        limit = limits.get(name, Limit())
        least = -(-limit.low // limit.multiple) * limit.multiple
        if largest < least:
            raise ContractError(
                f"no legal size of {name} would be tried",
                where=f"{path}: contract.tried.{name}",
                got=str(largest),
                expected=f"{least} or more",
            )
    return dict(table)
