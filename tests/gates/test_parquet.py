"""Parquet: types exactly, NaN whoever wrote it, damage as a finding, memory by row groups."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import io
import json
import os
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from trueup.gates import Unreadable
from trueup.gates.read.columns import parquet_reader
from trueup.gates.read.columns.footer import read_footer
from trueup.gates.read.columns.pages import flaw_of_pages
from trueup.gates.read.columns.quiet import guarded
from trueup.gates.read.columns.thrift import Compact, ThriftError
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.nesting import Nesting
from trueup.gates.read.sources.source import FileSource
from trueup.gates.read.tables import OpenTable, open_table

NAN, INF = float("nan"), float("inf")
UTC = dt.UTC


def written(path: Path, table: pa.Table | pl.DataFrame, **more: Any) -> Path:
    if isinstance(table, pl.DataFrame):
        table.write_parquet(path, **more)
    else:
        pq.write_table(table, path, **more)
    return path


def opened(path: Path, **more: Any) -> tuple[OpenTable, list[Fault]]:
    faults: list[Fault] = []
    return open_table(path, report=faults.append, **more), faults


def read(path: Path, **more: Any) -> tuple[list[dict[str, Any]], list[Fault]]:
    table, faults = opened(path, **more)
    rows = []
    for batch in table.batches():
        assert not batch.lines.any()
        for number, row in zip(batch.rows.tolist(), batch.frame.to_dicts(), strict=True):
            rows.append({**row, "#": number})
    return rows, faults


# What each type must become, stated by hand. `None` as a kind: no fault.
TYPES: list[tuple[str, pa.Array, list[Any], str | None]] = [
    ("int8", pa.array([-128, 127], pa.int8()), [-128, 127], None),
    ("int64", pa.array([-(2**63), 2**63 - 1]), [-(2**63), 2**63 - 1], None),
    ("uint32", pa.array([0, 2**32 - 1], pa.uint32()), [0, 2**32 - 1], None),
    ("uint64", pa.array([1, 2**63 - 1], pa.uint64()), [1, 2**63 - 1], None),
    ("uint64-past", pa.array([1, 2**64 - 1], pa.uint64()), [1, 2**64 - 1], "int64"),
    ("float16", pa.array([0.5, 1.5], pa.float16()), [0.5, 1.5], None),
    ("float32", pa.array([0.1, 1.5], pa.float32()), [0.10000000149011612, 1.5], None),
    ("float64", pa.array([0.1, 1e300]), [0.1, 1e300], None),
    ("nan", pa.array([0.1, NAN]), [0.1, NAN], "non_finite_literal"),
    ("infinity", pa.array([0.1, -INF]), [0.1, -INF], "non_finite_literal"),
    ("float32-nan", pa.array([0.5, NAN], pa.float32()), [0.5, NAN], "non_finite_literal"),
    ("bool", pa.array([True, False]), [True, False], None),
    ("text", pa.array(["a", "é"]), ["a", "é"], None),
    ("large-text", pa.array(["a", "b"], pa.large_string()), ["a", "b"], None),
    ("dictionary", pa.array(["a", "b"]).dictionary_encode(), ["a", "b"], None),
    ("dictionary-int", pa.array([5, 6]).dictionary_encode(), [5, 6], None),
    ("decimal", pa.array([Decimal("1.10"), Decimal("-2.25")]), [1.1, -2.25], None),
    ("decimal-whole", pa.array([Decimal(7), Decimal(-8)], pa.decimal128(20, 0)), [7, -8], None),
    ("decimal-past", pa.array([Decimal(7), Decimal(2**70)], pa.decimal128(38, 0)), [7, 2**70],
     "int64"),
    ("date", pa.array([dt.date(2026, 1, 31)] * 2), ["2026-01-31"] * 2, None),
    ("zoned-us", pa.array([dt.datetime(2026, 1, 31, 12)] * 2, pa.timestamp("us", tz="UTC")),
     ["2026-01-31T12:00:00.000000+00:00"] * 2, None),
    ("zoned-ns", pa.array([dt.datetime(2026, 1, 31, 12)] * 2, pa.timestamp("ns", tz="UTC")),
     ["2026-01-31T12:00:00.000000000+00:00"] * 2, None),
    ("zoned-berlin", pa.array([dt.datetime(2026, 1, 31, 12)] * 2,
                              pa.timestamp("ms", tz="Europe/Berlin")),
     ["2026-01-31T13:00:00.000+01:00"] * 2, None),
    ("naive", pa.array([dt.datetime(2026, 1, 31, 12)] * 2), ["2026-01-31T12:00:00.000000"] * 2,
     "naive_timestamp"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "want", "kind"), [t[1:] for t in TYPES], ids=[t[0] for t in TYPES]
)
def test_each_type_becomes_exactly_one_of_four(
    cells: pa.Array, want: list[Any], kind: str | None, tmp_path: Path
) -> None:
    rows, faults = read(written(tmp_path / "x.parquet", pa.table({"x": cells})))
    got = [row["x"] for row in rows]
    assert [type(value) for value in got] == [type(value) for value in want]
    assert json.dumps(got) == json.dumps(want)
    assert [fault.kind for fault in faults] == ([] if kind is None else [kind])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([b"a", b"\xff"]), "column_type"),
        (pa.array([dt.timedelta(1)] * 2), "column_type"),
        (pa.array([dt.time(1)] * 2), "column_type"),
        (pa.array([{"a": 1}] * 2), "nested"),
        (pa.array([[1, 2]] * 2), "nested"),
        (pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())), "nested"),
    ],
    ids=["bytes", "span", "time", "struct", "list", "map"],
)
def test_a_type_no_rule_reads_is_left_out_and_reported_once(
    column: pa.Array, kind: str, tmp_path: Path
) -> None:
    path = written(
        tmp_path / "x.parquet", pa.table({"step": [1, 2], "x": column}), row_group_size=1
    )
    rows, (fault,) = read(path)
    assert rows == [{"step": 1, "#": 1}, {"step": 2, "#": 2}]
    assert (fault.kind, fault.key) == (kind, "x")


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("writer", ["polars", "pyarrow"])
def test_nan_is_found_whoever_wrote_it_and_whatever_the_statistics_say(
    writer: str, statistics: bool, tmp_path: Path
) -> None:
    losses = [NAN if n % 100 == 7 else n / 8 for n in range(1_000)]
    frame = pl.DataFrame({"step": range(1_000), "loss": losses})
    if writer == "polars":
        path = written(tmp_path / "x.parquet", frame, statistics=statistics, row_group_size=300)
    else:
        path = written(tmp_path / "x.parquet", frame.to_arrow(), write_statistics=statistics)
    if statistics:
        chunk = pq.read_metadata(path).row_group(0).column(1).statistics
        assert chunk.max == chunk.max  # the trap: the largest value is a number
    _, faults = read(path)
    assert {fault.kind for fault in faults} == {"non_finite_literal"}
    assert sum(fault.count for fault in faults) == 10
    assert (faults[0].row, faults[0].step, faults[0].key) == (8, 7, "loss")
    assert faults[-1].row == 908


def test_many_cells_of_one_fault_are_counted_not_listed(tmp_path: Path) -> None:
    frame = pl.DataFrame({"step": range(100_000), "loss": [NAN] * 100_000})
    _, faults = read(written(tmp_path / "x.parquet", frame, row_group_size=50_000))
    assert len(faults) == 12
    assert sum(fault.count for fault in faults) == 100_000
    assert faults[-1].row == 100_000


def test_nulls_from_pandas_may_be_nan_unless_the_profile_allows_them(tmp_path: Path) -> None:
    import pandas as pd

    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"step": [0, 1, 2], "loss": [5.5, NAN, 5.0], "note": [None, "a", None]})
    frame.to_parquet(path)
    _, (fault,) = read(path)
    assert (fault.kind, fault.row, fault.step, fault.key) == ("maybe_nan", 2, 1, "loss")
    assert read(path, nullable=["^loss$"])[1] == []
    pq.write_table(pa.table({"step": [0, 1], "loss": pa.array([5.5, None])}), path)
    assert read(path)[1] == []


def test_decimals_that_a_double_cannot_hold_are_withheld(tmp_path: Path) -> None:
    cells = pa.array([Decimal("0.1"), Decimal("9007199254740992.1"), Decimal("-0.3")])
    rows, (fault,) = read(written(tmp_path / "x.parquet", pa.table({"x": cells})))
    assert [(row["#"], row["x"]) for row in rows] == [(1, 0.1), (3, -0.3)]
    assert (fault.kind, fault.row, fault.got) == ("lost_digits", 2, "9007199254740992.1")


def test_an_integer_past_64_bits_widens_the_column_from_there_on(tmp_path: Path) -> None:
    cells = pa.array([1, 2, 2**64 - 1, 4], pa.uint64())
    path = written(tmp_path / "x.parquet", pa.table({"x": cells}), row_group_size=2)
    table, (faults) = opened(path)
    batches = [batch.frame for batch in table.batches()]
    assert [frame.schema["x"] for frame in batches] == [pl.Int64, pl.Int128]
    assert [frame["x"].to_list() for frame in batches] == [[1, 2], [2**64 - 1, 4]]
    assert [fault.row for fault in faults] == [3]


def test_rows_are_numbered_over_groups_and_slices(tmp_path: Path) -> None:
    frame = pl.DataFrame({"step": range(100), "loss": [0.5] * 100})
    path = written(tmp_path / "x.parquet", frame, row_group_size=30)
    table, faults = opened(path, limits=Limits(max_cells=14))
    numbers = [number for batch in table.batches() for number in batch.rows.tolist()]
    assert numbers == list(range(1, 101))
    assert (table.rows, table.reader.columns, table.form, faults) == (100, 2, "parquet", [])


def test_a_large_group_is_read_a_few_columns_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({name: [n / 7 for n in range(50)] for name in "abcdef"})
    path = written(tmp_path / "x.parquet", frame)
    whole = read(path)
    monkeypatch.setattr(parquet_reader, "_AT_ONCE", 700)
    table, _ = opened(path)
    reader = table.reader
    assert isinstance(reader, parquet_reader.ParquetReader)
    bins = list(reader._bins(reader._footer.groups[0]))
    assert [place for places in bins for place in places] == list(range(6))
    assert len(bins) > 2
    assert read(path) == whole


def test_a_column_that_was_never_filled_counts_as_null(tmp_path: Path) -> None:
    empty = pl.Series([None, None], dtype=pl.Float64)
    frame = pl.DataFrame({"step": [1, 2], "a": empty, "b": [None, None], "c": [None, 5]})
    table, faults = opened(written(tmp_path / "x.parquet", frame), nullable=["^a$"])
    (batch,) = table.batches()
    assert batch.frame.columns == ["step", "c"]
    assert table.reader.null_keys == {"a", "b"}
    assert [(fault.kind, fault.key) for fault in faults] == [("empty_column", "b")]


def test_a_row_of_nulls_holds_nothing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"step": [1, None, 3], "x": [1.5, None, None]})
    rows, (fault,) = read(written(tmp_path / "x.parquet", frame))
    assert [row["#"] for row in rows] == [1, 3]
    assert (fault.kind, fault.row, fault.key) == ("empty_row", 2, None)


def test_a_late_key_is_reported_as_in_other_forms(tmp_path: Path) -> None:
    cells = [None] * 2_500 + [1.5] * 10
    frame = pl.DataFrame({"step": range(2_510), "x": cells})
    table, faults = opened(written(tmp_path / "x.parquet", frame, row_group_size=1_000))
    assert sum(batch.frame.height for batch in table.batches()) == 2_510
    assert [(fault.kind, fault.row, fault.key) for fault in faults] == [("late_key", 2_501, "x")]
    assert table.reader.late == 1


NESTED: list[dict[str, Any]] = [
    {"step": 1, "eval": {"loss": 5.5, "inner": {"n": 1}}, "share": [0.25, 0.75]},
    {"step": 2, "eval": {"loss": 5.25, "inner": {"n": 2}}, "share": [0.5, 0.5]},
    {"step": 3, "eval": {"loss": 5.0}, "share": [0.5, 0.5]},
]


@pytest.mark.parametrize("writer", ["polars", "pyarrow"])
def test_declared_nesting_gives_the_columns_that_json_gives(writer: str, tmp_path: Path) -> None:
    lines = tmp_path / "x.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in NESTED))
    path = tmp_path / "x.parquet"
    if writer == "polars":
        pl.DataFrame(NESTED, infer_schema_length=None).write_parquet(path)
    else:
        pq.write_table(pa.Table.from_pylist(NESTED), path)
    want, no_faults = [], []
    table, no_faults = opened(lines, nesting=Nesting(flatten=True))
    for batch in table.batches():
        want += batch.frame.to_dicts()
    rows, faults = read(path, nesting=Nesting(flatten=True))
    assert no_faults == faults == []
    assert [{k: v for k, v in row.items() if k != "#"} for row in rows] == want
    assert rows[0]["eval.inner.n"] == 1
    assert rows[0]["share[1]"] == 0.75


def test_lists_of_other_lengths_withhold_their_rows(tmp_path: Path) -> None:
    frame = pl.DataFrame({"step": [1, 2, 3], "x": [[1, 2], [1, 2, 3], [5, 6]]})
    path = written(tmp_path / "x.parquet", frame)
    rows, (fault,) = read(path, nesting=Nesting(flatten=True))
    assert [(row["#"], row["x[0]"], row["x[1]"]) for row in rows] == [(1, 1, 2), (3, 5, 6)]
    assert (fault.kind, fault.row, fault.key) == ("list_length", 2, "x")
    _, faults = read(path, nesting=Nesting(flatten=True, max_items=2))
    assert [fault.kind for fault in faults] == ["list_too_long"]


def test_two_places_of_one_name_clash(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [{"b": 1}], "a.b": [2]})
    rows, (fault,) = read(written(tmp_path / "x.parquet", frame), nesting=Nesting(flatten=True))
    assert (fault.kind, fault.key) == ("key_clash", "a.b")
    assert rows == [{"a.b": 1, "#": 1}]


def test_a_damaged_group_costs_its_rows_only(tmp_path: Path) -> None:
    frame = pl.DataFrame({"step": range(90), "loss": [n / 7 for n in range(90)]})
    path = written(tmp_path / "x.parquet", frame, row_group_size=30)
    content = bytearray(path.read_bytes())
    group = pq.read_metadata(path).row_group(1).column(1)
    at = group.dictionary_page_offset or group.data_page_offset
    content[at + 40 : at + 60] = b"\xff" * 20
    path.write_bytes(content)
    rows, (fault,) = read(path)
    assert [row["#"] for row in rows] == [*range(1, 31), *range(61, 91)]
    assert (fault.kind, fault.row, fault.count) == ("damaged_rows", 31, 30)


def test_a_panic_of_the_engine_is_a_refusal_and_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A Rust panic is no `Exception`: what does not expect it dies of it."""
    assert not issubclass(pl.exceptions.PanicException, Exception)
    path = written(tmp_path / "x.parquet", pl.DataFrame({"step": [1, 2]}))

    def panic(*_: object) -> pl.DataFrame:
        os.write(2, b"thread 'main' panicked at page.rs:1:1\nstack backtrace:\n")
        raise pl.exceptions.PanicException("assertion failed")

    monkeypatch.setattr(parquet_reader.ParquetReader, "_slice", panic)
    with pytest.raises(Unreadable, match="no row could be read"):
        read(path)
    assert capfd.readouterr().err == ""


