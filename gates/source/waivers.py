"""Inline waivers: a comment that allows one finding, with a reason and, if wanted, an end.

// trueup: allow SRC002 until 2027-01-31: the loader runs once, before the first step
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from trueup.gates.catalogue.kinds import families
from trueup.gates.source.comments import comments
from trueup.gates.source.unit import Hit, Unit

_WAIVER = re.compile(
    rb"trueup:\s*allow\b(?P<ids>[^\n:]*?)(?:\s+until\s+(?P<until>[^\s:]*))?\s*"
    rb"(?::(?P<reason>[^\n]*)|(?=\n)|\Z)"
)
_NEXT = re.compile(rb"[ \t]*(?:\r?\n[ \t]*)?")  # no further than the next line
_IDS = re.compile(rb"SRC\d{3}(?:\s*,\s*SRC\d{3})*")


@dataclass(frozen=True, slots=True)
class Inline:
    """A waiver for findings on its own line, or on the next line of code if it stands alone."""

    at: int
    lines: tuple[int, ...]
    ids: tuple[str, ...]
    reason: str
    until: str  # a date; empty where it has no end

    def allows(self, rule: str, line: int | None) -> bool:
        """Whether it is for this rule and this line."""
        return rule in self.ids and line in self.lines


def inline_waivers(unit: Unit) -> tuple[list[Inline], list[Hit]]:
    """The waivers of a file that are in force, and what is wrong with the others."""
    if b"trueup:" not in unit.raw:
        return [], []
    good: list[Inline] = []
    bad: list[Hit] = []
    every = list(comments(unit))
    after = _code_after(unit, every)
    for start, text in every:
        for found in _WAIVER.finditer(text):
            at = start + found.start()
            wrong = _wrong(found)
            if wrong:
                bad.append(Hit("waiver_unusable", at, wrong))
            else:
                good.append(_inline(unit, at, start, found, after[start]))
    return good, bad


def _inline(unit: Unit, at: int, start: int, found: re.Match[bytes], code: int) -> Inline:
    line, _ = unit.place(at)
    alone = not unit.raw[unit.raw.rfind(b"\n", 0, start) + 1 : start].strip()
    lines = (line, unit.place(code)[0]) if alone else (line,)
    ids = tuple(re.findall(r"SRC\d{3}", found.group("ids").decode()))
    return Inline(at, lines, ids, _reason(found), (found.group("until") or b"").decode())


def _code_after(unit: Unit, every: list[tuple[int, bytes]]) -> dict[int, int]:
    """For each comment what follows it: several waivers may stand above one line of code."""
    after: dict[int, int] = {}
    for start, text in sorted(every, reverse=True):
        end = start + len(text)
        skipped = _NEXT.match(unit.raw, end)
        following = skipped.end() if skipped else end
        after[start] = after.get(following, following)
    return after


def _reason(found: re.Match[bytes]) -> str:
    text = (found.group("reason") or b"").decode("utf-8", "replace")
    return text.replace("-->", "").replace("*/", "").strip()


def _wrong(found: re.Match[bytes]) -> str:
    ids = found.group("ids").replace(b"*/", b"").replace(b"-->", b"").strip()
    if not _IDS.fullmatch(ids):
        return f"a waiver of {ids.decode('utf-8', 'replace') or 'nothing'}"[:80]
    known = {kind.id: kind for kind in families()["source"]}
    for one in re.findall(r"SRC\d{3}", ids.decode()):
        if one not in known:
            return f"a waiver of {one}, which is no rule"
        if not known[one].waivable:
            return f"a waiver of {one}, which cannot be waived"
    if len(_reason(found)) < 3:
        return "a waiver without a reason"
    until = (found.group("until") or b"").decode("utf-8", "replace")
    if not until:
        return ""
    try:
        end = datetime.date.fromisoformat(until)
    except ValueError:
        return f"a waiver until {until}, which is no date"[:80]
    return f"a waiver that ended on {end}" if end < datetime.date.today() else ""
