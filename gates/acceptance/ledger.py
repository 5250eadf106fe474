"""The ledger of runs: append-only lines of JSON, each holding the digest of the line before it.

One final run has one attempt. An earlier final record with the same commit and configuration,
passed, failed or aborted, whatever its seeds, makes a later one a rerun; a new attempt needs a new
commit or configuration, and a reference to the diagnosis of the failure before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup.gates.acceptance.inputs import Input, lines, row
from trueup.gates.acceptance.load import schema
from trueup.gates.findings import Where
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.structure import first_problem

START = "0" * 64

Report = Callable[[Fault], None]


@dataclass(frozen=True, slots=True)
class Record:
    """One line. `digest` is that of its exact bytes, without the newline."""

    source: Input
    digest: str

    @property
    def data(self) -> dict[str, Any]:
        """What it says."""
        return dict(self.source.data)

    @property
    def run_id(self) -> str:
        """The run it is about."""
        return str(self.source.data["run_id"])

    @property
    def key(self) -> tuple[str, str]:
        """What a second attempt must change."""
        return self.source.data["git_commit"], self.source.data["config_sha256"]

    @property
    def is_final(self) -> bool:
        """Whether it is of a final run."""
        return bool(self.source.data["stage"] == "final")

    @property
    def outcome(self) -> str | None:
        """How the run ended; None while it runs."""
        found = self.source.data.get("outcome")
        return None if found is None else str(found)


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the chain, or a rule of it, does not hold."""

    kind: str
    where: Where
    got: str
    expected: str = ""
    run_id: str = ""


@dataclass(slots=True)
class Ledger:
    """A ledger that was read."""

    name: str
    records: list[Record] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)
    lines: int = 0

    @property
    def head(self) -> str:
        """The digest of its last line: kept elsewhere, it shows whether lines were cut off."""
        return self.records[-1].digest if self.records else START

    @property
    def sound(self) -> bool:
        """Whether every line is chained to the one before it."""
        return not any(one.kind == "ledger_broken" for one in self.breaks)


def read_ledger(path: Path, name: str, report: Report, limits: Limits | None = None) -> Ledger:
    """Read a ledger and look at its chain and at its rules."""
    ledger = Ledger(name)
    previous = START
    for line in lines(path, name, report):
        ledger.lines += 1
        here = Where(line=line.number, byte=line.byte)
        if not line.ended:
            ledger.breaks.append(Break("ledger_broken", here, "the last line has no newline"))
        digest = hashlib.sha256(line.raw).hexdigest()
        source = row(line, name, path, limits or Limits(), report)
        problem = None if source is None else first_problem(schema("ledger"), source.data)
        if source is None or problem is not None:
            got = f"{problem.place}: {problem.what}".lstrip(": ") if problem else "no JSON object"
            ledger.breaks.append(Break("ledger_broken", here, got, "a record of the ledger"))
            previous = digest
            continue
        ledger.breaks += _chain(source, here, previous, line.number)
        ledger.records.append(Record(source, digest))
        previous = digest
    ledger.breaks += rules(ledger.records)
    return ledger


def _chain(source: Input, here: Where, previous: str, number: int) -> Iterator[Break]:
    if source.data["prev"] != previous:
        got = f"prev {source.data['prev']}"
        yield Break("ledger_broken", here, got, f"{previous}, the digest of the line before")
    if source.data["seq"] != number:
        yield Break("ledger_broken", here, f"seq {source.data['seq']}", f"seq {number}")


def rules(records: list[Record]) -> Iterator[Break]:
    """What a ledger must not hold although its chain does: reruns that are not called so."""
    for index, record in enumerate(records):
        if not record.is_final:
            continue
        earlier = [one for one in records[:index] if one.is_final]
        where = record.source.where(("run_id",))
        why = rerun_of(record.data, earlier)
        if why is not None and record.outcome != "REJECTED_RERUN":
            yield Break("rejected_rerun", where, f"{record.run_id}: {why}", run_id=record.run_id)
        needs = lacks_diagnosis(record.data, earlier)
        if needs is not None and why is None:
            yield Break("no_diagnosis", where, f"{record.run_id}: {needs}", run_id=record.run_id)
        if record.outcome == "VOID" and "evidence" not in record.data:
            yield Break("void_unfounded", where, f"{record.run_id}: no evidence",
                        run_id=record.run_id)  # fmt: skip


def rerun_of(data: dict[str, Any], earlier: list[Record]) -> str | None:
    """Why a final record would be a second attempt; None if it is the first."""
    key = (data["git_commit"], data["config_sha256"])
    void = {one.run_id for one in earlier if one.outcome == "VOID"}
    for one in earlier:
        if one.run_id == data["run_id"]:
            ended = one.outcome is not None
            if data["event"] == "STARTED" or ended:
                return f"record {one.data['seq']} is of the same run {one.run_id}"
        elif one.key == key and one.run_id not in void and one.outcome != "REJECTED_RERUN":
            said = one.outcome or "started"
            return f"record {one.data['seq']} ({one.run_id}, {said}) has the same commit and config"
    return None


def lacks_diagnosis(data: dict[str, Any], earlier: list[Record]) -> str | None:
    """Which failed attempt an attempt leaves without a diagnosis; None if there is none."""
    if data.get("diagnosis"):
        return None
    if any(one.run_id == data["run_id"] and one.data.get("diagnosis") for one in earlier):
        return None
    last: dict[str, str | None] = {}
    for one in earlier:
        if one.run_id != data["run_id"] and one.outcome != "REJECTED_RERUN":
            last[one.run_id] = one.outcome
    open_ = [(run, outcome) for run, outcome in last.items() if outcome != "VOID"]
    if not open_ or open_[-1][1] == "PASS":
        return None
    run, outcome = open_[-1]
    return f"the attempt before it, {run} ({outcome or 'aborted'}), has no diagnosis"
