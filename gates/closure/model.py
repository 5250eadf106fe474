"""A ticket as plain frozen data. `at` says where in the file each part stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.gates.documents.model import Document, Pointer
from trueup.gates.findings import Where

Comparison = Literal["==", "!=", "<", "<=", ">", ">=", "between", "abs-within", "rel-within"]
FileKind = Literal["checkpoint", "eval", "telemetry", "document"]
FILE_KINDS: tuple[FileKind, ...] = ("checkpoint", "eval", "telemetry", "document")


@dataclass(frozen=True, slots=True)
class Command:
    """One command that was run."""

    at: Pointer
    line: str
    directory: str
    env: dict[str, str]
    exit_code: int
    started_at: str
    duration_s: Any  # exact
    log: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file of the run that the ticket names with its digest."""

    at: Pointer
    kind: FileKind
    name: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Source:
    """Where a measured value stands: a path in a document, or a column of telemetry."""

    artifact: str
    path: str | None = None
    column: str | None = None
    moment: str | None = None  # `at` in the file: last, min, max, mean, step:N

    def __str__(self) -> str:
        """As it is shown to people."""
        if self.column is not None:
            return f"{self.artifact}: {self.column} at {self.moment}"
        return f"{self.artifact}: {self.path}"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One acceptance criterion. `value` and a baseline given as a number are exact decimals."""

    at: Pointer
    id: str
    text: str
    source: Source
    comparison: Comparison
    value: Any
    unit: str
    baseline: Any = None
    unit_path: str | None = None
    blocker: bool = False


@dataclass(frozen=True, slots=True)
class Deviation:
    """One departure from the ticket, and what it waives."""

    at: Pointer
    waives: Literal["criterion", "equation", "file"]
    target: str
    reason: str
    documented: str
    approved_by: str


@dataclass(frozen=True, slots=True)
class Rerun:
    """One run of the same configuration that did not pass, declared."""

    at: Pointer
    run: str
    reason: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel the runs used."""

    at: Pointer
    id: str
    contract: str
    repository: str | None
    commit: str | None


@dataclass(frozen=True, slots=True)
class Thread:
    """Which exported discussion belongs to the ticket, or why there is none."""

    export: str | None
    number: int | None
    url: str | None
    none: str | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Which evidence there is of the kernels, or why there is none."""

    kernels: str | None
    sha256: str | None
    none: str | None
    closure: str | None
    previous: str | None


@dataclass(frozen=True, slots=True)
class Ticket:
    """A whole `ticket.toml`."""

    name: str  # as reports call the file
    document: Document
    id: str
    title: str
    phase: str | None
    assignee: str
    run: str
    runs: tuple[str, ...]
    profile: str
    repository: str | None
    base: str
    commit: str
    thread: Thread
    evidence: Evidence
    board: str | None = None
    ledger: str | None = None
    kernels: tuple[Kernel, ...] = ()
    commands: tuple[Command, ...] = ()
    files: tuple[ListedFile, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    reruns: tuple[Rerun, ...] = ()
    texts: tuple[tuple[Pointer, str], ...] = field(default=())  # every text, for what hides in it

    def where(self, *pointer: str | int) -> Where:
        """The place of a value in the file."""
        return self.document.where(*pointer)
