"""What a document rule is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trueup.gates.findings import Where
from trueup.gates.profile.rules import Rule

if TYPE_CHECKING:
    from trueup.gates.documents.run import Run

Pointer = tuple[str | int, ...]  # the way to a value: ("train", "lr"), ("evals", 0, "name")


@dataclass(frozen=True, slots=True)
class Document:
    """One artifact read whole: plain data, and where in the file each value stands."""

    data: Any
    form: str  # "JSON", "YAML", "TOML", "safetensors", "pickle", "digest list"
    size: int  # bytes
    places: Mapping[Pointer, tuple[int, int]] = field(default_factory=dict)  # -> line, byte

    def where(self, *pointer: str | int) -> Where:
        """The place of a value, or of the nearest thing around it whose place is known."""
        key = dotted(pointer)
        for end in range(len(pointer), -1, -1):
            if pointer[:end] in self.places:
                line, byte = self.places[pointer[:end]]
                return Where(line=line, byte=byte, key=key)
        return Where(key=key)


def dotted(pointer: Pointer) -> str | None:
    """`a.b[0]`, as it is shown to people."""
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in pointer)
    return text.lstrip(".") or None


@dataclass(frozen=True, slots=True)
class Subject:
    """One artifact that document rules look at, with the run it belongs to."""

    name: str  # as reports call it
    kind: str
    path: Path
    document: Document
    run: Run

    def flaw(self, got: str, *pointer: str | int) -> Flaw:
        """A place of this document where a rule does not hold."""
        return Flaw(self.document.where(*pointer), got)

    def unsure(self, got: str, *pointer: str | int) -> Flaw:
        """A place of this document where it cannot be told."""
        return Flaw(self.document.where(*pointer), got, "undetermined")


@dataclass(frozen=True, slots=True)
class Flaw:
    """One place where a rule does not hold, or where it cannot be told."""

    where: Where
    got: str
    status: Literal["false", "undetermined"] = "false"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a check found. `read` counts the values it looked at; 0: the rule did not apply."""

    read: int
    flaws: tuple[Flaw, ...] = ()
    reason: str = ""  # why it did not apply


CheckDocument = Callable[[Subject, Rule], Answer]


@dataclass(frozen=True, slots=True)
class DocumentCheck:
    """A check on documents by name. `params` maps parameters to types, as in telemetry checks."""

    name: str
    on: tuple[str, ...]  # kinds of artifacts
    summary: str
    run: CheckDocument
    params: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    target: Literal["document"] = "document"
    problem: Callable[[Mapping[str, Any]], str | None] | None = None  # asked as of telemetry checks
