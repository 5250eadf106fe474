"""What the smoke criteria read beside the results: logs, health lines, the audit document."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.gates.acceptance.audit import open_rows
from trueup.gates.acceptance.cells import Cell
from trueup.gates.acceptance.config import Smoke
from trueup.gates.acceptance.inputs import Input
from trueup.gates.acceptance.model import Held
from trueup.gates.acceptance.session import Session
from trueup.gates.documents.model import Pointer
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where, show

_BLOCK, _TIER = "smoke", 1
_HEALTH = "HEALTH_DIAG"


@dataclass(slots=True)
class Seen:
    """What reading the health lines came to."""

    lines: int = 0
    broken: int = 0
    flags: int = 0  # lists of flags that were read
    set: int = 0  # flags that are not zero
    unfit: int = 0  # lists of another length, or with something that is no flag


def judge_clamps(session: Session, smoke: Smoke) -> Seen:
    """Count the lines that tell of a NaN that was clamped; read the health lines on the way."""
    token = smoke.clamp_token.encode()
    clamped, read, unknown = 0, 0, not smoke.logs
    for file in smoke.logs:
        try:
            for line in session.run.text_lines(file, "log"):
                read += 1
                if token in line.raw:
                    clamped += 1
                    where = Where(line=line.number, byte=line.byte + line.raw.index(token))
                    session.found.add("nan_clamped", session.run.shown(file), where,
                                      show(line.raw[:80]))  # fmt: skip
        except Unreadable as error:
            session.absent(error, file)
            unknown = True
    held: Held = "false" if clamped else "undetermined" if unknown or not read else "true"
    if held == "undetermined":
        _silent(session, "no_clamped_nan", "no log was read: name it in smoke.logs")
    session.answer("smoke.no_clamped_nan", "", _BLOCK, held, str(clamped), "0", tier=_TIER,
                   reason=f"in {read} lines of log")  # fmt: skip
    return _health(session, smoke)


def _silent(session: Session, name: str, why: str) -> None:
    session.found.add("smoke_not_held", session.source.name, Where(key=f"smoke.{name}"), why)


def _health(session: Session, smoke: Smoke) -> Seen:
    """Read every health line once: does it parse, are its flags zero."""
    seen = Seen()
    for file in smoke.health:
        try:
            for row in session.run.rows(file, "health"):
                if row is None or not isinstance(row.data, dict):
                    seen.broken += 1
                elif row.data.get("t", _HEALTH) == _HEALTH:
                    seen.lines += 1
                    _flags(session, smoke, seen, row, ())
        except Unreadable as error:
            session.absent(error, file)
            seen.broken += 1
    return seen


def _flags(session: Session, smoke: Smoke, seen: Seen, source: Input, way: Pointer) -> None:
    """Look at the list `nan_flags` of the object at a place of a document."""
    holder = source.data
    for part in way:
        holder = holder[part]
    flags, place = holder.get("nan_flags"), (*way, "nan_flags")
    if not isinstance(flags, list) or len(flags) != smoke.flags:
        seen.unfit += 1
        got = f"{len(flags)} flags" if isinstance(flags, list) else show(flags)
        session.found.add("flags_unfit", source.name, source.where(place), got,
                          f"a list of {smoke.flags} integers")  # fmt: skip
        return
    seen.flags += 1
    for slot, flag in enumerate(flags):
        if type(flag) is not int:
            seen.unfit += 1
            session.found.add("flags_unfit", source.name, source.where((*place, slot)),
                              f"slot {slot} is {show(flag)}", "an integer")  # fmt: skip
        elif flag:
            seen.set += 1
            session.found.add("flag_set", source.name, source.where((*place, slot)),
                              f"slot {slot} is {flag}")  # fmt: skip


def judge_flags(session: Session, smoke: Smoke, cells: list[Cell], seen: Seen) -> None:
    """Every flag that was reported, by a health line or by a cell, is zero."""
    for cell in cells:
        if "nan_flags" in cell.data:
            _flags(session, smoke, seen, cell.source, ("cells", cell.index))
    held: Held = "false" if seen.set else "true"
    if not seen.set and (seen.unfit or not seen.flags):
        held = "undetermined"
        _silent(session, "flags_zero", f"{seen.flags} lists of flags were read")
    session.answer("smoke.flags_zero", "", _BLOCK, held, str(seen.set), "0", tier=_TIER,
                   reason=f"in {seen.flags} lists of {smoke.flags} flags")  # fmt: skip


def judge_audit(session: Session, smoke: Smoke, seen: Seen) -> None:
    """The audit document has no open row, and every health line parses."""
    rows, open_ = 0, 0
    unknown = not smoke.audit or not smoke.health or not seen.lines
    if smoke.audit:
        try:
            text = session.run.whole(smoke.audit, "audit")
        except Unreadable as error:
            session.absent(error, smoke.audit)
            unknown = True
        else:
            rows, found = open_rows(text, smoke)
            unknown |= not rows
            open_ = len(found)
            for line, got in found:
                session.found.add(
                    "audit_open", session.run.shown(smoke.audit), Where(line=line), got
                )
    held: Held = "false" if open_ or seen.broken else "undetermined" if unknown else "true"
    if held == "undetermined":
        _silent(session, "audit_closed",
                f"{rows} rows of audit and {seen.lines} health lines were read")  # fmt: skip
    if seen.broken:
        _silent(session, "audit_closed", f"{seen.broken} health lines do not parse")
    session.answer("smoke.audit_closed", "", _BLOCK, held, str(open_ + seen.broken), "0",
                   tier=_TIER,
                   reason=f"of {rows} rows and {seen.lines + seen.broken} lines")  # fmt: skip
