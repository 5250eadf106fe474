"""The run as document rules see it: its folder, its other artifacts, what its telemetry showed."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup.gates.artifacts import Found
    from trueup.gates.documents.model import Subject
    from trueup.gates.profile.rules import Profile

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """What is known of one telemetry column over the whole run (rows of steps only)."""

    count: int  # cells that hold a value
    low: Any = None  # least and largest value; None where they are no numbers
    high: Any = None
    texts: tuple[str, str] | None = None  # least and largest text, where it holds texts
    last: Any = None  # the last number
    finite: bool = True  # no NaN and no infinity among the numbers


@dataclass(frozen=True, slots=True)
class TableSummary:
    """One table of telemetry after it was judged."""

    name: str
    path: Path
    rows: int
    first_step: int | None
    last_step: int | None
    config: dict[str, Any]  # the configuration rows, later ones winning
    columns: dict[str, Column] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Digest:
    """A file's SHA-256 from one streaming pass. `steady`: size and times were the same after it."""

    sha256: str
    size: int
    steady: bool


@dataclass(slots=True)
class Run:
    """One run directory (or the folder of a single file that was named)."""

    root: Path
    name: str
    profile: Profile
    artifacts: list[Found] = field(default_factory=list)
    tables: list[TableSummary] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    memo: dict[Any, Any] = field(default_factory=dict)  # what checks worked out of the run's files
    _digests: dict[Path, Digest] = field(default_factory=dict)

    def inside(self, relative: str, base: Path | None = None) -> Path | None:
        """The regular file a document names, relative to `base` or the root; None if it is not
        there, or leads out of the run directory by `..`, an absolute path or a link."""
        if not relative or "\0" in relative or os.path.isabs(relative):
            return None
        root = Path(os.path.realpath(self.root))
        target = Path(os.path.realpath((base or self.root) / relative))
        # not Path.is_file, which raises for a name that is longer than the system allows
        return target if target.is_relative_to(root) and os.path.isfile(target) else None

    def config_rows(self) -> dict[str, Any]:
        """The configuration rows of all telemetry, later tables winning."""
        found: dict[str, Any] = {}
        for table in self.tables:
            found.update(table.config)
        return found

    def digest(self, path: Path) -> Digest:
        """SHA-256 of a file, computed once. Raises `OSError` if it cannot be read."""
        if path not in self._digests:
            self._digests[path] = digest(path)
        return self._digests[path]


def digest(path: Path) -> Digest:
    """SHA-256 in one streaming pass, watching for a file that changes meanwhile."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        before = os.fstat(file.fileno())
        while block := file.read(_BLOCK):
            hashed.update(block)
        after = os.fstat(file.fileno())
    steady = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return Digest(hashed.hexdigest(), after.st_size, steady)
