"""Where the kernels that ship with trueup lie, and what their contracts say at a glance."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Claim:
    """What one shipped contract claims: its equation and the reading of it."""

    contract: str
    equation: str
    reading: str | None
    path: str = ""


def shipped_kernels() -> Path:
    """Give the directory of the shipped kernels and their contracts."""
    import trueup.kernels

    return Path(next(iter(trueup.kernels.__path__)))


def claims() -> list[Claim]:
    """List the shipped contracts' claims from their heads alone: a listing checks no kernel."""
    found = []
    for path in sorted(shipped_kernels().rglob("*.toml")):
        head = tomllib.loads(path.read_text("utf-8")).get("contract")
        if isinstance(head, dict) and "id" in head:
            found.append(
                Claim(head["id"], head.get("reference", ""), head.get("reading"), str(path))
            )
    return found
