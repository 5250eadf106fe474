"""Write the tables of docs/*.md from the code: checks by name, keys of the settings.

    python docs/tables.py     # after a check or a schema has changed; `make docs`

A table stands between `<!-- NAME -->` and `<!-- end NAME -->`; a test holds it to the code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from trueup.gates.documents.model import DocumentCheck
from trueup.gates.documents.registry import document_checks
from trueup.gates.settings.load import schema
from trueup.gates.telemetry.probe import Check
from trueup.gates.telemetry.registry import CHECKS

FOLDER = Path(__file__).resolve().parent
_TYPES = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    list: "list",
    dict: "table",
}


def checks_table() -> str:
    """List every check with its parameters."""
    rows = [
        (f"`{check.name}`", check.target, check.summary, _params(check))
        for check in CHECKS.values()
    ]
    return _table(("check", "reads", "holds where", "parameters"), rows)


def document_checks_table() -> str:
    """List every check on documents with the kinds it judges and its parameters."""
    rows = [
        (f"`{check.name}`", ", ".join(check.on), check.summary, _params(check))
        for check in sorted(document_checks().values(), key=lambda check: (check.on, check.name))
    ]
    return _table(("check", "on", "holds where", "parameters"), rows)


def settings_table() -> str:
    """List every key of `trueup.toml` with what its schema says of it."""
    defs = schema()["$defs"]
    rows = []
    for name, table in schema()["properties"].items():
        if name == "waiver":
            rows += _keys("[[waiver]]", defs["waiver"])
        elif name == "severity":
            rows.append(("`[severity]`", "a rule's id", str(table["description"])))
            rows += _keys("severity.ID", defs["override"])
        else:
            rows += _keys(f"[{name}]", table)
    return _table(("table", "key", "meaning"), rows)


def _keys(table: str, part: dict[str, Any]) -> list[tuple[str, str, str]]:
    must = part.get("required", ())
    return [
        (f"`{table}`", f"`{key}`", _said(value) + ("; needed" if key in must else ""))
        for key, value in part["properties"].items()
    ]


def _said(value: dict[str, Any]) -> str:
    if value.get("$ref") == "#/$defs/severity":
        return "`error`, `warning` or `note`"
    return str(value["description"]) if "description" in value else "words, not blank"


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "profiles.md": {"checks": checks_table, "document checks": document_checks_table},
    "settings.md": {"settings": settings_table},
}


def filled(name: str, page: str) -> str:
    """Return a page with each of its tables as the code has it now."""
    for table, text in TABLES[name].items():
        between = re.compile(rf"(<!-- {table} -->\n).*?(<!-- end {table} -->)", re.DOTALL)
        page, count = between.subn(lambda m, t=text: f"{m[1]}{t()}{m[2]}", page)
        if count != 1:
            raise ValueError(f"{name} has {count} places for the table {table}, expected 1")
    return page


def _params(check: Check | DocumentCheck) -> str:
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


def main() -> None:
    """Fill the tables of every page."""
    for name in TABLES:
        path = FOLDER / name
        path.write_text(filled(name, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
    sys.exit(0)
