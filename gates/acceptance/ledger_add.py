"""Adds one record to a ledger: chained, synced, under a lock, and honest about reruns."""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.inputs import Input, parse
from trueup.gates.acceptance.ledger import (
    Ledger,
    Record,
    lacks_diagnosis,
    read_ledger,
    rerun_of,
)
from trueup.gates.acceptance.load import check
from trueup.gates.catalogue.kinds import kinds
from trueup.gates.plain_file import plain_bytes
from trueup.gates.read.limits import Fault, Limits

Outcome = Literal["PASS", "FAIL", "ABORTED"]


@dataclass(frozen=True, slots=True)
class Added:
    """What was written. `refused` says why the run is not accepted as a first attempt."""

    record: dict[str, Any]
    head: str
    refused: str = ""


def add_start(ledger: Path, manifest: Path) -> Added:
    """Record that the run of a manifest starts; before it does."""
    source = _document(manifest, "manifest")
    said = source.data
    entry = {
        "event": "STARTED", "run_id": said["run_id"], "stage": said["stage"],
        "git_commit": said["git_commit"], "config_sha256": said["config_sha256"],
        "seeds": said["seeds"], "manifest_sha256": source.sha256,
    }  # fmt: skip
    if "diagnosis" in said:
        entry["diagnosis"] = said["diagnosis"]
    return _append(ledger, entry)


def add_outcome(ledger: Path, manifest: Path, outcome: Outcome, results: Path | None) -> Added:
    """Record how the run of a manifest ended, with the digest of its results."""
    entry = _finished(manifest)
    entry["outcome"] = outcome
    if results is not None:
        entry["results_sha256"] = hashlib.sha256(_bytes(results)).hexdigest()
    elif outcome != "ABORTED":
        raise AcceptanceError(
            f"{outcome} needs the results it was judged by", where=str(ledger),
            fix="--results FILE; a run that left none is ABORTED",
        )  # fmt: skip
    return _append(ledger, entry)


def add_void(ledger: Path, manifest: Path, evidence: Path) -> Added:
    """Record that a run broke before its first training step, with the document that shows it."""
    entry = _finished(manifest)
    source = _document(evidence, "void")
    said = source.data
    if said["training_steps"] != 0:
        raise AcceptanceError(
            "is not void", where=f"{evidence}: training_steps", got=str(said["training_steps"]),
            expected="0: only a run that never trained counts as none",
            fix="record it as ABORTED",
        )  # fmt: skip
    if said["run_id"] != entry["run_id"]:
        raise AcceptanceError(
            "is the evidence of another run", where=f"{evidence}: run_id", got=said["run_id"],
            expected=entry["run_id"],
        )  # fmt: skip
    entry["outcome"] = "VOID"
    entry["evidence"] = {
        "file": evidence.name, "sha256": source.sha256, "reason": said["reason"],
        "training_steps": 0,
    }  # fmt: skip
    return _append(ledger, entry)


def _finished(manifest: Path) -> dict[str, Any]:
    said = _document(manifest, "manifest").data
    keys = ("run_id", "stage", "git_commit", "config_sha256", "seeds")
    return {"event": "FINISHED", **{key: said[key] for key in keys}}


def _bytes(path: Path) -> bytes:
    most = Limits().max_document
    return plain_bytes(path, str(path), AcceptanceError, "a JSON or TOML document", most)


def _document(path: Path, of: str) -> Input:
    def refuse(fault: Fault) -> None:
        raise _unfit(str(path), fault)

    form = "TOML" if path.suffix.lower() == ".toml" else "JSON"
    source = parse(_bytes(path), str(path), path, form, Limits(), refuse)
    check(source, of)
    return source


def _unfit(name: str, fault: Fault) -> AcceptanceError:
    kind = kinds()[fault.kind]
    place = ":".join(str(p) for p in (name, fault.line, fault.byte, fault.key) if p is not None)
    return AcceptanceError(
        kind.summary, where=place, got=fault.got, expected=kind.expected, fix=kind.fix
    )


def _append(path: Path, entry: dict[str, Any]) -> Added:
    """Chain the entry to the last line. A rerun is written down too, as what it is."""
    with _locked(path) as descriptor:
        ledger = _sound(path) if os.fstat(descriptor).st_size else Ledger(str(path))
        earlier = [record for record in ledger.records if record.is_final]
        if entry["event"] == "FINISHED" and entry["outcome"] != "VOID":
            _has_started(path, entry, ledger.records)
        refused = ""
        if entry["stage"] == "final":
            refused = rerun_of(entry, earlier) or ""
            if refused:
                entry = _rejected(entry)
            elif missing := lacks_diagnosis(entry, earlier):
                raise AcceptanceError(
                    "a new attempt needs a diagnosis", where=str(path), got=missing,
                    expected="`diagnosis` in the manifest: where the failure is explained",
                )  # fmt: skip
        head = {"seq": len(ledger.records) + 1, "prev": ledger.head, "recorded_at": _now()}
        line = json.dumps({**head, **entry}, ensure_ascii=True, allow_nan=False).encode()
        _write(path, descriptor, line + b"\n")
    return Added({**head, **entry}, hashlib.sha256(line).hexdigest(), refused)


def _rejected(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as a rejected one, keeping what was claimed."""
    rejected = {**entry, "outcome": "REJECTED_RERUN"}
    claimed = entry.get("outcome")
    if claimed in ("PASS", "FAIL", "ABORTED"):
        rejected["claimed"] = claimed
    return rejected


def _has_started(path: Path, entry: dict[str, Any], records: list[Record]) -> None:
    """An outcome belongs to a start: a run that was never announced may be one of many."""
    same = [one for one in records if one.run_id == entry["run_id"]]
    if not any(one.data["event"] == "STARTED" for one in same):
        raise AcceptanceError(
            "records the end of a run that it never saw start", where=str(path),
            got=entry["run_id"], fix="`trueup accept ledger add --manifest FILE` before the run",
        )  # fmt: skip


def _sound(path: Path) -> Ledger:
    def refuse(fault: Fault) -> None:
        raise _unfit(str(path), fault)

    ledger = read_ledger(path, str(path), refuse)
    for one in ledger.breaks:
        if one.kind == "ledger_broken":
            raise AcceptanceError(
                "the chain is broken; nothing was added", where=f"{path}:{one.where}",
                got=one.got, expected=one.expected,
                fix="restore the ledger from where it is kept; it is never edited",
            )  # fmt: skip
    return ledger


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The ledger open for appending, by one process at a time."""
    try:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise AcceptanceError(
            "cannot be opened for adding", where=str(path), got=str(error.strerror),
            expected="a regular file that you may write to",
        ) from None  # fmt: skip
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        if not os.fstat(descriptor).st_size:
            path.unlink(missing_ok=True)  # nothing was added, so no empty ledger is left behind
        os.close(descriptor)


def _write(path: Path, descriptor: int, line: bytes) -> None:
    """The whole line, or none of it."""
    size = os.fstat(descriptor).st_size
    try:
        if os.write(descriptor, line) != len(line):
            raise OSError(None, "only a part of the line could be written")
        os.fsync(descriptor)
    except OSError as error:
        os.ftruncate(descriptor, size)
        raise AcceptanceError(
            "cannot be written", where=str(path), got=str(error.strerror)
        ) from None


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
