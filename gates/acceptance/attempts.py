"""Looks a run up in the ledger: announced before its results, chained, and the first attempt."""

from __future__ import annotations

from trueup.gates.acceptance.config import Final
from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.inputs import Folder, Input
from trueup.gates.acceptance.ledger import Break, Ledger, Record, read_ledger
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.session import Session
from trueup.gates.acceptance.termination import moment
from trueup.gates.errors import Unreadable
from trueup.gates.findings import ArtifactInfo, Where

_BLOCK = "final"


def open_ledger(folder: Folder, relative: str) -> Ledger:
    """A ledger of a folder, its void records held to their evidence."""
    path, name = folder.path(relative), folder.shown(relative)
    ledger = read_ledger(path, name, lambda fault: folder.report(name, fault), folder.limits)
    folder.opened[name] = ArtifactInfo(
        name, "ledger", "JSON lines", path.stat().st_size, ledger.lines, 0
    )
    for record in ledger.records:
        if record.outcome == "VOID" and "evidence" in record.data:
            ledger.breaks += _void(folder, relative, record)
    return ledger


def _void(folder: Folder, ledger: str, record: Record) -> list[Break]:
    """A void run never trained a step, by a document that is still there."""
    said = record.data["evidence"]
    beside = "/".join([*ledger.split("/")[:-1], said["file"]])
    where = record.source.where(("evidence",))

    def unfounded(got: str) -> list[Break]:
        return [Break("void_unfounded", where, f"{record.run_id}: {got}", run_id=record.run_id)]

    try:
        evidence = folder.document(beside, "evidence")
        check(evidence, "void")
    except (Unreadable, AcceptanceError) as error:
        return unfounded(f"{said['file']} {error.what}")
    if evidence.sha256 != said["sha256"]:
        return unfounded(f"{said['file']} is not what was recorded: {evidence.sha256}")
    if evidence.data["run_id"] != record.run_id or evidence.data["training_steps"] != 0:
        return unfounded(f"{said['file']} is of run {evidence.data['run_id']}, "
                         f"{evidence.data['training_steps']} training steps")  # fmt: skip
    return []


def judge_attempt(session: Session, final: Final, manifest: Input) -> None:
    """The chain, the announcement of this run, and that it is the first attempt."""
    ledger = open_ledger(session.gate, final.ledger)
    for one in ledger.breaks:
        session.found.add(one.kind, ledger.name, one.where, one.got, one.expected)
    _chain(session, final, ledger)
    _announced(session, ledger, manifest)
    _first(session, ledger, manifest.data["run_id"])


def _chain(session: Session, final: Final, ledger: Ledger) -> None:
    sound = ledger.sound and bool(ledger.records)
    if final.ledger_head and not any(one.digest == final.ledger_head for one in ledger.records):
        sound = False
        session.found.add("ledger_broken", ledger.name, Where(), f"its head is {ledger.head}",
                          f"a line with the digest {final.ledger_head}")  # fmt: skip
    session.answer("final.ledger", "", _BLOCK, "true" if sound else "false",
                   f"{len(ledger.records)} records", "an unbroken chain")  # fmt: skip


def _announced(session: Session, ledger: Ledger, manifest: Input) -> None:
    """A record from before the results holds the digest of the manifest."""
    run = manifest.data["run_id"]
    starts = [one for one in ledger.records
              if one.run_id == run and one.data["event"] == "STARTED"]  # fmt: skip
    same = [one for one in starts if one.data.get("manifest_sha256") == manifest.sha256]
    wrong = ""
    if not starts:
        wrong = f"no record that {run} starts"
    elif not same:
        wrong = f"the manifest is now {manifest.sha256}"
    else:
        recorded = moment(same[0].data["recorded_at"])
        begun = [moment(source.data.get("started_at")) for source in session.results()]
        if recorded is None or any(time is None or time < recorded for time in begun):
            wrong = f"recorded at {same[0].data['recorded_at']}, after results had begun"
    if wrong:
        where = starts[0].source.where(("recorded_at",)) if starts else Where()
        session.found.add("manifest_late", ledger.name, where, wrong)
    session.answer("final.announced", "", _BLOCK, "false" if wrong else "true",
                   wrong or f"record {same[0].data['seq']}",
                   "the manifest is in the ledger before the run starts")  # fmt: skip


def _first(session: Session, ledger: Ledger, run: str) -> None:
    mine = [one for one in ledger.records if one.run_id == run]
    breaks = [one for one in ledger.breaks if one.run_id == run]
    outcomes = [one.outcome for one in mine if one.outcome is not None]
    bad = [outcome for outcome in outcomes if outcome != "PASS"]
    if bad and not breaks:
        session.found.add("rejected_rerun" if "REJECTED_RERUN" in bad else "attempt_not_passed",
                          ledger.name, mine[0].source.where(("run_id",)),
                          f"{run} is recorded as {', '.join(bad)}")  # fmt: skip
    changed = _changed(session, ledger, mine)
    held = not breaks and not bad and bool(mine) and not changed
    session.answer("final.first_attempt", "", _BLOCK, "true" if held else "false",
                   ", ".join(outcomes) or "started", "one attempt")  # fmt: skip


def _changed(session: Session, ledger: Ledger, mine: list[Record]) -> bool:
    """Whether the results are others than those the ledger recorded."""
    now = {source.sha256 for source in session.results()}
    for record in mine:
        said = record.data.get("results_sha256")
        if said is not None and said not in now:
            session.found.add("results_changed", ledger.name,
                              record.source.where(("results_sha256",)), said,
                              f"the digest of the results: {', '.join(sorted(now))}")  # fmt: skip
            return True
    return False
