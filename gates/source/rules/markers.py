"""No placeholder markers: what they promise is either done or a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trueup.gates.source.comments import comments
from trueup.gates.source.python import docstrings
from trueup.gates.source.unit import Hit, Unit

KINDS = ("cuda", "rust", "python", "markdown")
HINT = re.compile(rb"\b(?:TODO|FIXME|XXX|HACK)\b")
_FENCE = re.compile(rb"[ \t>*+-]*(`{3,}|~{3,})")
_QUOTED = re.compile(rb"`[^`\n]*`")


def check(unit: Unit) -> Iterator[Hit]:
    """Markers in comments, docstrings and documents; one in backquotes is only spoken of."""
    if unit.kind == "markdown":
        parts = [(0, _outside_fences(unit.raw))]
    else:
        parts = list(comments(unit))
        if unit.kind == "python":
            parts += list(docstrings(unit))
    for start, text in parts:
        for found in HINT.finditer(_QUOTED.sub(_blank, text)):
            yield Hit("placeholder_marker", start + found.start(), found.group().decode())


def _outside_fences(text: bytes) -> bytes:
    """A document with its blocks of code blanked; one without an end goes to that of the text."""
    out, fence = [], b""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        mark = found.group(1) if found else b""
        if fence:
            closes = mark[:1] == fence[:1] and len(mark) >= len(fence)
            out.append(re.sub(rb"[^\r\n]", b" ", line))
            fence = b"" if closes else fence
        else:
            out.append(line)
            fence = mark
    return b"".join(out)


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " * len(found.group())
