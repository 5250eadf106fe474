"""Writes the pages of a gate: one for a run, an index and one page each for several."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueup.gates.findings import Verdict

INDEX = "gate.html"


def write_reports(folder: Path, judged: list[tuple[str, Verdict | str]], profile: str) -> None:
    """Write `gate.html`; of several runs it is the index."""
    from trueup.gates.catalogue.rules import entries
    from trueup.gates.profile.load import load_profile
    from trueup.render.files import write_report
    from trueup.render.gate_html import gate_page, index_page

    rules = load_profile(profile)
    known = {entry.id: entry for entry in entries(profile)}
    if len(judged) == 1 and not isinstance(judged[0][1], str):
        write_report(folder, INDEX, gate_page(judged[0][1], known, rules))
        return
    rows = []
    for number, (path, result) in enumerate(judged, 1):
        page = f"gate-{number}-{_plain(path)}.html"
        if not isinstance(result, str):
            write_report(folder, page, gate_page(result, known, rules))
        rows.append((path, result, page))
    write_report(folder, INDEX, index_page(rows))


def _plain(path: str) -> str:
    """The end of a path, in letters that every file system and link takes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", path).strip("-")[-40:] or "run"
