"""CSV: no tier lets a fault through, and none changes a value."""

from __future__ import annotations

import csv
import io
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates import Unreadable
from trueup.gates.read.columns.csv_proof import Place, tier_a, tier_b
from trueup.gates.read.columns.csv_records import cut
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.tables import OpenTable, open_table

HEAD = b"step,loss,phase,open\n"
GOOD = [b"%d,%d.5,a:%d,true\n" % (step, step, step) for step in range(1, 5)]
PLACES = [Place("step", pl.Int64), Place("loss", pl.Float64), Place("phase", pl.String),
          Place("open", pl.Boolean)]  # fmt: skip
SMALL = Limits(first_piece=64, piece=64, late_after=10**6)
Row = dict[str, Any]


class Input(NamedTuple):
    """Row 3 of four; the kinds it must lead to; whether it is still delivered."""

    row: bytes
    kinds: frozenset[str]
    kept: bool


def one(row: bytes, *kinds: str, kept: bool = False) -> Any:
    return pytest.param(Input(row + b"\n", frozenset(kinds), kept), id=repr(row)[2:-1][:40])


def loss(text: bytes, *kinds: str, kept: bool = False) -> Any:
    return one(b"3,%s,a:3,true" % text, *kinds, kept=kept)


def step(text: bytes, *kinds: str, kept: bool = False) -> Any:
    return one(b"%s,3.5,a:3,true" % text, *kinds, kept=kept)


FAULTS = [
    *(loss(text, "lax_number", kept=True)
      for text in (b"+3.5", b"03.5", b"-03.5", b"00", b" 3.5", b"3.5 ", b"\t3.5", b"3.", b".5",
                   b"-.5", b"3.e5", b"+3", b"1.E-5")),
    *(loss(text, "mistyped") for text in (b"0x10", b"1_000", b"0b11")),
    *(loss(text, "non_finite_literal", kept=True)
      for text in (b"nan", b"NaN", b"-nan", b"inf", b"-Infinity", b"INF")),
    loss(b"1e999", "overflow", kept=True),
    loss(b"1e-999", "underflow", kept=True),
    loss(b"0." + b"0" * 400 + b"1", "underflow", kept=True),
    loss(b"9" * 500, "number_too_long"),
    loss(b"9007199254740993", "lost_digits"),
    loss(b"true", "mistyped"),
    loss(b"high", "mistyped"),
    loss(b"1.2.3", "mistyped"),
    loss(b"1e", "mistyped"),
    loss(b"-", "mistyped"),
    loss("٣".encode(), "mistyped"),  # a digit in Arabic writing
    loss(b"null", "null", kept=True),
    loss(b"N/A", "null", kept=True),
    loss(b"None", "python_literal"),
    loss(b"np.float64(3.5)", "python_literal"),
    loss(b"3.5\xff", "encoding"),
    loss(b"3.5\0", "nul"),
    step(b"+3", "lax_number", kept=True),
    step(b"03", "lax_number", kept=True),
    step(b" 3", "lax_number", kept=True),
    step(b"9223372036854775808", "int64", kept=True),
    step(b"-9223372036854775809", "int64", kept=True),
    step(b"1_000", "mistyped"),
    step(b"true", "mistyped"),
    one(b"3,3.5,a:3,1", "mistyped"),
    one(b"3,3.5,a:3,yes", "mistyped"),
    one(b"3,3.5,a:3", "short_row"),
    one(b"3", "short_row"),
    one(b"3,3.5,a:3,true,", "long_row"),
    one(b"3,3.5,a,3,true", "long_row"),
    one(b"3,3.5\n3,3.5,a:3,true,4,5", "short_row", "long_row"),
    one(b"3,3.5,a:3,true,4\n3,3.5,a:3", "short_row", "long_row"),
    one(b",,,", "empty_row"),
    one(b"", "blank"),
    one(b"  ", "blank"),
    one(b'3,3.5,"a:3,true', "open_quote"),
    one(b'3,3.5,a"3,true', "stray_quote"),
    one(b'3,3.5,"a"3,true', "stray_quote"),
    one(b"3,3.5,a\r3,true", "stray_cr"),
    one(b"3,3.5,\xfc,true", "encoding"),
    one(b"3,3.5,a\0,true", "nul"),
]  # fmt: skip
RIGHT = [
    step(b"9223372036854775807", kept=True),
    step(b"-9223372036854775808", kept=True),
    step(b"-0", kept=True),
    loss(b"-0.0", kept=True),
    loss(b"1e5", kept=True),
    loss(b"1E+05", kept=True),
    loss(b"1.5e-300", kept=True),
    loss(b"0", kept=True),
    loss(b"", kept=True),
    loss(b"4503599627370496", kept=True),
    step(b"", kept=True),
    one(b"3,3.5,,", kept=True),
    one(b"3,3.5, a b. ,TRUE", kept=True),
    one(b"3,3.5,03,False", kept=True),
    one(b"3,3.5,nan,tRuE", kept=True),
    one(b"3,3.5,.x.,true\r", kept=True),
    one(b'3,3.5,"a, b",true', kept=True),
    one(b'"3","3.5","a","true"', kept=True),
    one(b'3,3.5,"a\n""b""\n",true', kept=True),
    one(b'3,3.5,"a\r\nb",true', kept=True),
]


