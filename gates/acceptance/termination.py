"""Holds the termination record of a run to its series: one record, the right one, in time."""

from __future__ import annotations

import datetime
from typing import Any

from trueup.gates.acceptance.config import HardStop
from trueup.gates.acceptance.hard_stop import Firing, Replay, replay, same_number
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.load import check
from trueup.gates.acceptance.model import Held
from trueup.gates.acceptance.session import Session
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where

_BLOCK = "hard_stop"
_STOP = "REGRESSION_HARD_STOP"
_SIGTERM = (143, -15)


def judge_hard_stop(session: Session, asked: HardStop) -> None:
    """Four criteria: one reason, an allowed one, the one the series leads to, warnings in time."""
    source = session.document(asked.termination, "termination")
    if source is None:
        for name in ("one_reason", "reason_allowed", "as_the_series"):
            session.undetermined(f"hard_stop.{name}", _BLOCK, "no termination record can be read")
        return
    check(source, "termination")
    record = _one_reason(session, source)
    _allowed(session, asked, source, record)
    found = _series(session, asked)
    if found is None or not found.rows or found.broken:
        why = "no evaluation could be read" if not found or not found.rows else "rows are broken"
        session.found.add("series_unfit", source.name, Where(), why)
        session.undetermined("hard_stop.as_the_series", _BLOCK, why)
        return
    _against_series(session, source, record, found)
    if asked.warnings:
        _warnings(session, source, found)


def _series(session: Session, asked: HardStop) -> Replay | None:
    rows: list[Input] = []
    broken = 0
    for file in asked.series:
        try:
            for row in session.run.rows(file, "series"):
                if row is None or not isinstance(row.data, dict):
                    broken += 1
                else:
                    rows.append(row)
        except Unreadable as error:
            session.absent(error, file)
            return None
    found = replay(rows, asked)
    found.broken = broken
    return found


def _one_reason(session: Session, source: Input) -> dict[str, Any] | None:
    """Exactly one record; a run that SIGTERM ended without one was ended from outside."""
    records = source.data["records"]
    if not records and source.data.get("exit_code") in _SIGTERM:
        session.answer("hard_stop.one_reason", "", _BLOCK, "true", "EXTERNAL_SIGNAL",
                       "exactly one", reason="ended by SIGTERM without a record")  # fmt: skip
        return {"reason": "EXTERNAL_SIGNAL", "sig": "SIGTERM"}
    held: Held = "true" if len(records) == 1 else "false"
    names = ", ".join(record["reason"] for record in records) or "none"
    if held == "false":
        session.found.add("termination_count", source.name, source.where(("records",)),
                          f"{len(records)} records: {names}")  # fmt: skip
    session.answer("hard_stop.one_reason", "", _BLOCK, held, names, "exactly one")
    return records[0] if len(records) == 1 else None


def _allowed(
    session: Session, asked: HardStop, source: Input, record: dict[str, Any] | None
) -> None:
    reason = record["reason"] if record else "none"
    held: Held = "true" if reason in asked.allowed else "false"
    if held == "false" and record:
        session.found.add("termination_reason", source.name, source.where(("records", 0)), reason,
                          f"one of {', '.join(asked.allowed)}")  # fmt: skip
    session.answer("hard_stop.reason_allowed", "", _BLOCK, held, reason, ", ".join(asked.allowed))


