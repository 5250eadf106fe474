"""The findings of the reader (RDR) and of the gate itself (GAT), loaded from `kinds.toml`."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources

from trueup.gates.findings import Severity


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of finding that no profile can switch off."""

    id: str
    name: str
    severity: Severity
    summary: str
    why: str
    expected: str
    fix: str


@functools.cache
def kinds() -> dict[str, Kind]:
    """All kinds by name."""
    text = (resources.files("trueup.gates") / "kinds.toml").read_text("utf-8")
    return {entry["name"]: Kind(**entry) for entry in tomllib.loads(text)["kind"]}
