"""Logs: lines of text for people, of any size and any encoding. Nothing of them is kept."""

from __future__ import annotations

from pathlib import Path

from trueup.gates.documents.model import Document
from trueup.gates.read.documents.source import Report, opened

_BLOCK = 1 << 20


def read_log(path: Path, name: str, report: Report) -> Document:
    """How many lines it has. An empty log is one of no lines: nothing was printed."""
    if path.is_file() and not path.stat().st_size:
        return Document({"lines": 0}, "log", 0)
    lines, last = 0, b"\n"
    with opened(path, name, report) as (file, size):
        while block := file.read(_BLOCK):
            lines += block.count(b"\n")
            last = block[-1:]
    return Document({"lines": lines + (last != b"\n")}, "log", size)