def _against_series(
    session: Session, source: Input, record: dict[str, Any] | None, found: Replay
) -> None:
    """The record is the one that the series leads to."""
    first = _nearest(found.fired, record)
    wrong: list[tuple[str, str, str]] = []  # kind, got, expected
    stopped = record is not None and record["reason"] == _STOP
    if first is not None and not stopped:
        got = f"{record['reason'] if record else 'no record'}, and {found.after} more evaluations"
        wrong.append(("hard_stop_missed", got, _told(first)))
    elif first is None and stopped and record is not None:
        got = f"{record['metric']} at fold {record['fold']}, epoch {record['epoch']}"
        wrong.append(("hard_stop_unfounded", got, f"no stop in {found.rows} evaluations"))
    elif first is not None and record is not None:
        wrong += [("hard_stop_differs", *pair) for pair in _details(source, record, first)]
        if found.after:
            wrong.append(("hard_stop_late", f"{found.after} evaluations after the stop", "none"))
        wrong += _order(record)
    for kind, got, expected in wrong:
        session.found.add(kind, source.name, source.where(("records", 0)), got, expected)
    held: Held = "false" if wrong else "true"
    session.answer("hard_stop.as_the_series", "", _BLOCK, held,
                   record["reason"] if record else "none",
                   _told(first) if first else "no stop",
                   reason=f"{found.rows} evaluations")  # fmt: skip


def _nearest(fired: list[Firing], record: dict[str, Any] | None) -> Firing | None:
    """Of metrics that reached their limit together, the one that the record names."""
    named = record.get("metric") if record else None
    return next((one for one in fired if one.metric == named), fired[0] if fired else None)


def _told(firing: Firing) -> str:
    return (
        f"{_STOP} by {firing.metric} = {firing.value.text} ({firing.band}), "
        f"{firing.consecutive} in a row, fold {firing.fold}, epoch {firing.epoch}"
    )


def _details(source: Input, record: dict[str, Any], first: Firing) -> list[tuple[str, str]]:
    """Every field of the record that is not what the series says."""
    real = {
        "metric": first.metric, "consecutive": first.consecutive, "epoch": first.epoch,
        "fold": first.fold,
    }  # fmt: skip
    wrong = [
        (f"{key} {record[key]}", f"{key} {value}") for key, value in real.items()
        if record[key] != value
    ]  # fmt: skip
    if record["band"] in ("ok", "warn"):  # each programme words its error band in its own way
        wrong.append((f"band {record['band']}", f"the error band ({first.band})"))
    said = source.number(("records", 0, "value"))
    if not same_number(said, first.value):
        wrong.append((f"value {said.text}", f"value {first.value.text}"))
    return wrong


def _order(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The reason is written, then telemetry is flushed, then the signal is raised."""
    names = ("written_at", "flushed_at", "signalled_at")
    times = [moment(record.get(name)) for name in names]
    if any(time is None for time in times):
        missing = [name for name, time in zip(names, times, strict=True) if time is None]
        return [("hard_stop_order", f"no time with a zone for {', '.join(missing)}",
                 " <= ".join(names))]  # fmt: skip
    ordered = [time for time in times if time is not None]
    if ordered != sorted(ordered):
        got = ", ".join(f"{name} {record[name]}" for name in names)
        return [("hard_stop_order", got, " <= ".join(names))]
    return []


def moment(text: object) -> datetime.datetime | None:
    """A time with a zone; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def _warnings(session: Session, source: Input, found: Replay) -> None:
    """One warning each time a metric reaches N errors in a row."""
    said = [(w["metric"], w["fold"], w["epoch"]) for w in source.data.get("warnings", [])]
    real = [(w.metric, w.fold, w.epoch) for w in found.warnings]
    where = source.where(("warnings",))
    for one in [one for one in said if said.count(one) > real.count(one)]:
        session.found.add("stop_warnings", source.name, where, _warning(one), "no such warning")
    for one in [one for one in real if real.count(one) > said.count(one)]:
        session.found.add("stop_warnings", source.name, where, "no warning", _warning(one))
    held: Held = "true" if sorted(map(str, said)) == sorted(map(str, real)) else "false"
    session.answer("hard_stop.warnings", "", _BLOCK, held, str(len(said)), str(len(real)),
                   reason="one each time a metric reaches N errors in a row")  # fmt: skip


def _warning(one: tuple[str, int | None, int | None]) -> str:
    return f"a warning for {one[0]} at fold {one[1]}, epoch {one[2]}"
