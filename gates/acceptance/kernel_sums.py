"""Reads what `nsys stats --report cuda_gpu_kern_sum` wrote, as CSV or as JSON.

Columns are found by name, since some versions put GridXYZ and BlockXYZ between them; lines before
the header are the tool's talk; names are quoted and hold commas; numbers may have separators.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.exact import from_text
from trueup.gates.acceptance.inputs import Folder, parse
from trueup.gates.findings import show

_TOTAL = re.compile(r"Total Time \((ns|us|ms|s)\)")
_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_PLAIN = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
_FIRST = "Time (%)"


@dataclass(slots=True)
class Kernel:
    """All launches of one kernel. `total` is in nanoseconds."""

    name: str
    total: Fraction
    instances: int
    percent: Fraction | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Kernels:
    """One profile."""

    file: str
    by_name: Mapping[str, Kernel]
    percents: Fraction | None  # the sum of Time (%), which a table cut short does not reach
    rows: int

    @property
    def total(self) -> Fraction:
        """Time of all kernels, in nanoseconds."""
        return sum((kernel.total for kernel in self.by_name.values()), Fraction(0))


def read_kernels(folder: Folder, relative: str) -> Kernels:
    """A profile. Raises `AcceptanceError` if a row is not what its header says."""
    raw, name = folder.whole(relative, "kernel profile"), folder.shown(relative)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AcceptanceError("is not UTF-8", where=name, got=str(error.reason)) from None
    start = re.search(r"(?m)^[ \t]*[\[]\s*[\{\]]", text)
    header = re.search(rf'(?m)^"?{re.escape(_FIRST)}"?,', text)
    if start and (not header or start.start() < header.start()):
        rows = _json_rows(text[start.start() :], folder, relative)
    else:
        rows = _csv_rows(text, name, header.start() if header else None)
    return _kernels(rows, name)


def _json_rows(text: str, folder: Folder, relative: str) -> list[tuple[int | None, dict[str, Any]]]:
    name = folder.shown(relative)
    found = parse(text.rstrip().encode(), name, folder.path(relative), "JSON", folder.limits,
                  lambda fault: folder.report(name, fault))  # fmt: skip
    if not isinstance(found.data, list) or not all(isinstance(row, dict) for row in found.data):
        raise AcceptanceError("is no list of kernels", where=name, got=show(found.data))
    rows: list[tuple[int | None, dict[str, Any]]] = []
    for index, row in enumerate(found.data):
        values = {}
        for key, value in row.items():
            is_number = type(value) in (int, float) and key != "Name"
            values[key] = found.number((index, key)).text if is_number else value
        rows.append((found.where((index,)).line, values))
    return rows


def _csv_rows(text: str, name: str, start: int | None) -> list[tuple[int | None, dict[str, Any]]]:
    if start is None:
        raise AcceptanceError(
            "has no table of kernels", where=name, expected=f"a header that begins `{_FIRST}`",
            fix="nsys stats --report cuda_gpu_kern_sum --format csv REPORT",
        )  # fmt: skip
    before = text.count("\n", 0, start)
    reader = csv.reader(io.StringIO(text[start:], newline=""), strict=True)
    rows: list[tuple[int | None, dict[str, Any]]] = []
    try:
        header = next(reader)
        if len(set(header)) != len(header):
            raise AcceptanceError("names a column twice", where=f"{name}:{before + 1}",
                                  got=", ".join(header))  # fmt: skip
        for cells in reader:
            line = before + reader.line_num
            if not any(cell.strip() for cell in cells):
                break
            if cells[0] == _FIRST:
                raise AcceptanceError("holds two tables", where=f"{name}:{line}",
                                      fix="write one report into one file")  # fmt: skip
            if len(cells) != len(header):
                raise AcceptanceError(
                    "a row of another length", where=f"{name}:{line}", got=f"{len(cells)} cells",
                    expected=f"{len(header)}",
                )  # fmt: skip
            rows.append((line, dict(zip(header, cells, strict=True))))
        for cells in reader:
            if cells and cells[0] == _FIRST:
                raise AcceptanceError(
                    "holds two tables", where=f"{name}:{before + reader.line_num}",
                    fix="write one report into one file",
                )  # fmt: skip
    except csv.Error as error:
        place = f"{name}:{before + reader.line_num}"
        raise AcceptanceError("is not CSV", where=place, got=str(error)) from None
    return rows


def _kernels(rows: Iterable[tuple[int | None, dict[str, Any]]], file: str) -> Kernels:
    by_name: dict[str, Kernel] = {}
    percents: list[Fraction] = []
    count = 0
    for line, row in rows:
        count += 1
        place = file if line is None else f"{file}:{line}"
        kernel = _kernel(row, place, line)
        if kernel.percent is not None:
            percents.append(kernel.percent)
        known = by_name.setdefault(kernel.name, kernel)
        if known is not kernel:  # the same kernel with another grid
            known.total += kernel.total
            known.instances += kernel.instances
    if not by_name:
        raise AcceptanceError("lists no kernel", where=file, expected="at least one")
    whole = sum(percents, Fraction(0)) if len(percents) == count else None
    return Kernels(file, by_name, whole, count)


def _kernel(row: Mapping[str, Any], place: str, line: int | None) -> Kernel:
    totals = [found for key in row if (found := _TOTAL.fullmatch(key.strip()))]
    if len(totals) != 1 or "Instances" not in row or "Name" not in row:
        raise AcceptanceError(
            "lacks a column", where=place, got=", ".join(row),
            expected="Total Time (ns), Instances, Name",
            fix="use the report cuda_gpu_kern_sum",
        )  # fmt: skip
    name, unit = row["Name"], totals[0][1]
    if not isinstance(name, str) or not name.strip():
        raise AcceptanceError("a kernel without a name", where=place, got=show(name))
    total = _number(row[totals[0][0]], place, totals[0][0]) * _UNITS[unit]
    instances = _number(row["Instances"], place, "Instances")
    for value, key in ((total, totals[0][0]), (instances, "Instances")):
        if value.denominator != 1 and (unit == "ns" or key == "Instances"):
            raise AcceptanceError(f"{key} is no whole number", where=place, got=show(row[key]))
    percent = row.get(_FIRST)
    return Kernel(
        name.strip(), total, int(instances),
        None if percent in (None, "") else _number(percent, place, _FIRST), line,
    )  # fmt: skip


def _number(value: Any, place: str, key: str) -> Fraction:
    text = value.strip() if isinstance(value, str) else ""
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    exact = from_text(text) if _PLAIN.fullmatch(text) else None
    if exact is None:
        raise AcceptanceError(
            f"{key} is no number", where=place, got=show(value),
            expected="digits, with , between thousands and . before decimals",
        )  # fmt: skip
    return exact