def test_what_else_is_printed_meanwhile_is_not_lost(capfd: pytest.CaptureFixture[str]) -> None:
    with guarded():
        os.write(2, b"a warning\n")
    assert capfd.readouterr().err == "a warning\n"


@pytest.mark.parametrize("writer", ["polars", "pyarrow", "pyarrow-v2", "groups"])
def test_good_pages_pass_and_each_lie_is_found(writer: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"step": range(500), "loss": [n / 7 for n in range(500)]})
    path = tmp_path / "x.parquet"
    if writer == "polars":
        frame.write_parquet(path)
    elif writer == "groups":
        frame.write_parquet(path, row_group_size=100, data_page_size=200)
    else:
        version = "2.0" if writer == "pyarrow-v2" else "1.0"
        pq.write_table(
            frame.to_arrow(), path, data_page_version=version, write_page_checksum=True,
            data_page_size=300,
        )  # fmt: skip
    source = FileSource(path, "x")
    chunks = [c for group in read_footer(source, "x", Limits()).groups for c in group.chunks]
    assert [flaw_of_pages(source, chunk) for chunk in chunks] == [None] * len(chunks)
    for field, value in (("values", 501), ("compressed", 20), ("uncompressed", 20)):
        lie = dataclasses.replace(chunks[0], **{field: value})
        assert flaw_of_pages(source, lie) is not None


