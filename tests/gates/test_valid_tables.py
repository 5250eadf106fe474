"""Any table that is written correctly is handed on exactly, in every form, wherever it is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.rows.reader import Reader
from trueup.gates.read.rows.table import is_unusable

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["a:b", "}, {", '"', "\\", "}\n{", "null", "NaN", "é", "\u2028", "[1]", "😀"]
)
NAMES = TEXT.filter(lambda name: not is_unusable(name))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
CELLS = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": FLOATS | st.integers(-(2**53), 2**53).map(float),
    "str": TEXT,
    "bool": st.booleans(),
}
Rows = list[dict[str, Any]]


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Rows of typed columns; each row has some of the keys, in an order of its own."""
    kinds = draw(st.dictionaries(NAMES, st.sampled_from(sorted(CELLS)), min_size=1, max_size=5))
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        keys = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, unique=True))
        rows.append({key: draw(CELLS[kinds[key]]) for key in keys})
    return rows


@st.composite
def with_nulls(draw: st.DrawFn) -> Rows:
    """The same with some cells null, none of them in the first row."""
    first, *rows = draw(tables())
    blank = draw(st.lists(st.booleans(), min_size=4, max_size=4))
    return [first, *({k: None if blank[i % 4] else v for i, (k, v) in enumerate(row.items())}
                     for row in rows)]  # fmt: skip


@st.composite
def nested_tables(draw: st.DrawFn) -> Rows:
    """The same columns under an object, and as the items of a list."""
    rows = draw(tables())
    length = draw(st.integers(0, 3))
    return [
        {"a": row, "b": [{"c": index + 0.5} for index in range(length)], "n": number}
        for number, row in enumerate(rows)
    ]


def written(rows: Rows, form: str, ascii_only: bool) -> str:
    def dump(value: Any, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=ascii_only, indent=indent)

    if form == "lines":
        return "".join(dump(row) + "\n" for row in rows)
    if form == "windows":
        return "".join(dump(row) + "\r\n" for row in rows)
    return dump(rows, 2 if form == "indented" else None)


def read(path: Path, size: int, flatten: bool = False) -> tuple[Rows, list[Fault]]:
    faults: list[Fault] = []
    limits = Limits(first_piece=size, piece=size, late_after=10**6)
    nesting = Nesting(flatten=flatten, separator="\x1e")
    reader = Reader(path, report=faults.append, limits=limits, nesting=nesting)
    return [row for batch in reader.batches() for row in batch.frame.to_dicts()], faults


FORMS = st.sampled_from(["lines", "windows", "list", "indented"])
SIZES = st.sampled_from([1, 30, 200, 1 << 20])
SLOW = settings(max_examples=150, deadline=None)


def known(rows: Rows) -> Rows:
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


@SLOW
@given(rows=tables(), form=FORMS, size=SIZES, ascii_only=st.booleans())
def test_rows_are_handed_on_exactly(
    rows: Rows, form: str, size: int, ascii_only: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("valid") / "x"
    path.write_bytes(written(rows, form, ascii_only).encode())
    got, faults = read(path, size)
    assert faults == []
    assert known(got) == rows


@SLOW
@given(rows=with_nulls(), form=FORMS, size=SIZES)
def test_nulls_that_are_allowed_are_told_from_absent_keys(
    rows: Rows, form: str, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("valid") / "x"
    path.write_bytes(written(rows, form, True).encode())
    faults: list[Fault] = []
    limits = Limits(first_piece=size, piece=size, late_after=10**6)
    reader = Reader(path, report=faults.append, limits=limits, nullable=["^(?s:.*)$"])
    got = [row for batch in reader.batches() for row in batch.frame.to_dicts()]
    assert faults == []
    assert known(got) == known(rows)
    assert reader.null_keys == {k for row in rows for k, v in row.items() if v is None}


@SLOW
@given(rows=nested_tables(), form=FORMS, size=SIZES, ascii_only=st.booleans())
def test_nested_rows_are_handed_on_exactly(
    rows: Rows, form: str, size: int, ascii_only: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("valid") / "x"
    path.write_bytes(written(rows, form, ascii_only).encode())
    got, faults = read(path, size, flatten=True)
    assert faults == []
    assert known(got) == [
        {f"a\x1e{key}": value for key, value in row["a"].items()}
        | {f"b[{i}]\x1ec": cell["c"] for i, cell in enumerate(row["b"])}
        | {"n": row["n"]}
        for row in rows
    ]
