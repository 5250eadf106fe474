"""The last line of a file that is still being written: what its missing end explains."""

from __future__ import annotations

import codecs
import re

from trueup.gates.findings import show
from trueup.gates.read.rows.scanner import Flaw

_TOKEN = re.compile(rb'"?[^\s,:{}\[\]"]*+')  # one that may only have begun


def unfinished(row: bytes, flaws: list[Flaw]) -> list[Flaw]:
    """The flaws of a row without a newline; those of its missing end become one."""
    kept = [flaw for flaw in flaws if not _explained(row, flaw)]
    if len(kept) == len(flaws):
        return flaws
    return [*kept, Flaw("unfinished", f"the line ends after {show(row[-24:])}", len(row))]


def cut_off(row: bytes, flaws: list[Flaw]) -> list[Flaw]:
    """The same of a file that nobody writes: what its missing end explains is a cut."""
    return [
        Flaw("cut", flaw.got, flaw.at) if flaw.kind != "blank" and _explained(row, flaw) else flaw
        for flaw in flaws
    ]


def _explained(row: bytes, flaw: Flaw) -> bool:
    """Whether more text could still make this right."""
    if flaw.kind in ("cut", "blank"):
        return True
    if flaw.at is None:
        return False
    rest = row[flaw.at :]
    if flaw.kind == "encoding":
        try:
            return codecs.getincrementaldecoder("utf-8")().decode(rest, False) == ""
        except UnicodeDecodeError:
            return False
    return flaw.kind == "syntax" and _TOKEN.fullmatch(rest) is not None
