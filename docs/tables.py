"""Write the tables of docs/profiles.md from the code: the checks by name, the reader's findings.

    python docs/tables.py     # after a check or a kind of finding has changed

A table stands between `<!-- NAME -->` and `<!-- end NAME -->`; a test holds it to the code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.telemetry.probe import Check
from trueup.gates.telemetry.registry import CHECKS

PAGE = Path(__file__).resolve().parent / "profiles.md"
_TYPES = {str: "text", int: "integer", float: "number", bool: "true or false", list: "list"}


def checks_table() -> str:
    """List every check with its parameters."""
    rows = [
        (f"`{check.name}`", check.target, check.summary, _params(check))
        for check in CHECKS.values()
    ]
    return _table(("check", "reads", "holds where", "parameters"), rows)


def kinds_table() -> str:
    """List what the reader and the gate itself find, whatever the profile says."""
    rows = [(kind.id, kind.severity, kind.summary) for kind in kinds().values()]
    return _table(("id", "severity", "finds"), rows)


TABLES: dict[str, Callable[[], str]] = {"checks": checks_table, "kinds": kinds_table}


def filled(page: str) -> str:
    """Return the page with each table as the code has it now."""
    for name, table in TABLES.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        page, count = between.subn(lambda m, t=table: f"{m[1]}{t()}{m[2]}", page)
        if count != 1:
            raise ValueError(f"the page has {count} places for the table {name}, expected 1")
    return page


def _params(check: Check) -> str:
    said = []
    for name, types in check.params.items():
        kinds = [_TYPES[kind] for kind in types if not (kind is int and float in types)]
        optional = ", may be left out" if name in check.optional else ""
        said.append(f"`{name}`: {' or '.join(kinds)}{optional}")
    return "; ".join(said)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
    sys.exit(0)
