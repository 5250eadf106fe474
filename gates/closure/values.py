"""Finds the value a criterion speaks of, with its unit and its place; or says why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trueup.gates.closure.columns import Cell, read_columns
from trueup.gates.closure.exact import Exact, form_of, read_exact
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Criterion, ListedFile, Source
from trueup.gates.closure.pointer import follow, parse_pointer
from trueup.gates.documents.model import Pointer
from trueup.gates.errors import GateError, Unreadable
from trueup.gates.findings import Where
from trueup.gates.profile.rules import Profile
from trueup.gates.read.limits import Fault, Limits


@dataclass(frozen=True, slots=True)
class Measured:
    """A value that was found. `unit` is what the artifact itself says it is, if it does."""

    value: Any
    where: Where
    shown: str  # the file, as reports call it
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """No value, and why."""

    reason: str
    where: Where
    shown: str


@dataclass(slots=True)
class Values:
    """The measured values of one run directory. `files` are those the ticket lists."""

    run: Place
    files: dict[str, ListedFile]
    finder: Files
    profile: Profile
    limits: Limits
    unfit: dict[str, str] = field(default_factory=dict)  # name of a listed file -> why
    wanted: dict[str, set[tuple[str, str]]] = field(default_factory=dict)  # of each telemetry
    _documents: dict[str, Exact | str] = field(default_factory=dict)
    _columns: dict[str, dict[tuple[str, str], Cell] | str] = field(default_factory=dict)

    def expect(self, criteria: tuple[Criterion, ...]) -> None:
        """Say beforehand which columns are needed, so that a log is read once."""
        for criterion in criteria:
            for source in (criterion.source, criterion.baseline):
                if isinstance(source, Source) and source.column is not None:
                    pairs = self.wanted.setdefault(source.artifact, set())
                    pairs.add((source.column, source.moment or "last"))

    def measure(self, source: Source, unit_path: str | None = None) -> Measured | Unmeasured:
        """The value at a source."""
        listed = self.files[source.artifact]
        found = self.finder.find(self.run, listed.path)
        if not isinstance(found, Place):
            return Unmeasured(found[1], Where(), listed.path)
        if listed.name in self.unfit:
            return Unmeasured(self.unfit[listed.name], Where(), found.shown)
        if source.column is not None:
            return self._column(source, found)
        return self._value(source, found, unit_path)

    def _column(self, source: Source, place: Place) -> Measured | Unmeasured:
        name = source.artifact
        if name not in self._columns:
            self._columns[name] = self._read_columns(name, place)
        cells = self._columns[name]
        if isinstance(cells, str):
            return Unmeasured(cells, Where(key=source.column), place.shown)
        cell = cells[(source.column or "", source.moment or "last")]
        if cell.problem:
            return Unmeasured(cell.problem, cell.where, place.shown)
        return Measured(cell.value, cell.where, place.shown)

    def _read_columns(self, name: str, place: Place) -> dict[tuple[str, str], Cell] | str:
        wanted = sorted(self.wanted.get(name, ()))
        try:
            cells, faults = read_columns(
                place.path, place.shown, wanted, self.profile, self.limits
            )  # fmt: skip
        except GateError as error:
            return f"cannot be read: {error.what}"
        problem = first_error(faults)
        return problem or cells

    def _value(self, source: Source, place: Place, unit_path: str | None) -> Measured | Unmeasured:
        if place.name not in self._documents:
            self._documents[place.name] = self._read_document(place)
        exact = self._documents[place.name]
        if isinstance(exact, str):
            return Unmeasured(exact, Where(), place.shown)
        way = parse_pointer(source.path or "")
        if isinstance(way, str):
            return Unmeasured(way, Where(), place.shown)
        found = follow(exact.data, way)
        if isinstance(found, str):
            return Unmeasured(found, exact.document.where(*way), place.shown)
        value, gone = found
        where = exact.document.where(*gone)
        if isinstance(value, dict) and "value" in value:  # {"value": 0.5, "unit": "nats"}
            gone, value = (*gone, "value"), value["value"]
            where = exact.document.where(*gone)
        unit = _unit(exact.data, gone, unit_path)
        if isinstance(unit, Unmeasured):
            return Unmeasured(unit.reason, where, place.shown)
        return Measured(value, where, place.shown, unit)

    def _read_document(self, place: Place) -> Exact | str:
        form = form_of(place.path.name)
        if form is None:
            if place.path.suffix == ".safetensors":
                return self._read_header(place)
            return "holds no metrics that can be read; list its metadata as a [[document]]"
        try:
            exact = read_exact(place.path, place.shown, form, self.limits)
        except Unreadable as error:
            return f"cannot be read: {error.what}"
        problem = first_error(list(exact.faults))
        if problem is None and exact.data is None:
            problem = "holds no value"
        return problem or exact

    def _read_header(self, place: Place) -> Exact | str:
        """The metadata strings of a safetensors header; its tensors are not opened."""
        from trueup.gates.read.documents.read import load_document

        try:
            document, faults = load_document(place.path, place.shown, "weights", self.limits)
        except GateError as error:
            return f"cannot be read: {error.what}"
        return first_error(faults) or Exact(document, document.data, (), "")


def first_error(faults: list[Fault]) -> str | None:
    """The first fault of a text that is an error, in words."""
    from trueup.gates.catalogue.kinds import kinds

    for fault in faults:
        kind = kinds()[fault.kind]
        if kind.severity == "error":
            line = "" if fault.line is None else f" at line {fault.line}"
            return f"not fit: {kind.summary}{line} ({fault.got})"
    return None


def _unit(data: Any, way: Pointer, unit_path: str | None) -> str | Unmeasured | None:
    """The unit the document states: at `unit_path`, beside the value, or in a table of units."""
    if unit_path is not None:
        parsed = parse_pointer(unit_path)
        found = parsed if isinstance(parsed, str) else follow(data, parsed)
        if isinstance(found, str) or not isinstance(found[0], str):
            reason = found if isinstance(found, str) else f"{found[0]!r} is no unit"
            return Unmeasured(f"unit_path: {reason}", Where(), "")
        return str(found[0])
    name = str(way[-1])
    for end in range(len(way) - 1, -1, -1):
        around = follow(data, way[:end])
        holder = around[0] if not isinstance(around, str) else None
        if not isinstance(holder, dict):
            continue
        units = holder.get("units")
        candidates = [units.get(name)] if isinstance(units, dict) else []
        if end == len(way) - 1:
            candidates.append(holder.get(f"{name}_unit"))
            candidates.append(holder.get("unit") if name == "value" else None)
        for unit in candidates:
            if isinstance(unit, str):
                return unit
    return None
