"""The findings that no profile can switch off, loaded from the TOML files beside this module."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import PurePath

from trueup.gates.findings import Severity


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of finding. `passes` and `fails` are short examples: text of an artifact.

    `waivable` is false where the finding says that something was not read or not judged: a waiver
    would then pass data at which nobody has looked. `limits` are those the examples are read with.
    """

    id: str
    name: str
    severity: Severity
    summary: str
    why: str
    expected: str
    fix: str
    passes: str = ""
    fails: str = ""
    waivable: bool = True
    limits: dict[str, int] = field(default_factory=dict)


@functools.cache
def families() -> dict[str, tuple[Kind, ...]]:
    """All kinds, by the file that lists them: `reader`, `gate`, `document`, ..."""
    folder = resources.files("trueup.gates.catalogue")
    found: dict[str, tuple[Kind, ...]] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = PurePath(entry.name)
        if name.suffix == ".toml":
            entries = tomllib.loads(entry.read_text("utf-8")).get("kind", [])
            found[name.stem] = tuple(Kind(**one) for one in entries)
    return found


@functools.cache
def kinds() -> dict[str, Kind]:
    """All kinds by name. Names and ids are unique over all families."""
    return {kind.name: kind for family in families().values() for kind in family}
