"""Audit tables: every row is decided, and the summary is the count of the rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trueup.gates.source.sets.model import Placed, Tree
from trueup.gates.source.unit import Unit

_OPEN = ("tbd", "evaluate")  # in any cell
_NO_ACTION = ("", *_OPEN, "?", "-", "–", "—", "…", "...", "n/a", "todo", "unknown")
_SUMMARY = re.compile(r"\b(\d+)\s*=\s*(\d+\s+[\w-]+(?:\s*\+\s*\d+\s+[\w-]+)+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table in Markdown, with its cells by the head of their column."""

    at: int
    cells: dict[str, str]


def check(tree: Tree) -> Iterator[Placed]:
    """Hold each declared audit to its settings."""
    for one in tree.config.tables("audit"):
        unit = tree.units.get(one["file"])
        if unit is None:
            yield Placed("audit_undecided", one["file"], None, "the audit is not there")
            continue
        rows = [row for row in tables(unit) if one["status"] in row.cells]
        if not rows:
            got = f"no table has a column {one['status']}"
            yield Placed("audit_undecided", unit.relative, None, got)
            continue
        yield from _rows(unit, one, rows)
        yield from _counts(unit, one, rows)


def _rows(unit: Unit, one: dict[str, Any], rows: list[Row]) -> Iterator[Placed]:
    seen: set[str] = set()
    for row in rows:
        key = row.cells.get(one["key"], "") if "key" in one else next(iter(row.cells.values()))
        if key in seen:
            yield Placed("audit_undecided", unit.relative, row.at, f"{key or 'a row'} again")
        seen.add(key)
        for got in (_status(one, row), *_cells(one, row)):
            if got:
                yield Placed("audit_undecided", unit.relative, row.at, f"{key or 'a row'}: {got}")


def _status(one: dict[str, Any], row: Row) -> str:
    """What is wrong with a row's status, or with the action it asks for."""
    status = row.cells[one["status"]]
    if status not in one["allowed"]:
        return f"{status or 'blank'} is no status"
    if status in one.get("forbidden", ()):
        return f"{status}, which no row may be any more"
    if "action" in one and status not in one.get("done", ()):
        action = row.cells.get(one["action"], "")
        if action.strip().lower() in _NO_ACTION:
            return f"{status} without {one['action']}"
    return ""


def _cells(one: dict[str, Any], row: Row) -> Iterator[str]:
    """Cells that are open or blank; the status and the action are judged by themselves."""
    for head, cell in row.cells.items():
        word = cell.strip().lower()
        judged = head == one["status"] or (head == one.get("action") and word not in _OPEN)
        if not judged and (word in _OPEN or (not word and head not in one.get("blank", ()))):
            yield f"{head or 'a cell'} is {cell or 'blank'}"


def _counts(unit: Unit, one: dict[str, Any], rows: list[Row]) -> Iterator[Placed]:
    if len(rows) < one.get("least_rows", 1):
        got = f"{len(rows)} rows, at least {one['least_rows']} are expected"
        yield Placed("audit_miscounted", unit.relative, None, got)
    if not one.get("summary"):
        return
    text = unit.raw.decode("utf-8", "replace")
    counted = Counter(row.cells[one["status"]] for row in rows)
    summaries = list(_SUMMARY.finditer(text))
    if not summaries:
        got = f"no summary such as {len(rows)} = {_sum(counted, one['allowed'])}"
        yield Placed("audit_miscounted", unit.relative, None, got)
    for found in summaries:
        at = len(text[: found.start()].encode())
        told = {name: int(n) for n, name in re.findall(r"(\d+)\s+([\w-]+)", found.group(2))}
        total = int(found.group(1))
        if sum(told.values()) != total:
            got = f"{found.group()}: the parts make {sum(told.values())}"
            yield Placed("audit_miscounted", unit.relative, at, got)
        right = {name: counted.get(name, 0) for name in {*told, *counted}}
        if {name: told.get(name, 0) for name in right} != right:
            got = f"{found.group()}: the rows make {len(rows)} = {_sum(counted, one['allowed'])}"
            yield Placed("audit_miscounted", unit.relative, at, got)


def _sum(counted: Counter[str], allowed: list[str]) -> str:
    return " + ".join(f"{counted.get(name, 0)} {name}" for name in allowed)


def tables(unit: Unit) -> Iterator[Row]:
    """Every row of every table of a Markdown text."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(unit.raw.decode("utf-8", "replace"))
    heads: list[str] = []
    cells: list[str] = []
    line, head = 0, False
    for token in tokens:
        if token.type == "thead_open":
            heads, head = [], True
        elif token.type == "thead_close":
            head = False
        elif token.type == "tr_open":
            cells, line = [], (token.map or [line])[0]
        elif token.type == "inline" and token.level >= 4:
            (heads if head else cells).append(token.content.strip().strip("*`"))
        elif token.type == "tr_close" and not head:
            yield Row(unit.offset(line + 1, 0), dict(zip(heads, cells, strict=False)))
