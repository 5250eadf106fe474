"""The header of a CSV file: names of columns, or a clear word on why there are none."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass

from trueup.gates.errors import Unreadable
from trueup.gates.findings import show
from trueup.gates.read.columns.csv_cells import is_like_a_number
from trueup.gates.read.columns.csv_records import RECORD, field_offsets
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.rows.table import is_unusable
from trueup.gates.read.sources.source import Source

_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_COMMAS = "write it with commas: csv.DictWriter(file, keys), or DataFrame.write_csv(path)"


@dataclass(frozen=True, slots=True)
class Header:
    """`names` by place; None where a column cannot be told apart, and is left out."""

    names: tuple[str | None, ...]
    end: int  # the offset at which rows begin
    lines: int  # that it takes


def read_header(
    source: Source, start: int, end: int, name: str, limits: Limits, fault: Callable[[Fault], None]
) -> Header:
    """The first record of the file. Raises `Unreadable` if it gives no names."""
    raw = source.read_at(min(limits.max_row, end - start), start)
    found = RECORD.match(raw)
    if found is None or not found[0].endswith(b"\n"):
        raise Unreadable(
            "has no complete header", where=f"{name}:1", got=show(raw[:60]),
            expected="a first line of names, separated by commas",
            fix="the file is cut off in its first line, or a quote in it is not closed",
        )  # fmt: skip
    line = found[0].removesuffix(b"\n").removesuffix(b"\r")
    cells = _cells(line, name)
    _refuse(cells, name, limits)
    names = _names(cells, field_offsets(line), start, fault)
    return Header(names, start + found.end(), found[0].count(b"\n"))


def _cells(line: bytes, name: str) -> list[str]:
    try:
        text = line.decode("utf-8")
        if "\0" in text or "\r" in text:
            raise csv.Error("a NUL byte or a carriage return in the header")
        return next(csv.reader([text], strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise Unreadable(
            "has a header that cannot be read", where=f"{name}:1",
            got=f"{error}: {show(line[:60])}",
            expected="UTF-8 names, separated by commas",
        ) from None  # fmt: skip


def _refuse(cells: list[str], name: str, limits: Limits) -> None:
    """What is no header at all."""
    other = next((mark for mark in _OTHERS if len(cells) == 1 and mark in cells[0]), None)
    if other is not None:
        raise Unreadable(
            "is not separated by commas", where=f"{name}:1",
            got=f"{_OTHERS[other]} in {show(cells[0])}",
            expected="commas; other separators are not guessed", fix=_COMMAS,
        )  # fmt: skip
    if not any(cell.strip() for cell in cells) or all(is_like_a_number(cell) for cell in cells):
        raise Unreadable(
            "has no header", where=f"{name}:1", got=show(",".join(cells)),
            expected="the names of the columns in the first line",
            fix="write the header: csv.DictWriter(file, keys).writeheader()",
        )  # fmt: skip
    if len(cells) > limits.max_keys:
        raise Unreadable(
            "has too many columns", where=f"{name}:1", got=str(len(cells)),
            expected=f"at most {limits.max_keys}", fix="put what varies into values, not into keys",
        )  # fmt: skip


def _names(
    cells: list[str], offsets: list[int], start: int, fault: Callable[[Fault], None]
) -> tuple[str | None, ...]:
    """The names that can be used; the others are reported and left out."""
    out: list[str | None] = []
    places: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        places.setdefault(cell, []).append(place + 1)
    for place, cell in enumerate(cells):
        byte = start + offsets[place]
        same = places[cell]
        if len(same) > 1 and cell:
            if same[0] == place + 1:
                got = f"{show(cell)} in columns {', '.join(map(str, same[:20]))}"
                fault(Fault("duplicate_column", got, 1, byte, key=cell))
            out.append(None)
        elif is_unusable(cell) or cell != cell.strip():
            kind = "unusable_key" if is_unusable(cell) else "column_name"
            got = f"{show(cell)} in column {place + 1}"
            fault(Fault(kind, got, 1, byte, key=cell or None))
            out.append(None)
        else:
            out.append(cell)
    return tuple(out)