def test_a_footer_that_promises_more_than_memory_is_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"step": range(100_000)})
    path = written(tmp_path / "x.parquet", frame)
    with pytest.raises(Unreadable, match="too large to be held in memory"):
        opened(path, limits=Limits(max_chunk=10_000))
    with pytest.raises(Unreadable, match="too many columns"):
        opened(
            written(path, pl.DataFrame({f"k{i}": [1] for i in range(30)})),
            limits=Limits(max_keys=20),
        )
    with pytest.raises(Unreadable, match="footer that does not fit"):
        opened(path, limits=Limits(max_footer=100))


def test_structures_are_bounded_in_depth_and_size() -> None:
    deep = b"\x1c" * 100
    with pytest.raises(ThriftError, match="levels"):
        Compact(deep).struct({})
    with pytest.raises(ThriftError, match="levels"):
        Compact(b"\x19" * 5000).struct({1: ("x", None)})  # lists of lists, found by the fuzzer
    with pytest.raises(ThriftError, match="a list of"):
        Compact(b"\x19\xf8\xff\xff\xff\x7f").struct({1: ("x", None)})
    with pytest.raises(ThriftError, match="64 bits"):
        Compact(b"\x16" + b"\xff" * 11).struct({1: ("x", None)})
    with pytest.raises(ThriftError, match="cut off"):
        Compact(b"\x16").struct({1: ("x", None)})