def opened(path: Path, limits: Limits | None = None, **more: Any) -> tuple[OpenTable, list[Fault]]:
    faults: list[Fault] = []
    return open_table(path, report=faults.append, limits=limits, **more), faults


def read(path: Path, limits: Limits | None = None, **more: Any) -> tuple[list[Row], list[Fault]]:
    table, faults = opened(path, limits, **more)
    rows = []
    for batch in table.batches():
        assert batch.frame.height == len(batch.rows) == len(batch.lines)
        for number, line, row in zip(batch.rows, batch.lines, batch.frame.to_dicts(), strict=True):
            rows.append({**row, "#": int(number), "line": int(line)})
    return rows, faults


def kinds(faults: list[Fault]) -> set[str]:
    return {fault.kind for fault in faults}


@pytest.mark.parametrize("limits", [None, SMALL], ids=["whole", "pieces"])
@pytest.mark.parametrize("given_", [*FAULTS, *RIGHT])
def test_the_fault_is_named_and_the_other_rows_are_kept(
    given_: Input, limits: Limits | None, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(HEAD + b"".join([*GOOD[:2], given_.row, GOOD[3]]))
    rows, faults = read(path, limits)
    assert kinds(faults) == given_.kinds
    assert len(rows) == 3 + given_.kept
    others = [{k: row[k] for k in ("step", "loss", "phase", "open")} for row in rows]
    assert others[:2] == [
        {"step": n, "loss": n + 0.5, "phase": f"a:{n}", "open": True} for n in (1, 2)
    ]
    assert others[-1]["step"] == 4
    assert all(fault.line == 4 or len(given_.kinds) > 1 for fault in faults)


@pytest.mark.parametrize("given_", [*FAULTS, *RIGHT])
def test_the_same_is_said_of_a_late_piece(given_: Input, tmp_path: Path) -> None:
    """The fast tiers have long taken over."""
    path = tmp_path / "x.csv"
    before = b"".join(b"%d,0.5,b,false\n" % n for n in range(-300, 0))
    path.write_bytes(HEAD + before + b"".join([*GOOD[:2], given_.row, GOOD[3]]))
    rows, faults = read(path, Limits(first_piece=4_000, piece=4_000, late_after=10**6))
    assert kinds(faults) == given_.kinds
    assert len(rows) == 303 + given_.kept
    assert all(fault.line is not None and fault.line > 300 for fault in faults)


@pytest.mark.parametrize("given_", FAULTS)
@pytest.mark.parametrize("tier", [tier_a, tier_b])
def test_a_fast_tier_alone_lets_nothing_through(given_: Input, tier: Any) -> None:
    """Pins what this version of polars refuses, and that the sums close the rest."""
    assert tier(b"".join([*GOOD[:2], given_.row, GOOD[3]]), PLACES) is None
    assert tier(b"".join([*GOOD[:2], given_.row.replace(b"\n", b""), b"\n"]), PLACES) is None


def test_the_fast_tiers_agree_where_both_answer() -> None:
    took = 0
    for param in RIGHT:
        text = b"".join([*GOOD[:2], param.values[0].row, GOOD[3]])
        fast, thorough = tier_a(text, PLACES), tier_b(text, PLACES)
        if fast is not None:
            took += 1
            assert thorough is not None
            assert fast.equals(thorough)
    assert took > 8


def test_a_blank_line_in_a_single_column_is_no_null() -> None:
    place = [Place("step", pl.Int64)]
    for tier in (tier_a, tier_b):
        assert tier(b"1\n\n2\n", place) is None
        assert tier(b"1\n2\n", place) is not None


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    text = (
        HEAD
        + b'1,1.5,"two\nlines",true\n2,bad,"\xc3\xa9, ""x""",true\n3,3.5,c,true\n4,nan,d,true\n'
    )
    path.write_bytes(text)
    rows, faults = read(path)
    assert [(row["#"], row["line"]) for row in rows] == [(1, 2), (3, 5), (4, 6)]
    assert [(f.kind, f.row, f.line, f.byte, f.step, f.key) for f in faults] == [
        ("mistyped", 2, 4, text.index(b"bad"), 2, "loss"),
        ("non_finite_literal", 4, 6, text.index(b"nan"), 4, "loss"),
    ]


def test_a_cell_on_a_later_line_of_its_row_has_that_line(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'phase,loss\n"a\nb",1.5\n"c\nd",nan\n')
    _, (fault,) = read(path)
    assert (fault.line, fault.row) == (5, 2)


def test_an_open_quote_costs_one_row_however_long_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    body = b"".join(b"%d,1.5,a,true\n" % n for n in range(2_000))
    path.write_bytes(HEAD + body + b'2000,1.5,"a,true\n' + body)
    for limits in (None, Limits(first_piece=1_000, piece=1_000, max_row=5_000)):
        rows, faults = read(path, limits)
        assert [(fault.kind, fault.line) for fault in faults] == [("open_quote", 2_002)]
        assert len(rows) == 4_000


def test_a_quoted_cell_may_be_longer_than_a_piece(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    cell = b"line\n" * 500
    path.write_bytes(HEAD + GOOD[0] + b'2,2.5,"' + cell + b'",true\n' + GOOD[2])
    rows, faults = read(path, Limits(first_piece=100, piece=100))
    assert faults == []
    assert [(row["step"], row["line"]) for row in rows] == [(1, 2), (2, 3), (3, 504)]
    assert rows[1]["phase"] == cell.decode()


def test_integers_become_floats_and_keep_their_digits(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"n\n1\n2\n3.5\n9007199254740993\n")
    rows, (fault,) = read(path, SMALL)
    assert [row["n"] for row in rows] == [1, 2, 3.5]
    assert (fault.kind, fault.got) == ("lost_digits", "9007199254740993")


def test_an_integer_past_64_bits_is_exact_and_each_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    numbers = [1, 2**63, -(2**100), 5, 2**64 - 1]
    path.write_text("n\n" + "".join(f"{n}\n" for n in numbers))
    for limits in (None, Limits(first_piece=8, piece=8)):
        rows, faults = read(path, limits)
        assert [row["n"] for row in rows] == numbers
        assert [fault.got for fault in faults] == [str(2**63), str(-(2**100)), str(2**64 - 1)]


def test_numbers_in_a_column_of_text_are_text(tmp_path: Path) -> None:
    """A commit of digits, a version, a device: CSV cannot say more, and nothing is lost."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"step,commit\n1,abc\n2,0123456\n3,fed\n4,true\n5,1e5\n6,xyz\n")
    rows, faults = read(path)
    assert [row["commit"] for row in rows] == ["abc", "0123456", "fed", "true", "1e5", "xyz"]
    assert faults == []


def test_most_cells_decide_what_a_column_is(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b,c\n1,true,x\n2,false,2\nx,3,y\n")
    rows, faults = read(path)
    assert [(fault.kind, fault.key, fault.row) for fault in faults] == [
        ("mistyped", "a", 3), ("mistyped", "b", 3)
    ]  # fmt: skip
    assert [row["c"] for row in rows] == ["x", "2"]


def test_a_column_that_was_never_filled_counts_as_null(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"step,a,b\n1,,\n2,,5\n")
    table, faults = opened(path)
    for _ in table.batches():
        pass
    assert table.reader.null_keys == {"a"}
    assert [(fault.kind, fault.key) for fault in faults] == [("empty_column", "a")]
    assert (table.rows, table.reader.columns, table.form) == (2, 2, "CSV")


def test_a_wide_file_of_empty_cells_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    wide = 2_000
    names = ",".join(f"k{i}" for i in range(wide))
    path.write_text(f"{names}\n" + ("1" + "," * (wide - 1) + "\n") * 500)
    table, _ = opened(path, Limits(max_cells=100_000))
    heights = [batch.frame.height for batch in table.batches()]
    assert sum(heights) == 500


def test_rows_without_any_value_are_no_crash(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n,\n,\n")
    rows, faults = read(path)
    assert rows == []
    assert [fault.kind for fault in faults] == ["empty_row", "empty_row"]


@pytest.mark.parametrize("size", [1, 2, 7, 40, 101, 1000])
@pytest.mark.parametrize("quoted", [False, True])
def test_pieces_may_be_cut_anywhere(size: int, quoted: bool, tmp_path: Path) -> None:
    rows = [
        {"step": n, "loss": n * 1.5, "phase": "a,\n" * (n % 3) if quoted else "a." * (n % 3)}
        for n in range(60)
    ]
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["step", "loss", "phase"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    got, faults = read(path, Limits(first_piece=size, piece=size, late_after=10**6))
    assert faults == []
    known = [(row["step"], row["loss"], row.get("phase") or "") for row in got]
    assert known == [tuple(row.values()) for row in rows]


# A slow strict reader made of the standard library alone.
TYPES = {"step": "number", "loss": "number", "phase": "str", "open": "bool"}
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
TOKENS = [b",", b"\n", b"\r", b"\0", b" ", b"\t", b"+", b"-", b".", b"e", b"E", b"0", b"00", b"x",
          b"nan", b"inf", b"1e999", b"1e-999", b"true", b"null", b"_", b"\xff", b"\xc3\xa9",
          b"9223372036854775808", b"9007199254740993", b"0x1", b";", b"'"]  # fmt: skip


def strict(line: bytes) -> Row | None:
    """The row, or None if it has any fault."""
    line = line.removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    cells = text.split(",")
    if len(cells) != 4 or "\r" in text or "\0" in text:
        return None
    row = {}
    for (key, group), cell in zip(TYPES.items(), cells, strict=True):
        if cell:
            value = _strict_cell(cell, group)
            if value is None:
                return None
            row[key] = value
    return row or None


def _strict_cell(cell: str, group: str) -> Any:
    if group == "str":
        return cell
    if group == "bool":
        return {"true": True, "false": False}.get(cell.lower())
    if not NUMBER.fullmatch(cell):
        return None
    value = float(cell)
    if math.isinf(value) or (value == 0 and cell.lower().split("e")[0].strip("-0.")):
        return None
    if not any(char in cell for char in ".eE") and int(cell) != int(value):
        return None
    return value


@st.composite
def mutants(draw: st.DrawFn, tokens: list[bytes]) -> bytes:
    text = b"".join(GOOD)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        action = draw(st.integers(0, 2))
        if action == 0:
            text = text[:at] + draw(st.sampled_from(tokens)) + text[at:]
        elif action == 1:
            text = text[:at] + text[at + draw(st.integers(1, 8)) :]
        else:
            span = text[at : at + draw(st.integers(1, 20))]
            to = draw(st.integers(0, len(text)))
            text = text[:to] + span + text[to:]
    return text


QUICK = settings(
    max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LEARN = b"0.5,0.25,z,true\n-1.5,0.25,z,true\n"  # both numbers are floats from the first row on


@QUICK
@given(mutant=mutants(TOKENS), size=st.sampled_from([30, 70, 1 << 16]))
def test_rows_are_accepted_exactly_where_a_strict_reader_accepts_them(
    mutant: bytes, size: int, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(HEAD + LEARN + mutant)
    rows, faults = read(path, Limits(first_piece=len(LEARN), piece=size, late_after=10**6))
    body = (LEARN + mutant).rstrip(b"\0")
    lines = body.split(b"\n")
    lines = lines[:-1] if body.endswith(b"\n") else lines
    want = {number: strict(line) for number, line in enumerate(lines, 2)}
    flagged = {fault.line for fault in faults if fault.kind != "no_newline"} - {None}
    assert {number for number, row in want.items() if row is None} == flagged
    for row in rows:
        right = want[row["line"]]
        if right is not None:
            known = {k: v for k, v in row.items() if v is not None and k in TYPES}
            assert known == right
    assert {n for n, row in want.items() if row is not None} <= {r["line"] for r in rows}


@QUICK
@given(mutant=mutants([*TOKENS, b'"', b'""', b'","', b'"\n']), size=st.sampled_from([30, 1 << 16]))
def test_with_quotes_nothing_crashes_and_clean_files_are_read_as_the_library_does(
    mutant: bytes, size: int, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(HEAD + LEARN + mutant)
    rows, faults = read(path, Limits(first_piece=len(LEARN), piece=size, late_after=10**6))
    assert [row["step"] for row in rows[:2]] == [0.5, -1.5]
    if not faults:
        text = (HEAD + LEARN + mutant).decode()
        theirs = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
        assert [row["phase"] or "" for row in rows] == [row["phase"] for row in theirs]


@settings(max_examples=200, deadline=None)
@given(text=st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(
    text: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "x.csv"
    path.write_bytes(text)
    try:
        read(path, SMALL)
    except Unreadable:
        return


@settings(max_examples=300, deadline=None)
@given(text=st.text('a1,"\n\r', max_size=40))
def test_records_cover_the_text_without_a_gap(text: str) -> None:
    raw = text.encode()
    found = cut(raw, 100, 1, more=False)
    assert found.used == len(raw)
    assert found.lines == raw.count(b"\n")
    starts = [record.byte - 100 for record in found.records]
    assert starts == sorted(set(starts))
    assert all(raw[at - 1 : at] in (b"", b"\n") for at in starts)
