"""Inline waivers: a comment that allows one finding, with a reason and, if wanted, an end.

// trueup: allow SRC002 until 2027-01-31: the loader runs once, before the first step
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trueup.gates.source.comments import comments
from trueup.gates.source.unit import Hit, Unit

_WAIVER = re.compile(
    rb"trueup:\s*allow\s+(?P<ids>SRC\d{3}(?:\s*,\s*SRC\d{3})*)"
    rb"(?:\s+until\s+(?P<until>[0-9-]+))?\s*(?::(?P<reason>[^\n]*))?"
)


@dataclass(slots=True)
class Inline:
    """A waiver for findings on its own line, or on the next one if it stands alone."""

    at: int
    lines: tuple[int, ...]
    ids: tuple[str, ...]
    reason: str
    until: datetime.date | None
    used: bool = False


def inline_waivers(unit: Unit) -> tuple[list[Inline], list[Hit]]:
    """The waivers of a file that are in force, and what is wrong with the others."""
    if b"trueup:" not in unit.raw:
        return [], []
    good: list[Inline] = []
    bad: list[Hit] = []
    for start, text in comments(unit):
        for found in _WAIVER.finditer(text):
            at = start + found.start()
            wrong = _wrong(found)
            if wrong:
                bad.append(Hit("waiver_unusable", at, wrong))
            else:
                good.append(_inline(unit, at, start, found))
    return good, bad


def _inline(unit: Unit, at: int, start: int, found: re.Match[bytes]) -> Inline:
    line, _ = unit.place(at)
    before = unit.raw[unit.raw.rfind(b"\n", 0, start) + 1 : start]
    lines = (line,) if before.strip() else (line, line + 1)
    until = found.group("until")
    return Inline(
        at, lines,
        tuple(re.findall(r"SRC\d{3}", found.group("ids").decode())),
        _reason(found), datetime.date.fromisoformat(until.decode()) if until else None,
    )  # fmt: skip


def _reason(found: re.Match[bytes]) -> str:
    text = (found.group("reason") or b"").decode("utf-8", "replace")
    return text.replace("-->", "").replace("*/", "").strip()


def _wrong(found: re.Match[bytes]) -> str:
    if len(_reason(found)) < 3:
        return "a waiver without a reason"
    until = found.group("until")
    if until is None:
        return ""
    try:
        end = datetime.date.fromisoformat(until.decode())
    except ValueError:
        return f"a waiver until {until.decode()}, which is no date"
    return f"a waiver that ended on {end}" if end < datetime.date.today() else ""


def waived(waivers: list[Inline], rule: str, line: int) -> Inline | None:
    """The waiver that allows a finding of a rule on a line."""
    for one in waivers:
        if rule in one.ids and line in one.lines:
            one.used = True
            return one
    return None


def unused(waivers: list[Inline]) -> Iterator[Hit]:
    """Waivers that allowed nothing."""
    for one in waivers:
        if not one.used:
            yield Hit("waiver_unused", one.at, f"{', '.join(one.ids)}: {one.reason}"[:80])