def _bases() -> list[bytes]:
    frame = pl.DataFrame({"step": range(6), "loss": [n / 7 for n in range(6)], "p": list("abcabc")})
    table = frame.to_arrow()
    out = []
    for more in ({}, {"row_group_size": 2, "compression": "snappy"}):
        file = io.BytesIO()
        frame.write_parquet(file, **more)  # type: ignore[arg-type]
        out.append(file.getvalue())
    for version, packed in (("1.0", "snappy"), ("2.0", "none")):
        file = io.BytesIO()
        pq.write_table(table, file, data_page_version=version, compression=packed)
        out.append(file.getvalue())
    return out


@pytest.mark.parametrize("seed", range(4))
def test_mutants_are_read_or_refused_and_never_crash(seed: int, tmp_path: Path) -> None:
    """Half of the changes hit the footer, half the pages."""
    rng, path, bases = random.Random(seed), tmp_path / "x.parquet", _bases()
    for _ in range(120):
        content = bytearray(rng.choice(bases))
        start = len(content) - 8 - int(struct.unpack("<I", content[-8:-4])[0])
        for _ in range(rng.randint(1, 3)):
            low, high = (4, start) if rng.random() < 0.5 else (start, len(content) - 8)
            at = rng.randrange(low, high)
            if rng.random() < 0.7:
                content[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
            else:
                del content[at : at + rng.randint(1, 4)]
        path.write_bytes(content)
        with contextlib.suppress(Unreadable):
            read(path)
