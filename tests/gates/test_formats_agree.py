"""The verdict is the same in whatever form the same rows are stored.

Each fixture of telemetry that holds rows is stored anew in every form. What a form cannot say is
listed here with its reason: nothing else may differ, neither the verdict nor one rule.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates import Unreadable, judge
from trueup.gates.findings import Verdict

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SMALL = str(FIXTURES / "tables" / "profile.toml")
Rows = list[dict[str, Any]]


def rows_of(path: Path) -> Rows | None:
    """The rows of a fixture, if its text is a list or lines of objects with unique keys."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        text = path.read_bytes().decode()
        lines = [text] if text.startswith("[") else text.splitlines()
        values = [json.loads(line, object_pairs_hook=unique) for line in lines]
    except ValueError:
        return None
    rows = values[0] if text.startswith("[") else values
    return rows if rows and all(isinstance(row, dict) for row in rows) else None


def keys_of(rows: Rows) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def as_list(rows: Rows) -> bytes:
    return json.dumps(rows).encode()


def as_lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_csv(rows: Rows) -> bytes:
    """By the standard library: an absent key and a null are both an empty cell."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, keys_of(rows))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def as_polars(rows: Rows) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(out)
    return out.getvalue()


def as_pyarrow(rows: Rows) -> bytes:
    out = io.BytesIO()
    keys = keys_of(rows)
    pq.write_table(pa.Table.from_pylist([{key: row.get(key) for key in keys} for row in rows]), out)
    return out.getvalue()


FORMS: dict[str, tuple[str, Callable[[Rows], bytes]]] = {
    "lines": ("telemetry.jsonl", as_lines),
    "gzip": ("telemetry.json.gz", lambda rows: gzip.compress(as_list(rows))),
    "zstandard": ("telemetry.jsonl.zst", lambda rows: zstandard.compress(as_lines(rows))),
    "csv": ("telemetry.csv", as_csv),
    "csv.gz": ("telemetry.csv.gz", lambda rows: gzip.compress(as_csv(rows))),
    "polars": ("telemetry.parquet", as_polars),
    "pyarrow": ("telemetry.parquet", as_pyarrow),
}
FEW = ("lines", "zstandard", "csv", "polars", "pyarrow")  # the others are in the properties

# Where a form cannot say what JSON says: the rules found instead, and why.
# None: the writer refuses the rows.
CAST = "polars casts the cell to the type of its column before it writes"
ONE_TYPE = "a column has one type: the writer refuses the rows"
QUOTES = "CSV has no types: text that reads as a number or a truth value is one"
NESTED = "a nested cell is its text in CSV"
OTHER: dict[tuple[str, str], tuple[list[str] | None, str]] = {
    ("boolean_in_numbers", "polars"): (["TEL009"], f"{CAST}: true is 1.0"),
    ("boolean_in_numbers", "pyarrow"): (["TEL009"], "pyarrow casts as polars does"),
    ("loss_text", "csv"): ([], QUOTES),
    ("switch_as_text", "csv"): ([], QUOTES),
    ("threshold_as_text", "csv"): ([], QUOTES),
    ("string_in_numbers", "csv"): (["TEL009"], QUOTES),
    ("string_in_numbers", "polars"): (["GAT003", "TEL007", "TEL008"], f"{CAST}: all are text"),
    ("string_in_numbers", "pyarrow"): (None, ONE_TYPE),
    ("number_in_strings", "csv"): (["TEL018"], "a number in a column of text is text"),
    ("number_in_strings", "polars"): (["TEL018"], f"{CAST}: 2 is text"),
    ("number_in_strings", "pyarrow"): (None, ONE_TYPE),
    ("lost_digits", "polars"): (["TEL009"], f"{CAST}: the digits are lost already"),
    ("lost_digits", "pyarrow"): (None, ONE_TYPE),
    ("number_too_long", "polars"): (None, "no type is that long"),
    ("number_too_long", "pyarrow"): (None, "no type is that long"),
    ("past_int64", "pyarrow"): (None, "pyarrow has no integers of 128 bits"),
    ("nested_list", "csv"): (["RDR014"], NESTED),
    ("nested_list", "polars"): (None, ONE_TYPE),
    ("nested_list", "pyarrow"): (None, ONE_TYPE),
    ("nested_object", "csv"): (["RDR014"], NESTED),
    ("nested_object", "polars"): (["GAT003", "RDR015", "TEL005"], f"{CAST}: all are structs"),
    ("nested_object", "pyarrow"): (None, ONE_TYPE),
    ("too_deep", "csv"): (["RDR014"], NESTED),
    ("too_deep", "polars"): (None, ONE_TYPE),
    ("too_deep", "pyarrow"): (None, ONE_TYPE),
    ("null_loss", "csv"): (["TEL005"], "an empty cell is an absent key"),
    ("null_loss", "polars"): (["TEL005"], "a null is an absent key"),
    ("null_loss", "pyarrow"): (["TEL005"], "a null is an absent key"),
    ("surrogate", "csv"): (["RDR002"], "half a character has no UTF-8 form"),
    ("surrogate", "polars"): (None, "half a character has no UTF-8 form"),
    ("surrogate", "pyarrow"): (None, "half a character has no UTF-8 form"),
}

STORED = {
    path.parent.name: rows
    for path in sorted(FIXTURES.glob("telemetry/*/telemetry.*"))
    if (rows := rows_of(path)) is not None
}


def store(folder: Path, form: str, rows: Rows) -> Path:
    name, write = FORMS[form]
    path = folder / form / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(write(rows))
    return path


def ids(verdict: Verdict) -> list[str]:
    return sorted({finding.rule for finding in verdict.findings})


def facts(verdict: Verdict) -> list[tuple[Any, ...]]:
    """What was found where. A name that cannot be used stands in the header, not in a step."""
    found = [
        (f.rule, str(f.where.key), (f.where.step or 0) if f.rule != "RDR027" else 0, f.count)
        for f in verdict.findings
    ]
    return sorted(found)


@pytest.mark.parametrize("fixture", STORED)
def test_a_fixture_has_one_verdict_in_all_forms(fixture: str, tmp_path: Path) -> None:
    rows = STORED[fixture]
    (tmp_path / "telemetry.json").write_bytes(as_list(rows))
    want = judge(tmp_path / "telemetry.json")
    for form in FEW:
        other = OTHER.get((fixture, form))
        if other is not None and other[0] is None:
            with pytest.raises(Exception):  # noqa: B017, PT011  each library has its own
                store(tmp_path, form, rows)
            continue
        got = judge(store(tmp_path, form, rows))
        rules = ids(want) if other is None or other[0] is None else other[0]
        assert (form, ids(got)) == (form, rules)
        if other is None:
            assert (form, got.verdict) == (form, want.verdict)
            assert facts(got) == facts(want), form


def test_many_fixtures_are_compared_and_every_exception_is_one() -> None:
    assert len(STORED) > 120
    assert {fixture for fixture, _ in OTHER} <= STORED.keys()
    assert all(reason for _, reason in OTHER.values())
    assert len(OTHER) < 0.06 * len(STORED) * len(FEW)


def test_no_rows_at_all_differ_by_form(tmp_path: Path) -> None:
    """An empty list is complete; a file of lines without a line is nothing, as is CSV without a
    header. With its header, and as parquet, it is a table of no rows."""
    found = {}
    for name, content in {
        "telemetry.json": b"[]", "telemetry.csv": b"step,loss\n",
        "telemetry.parquet": as_polars([{"step": 1, "loss": 1.5}]),
    }.items():  # fmt: skip
        path = tmp_path / name
        if name.endswith("parquet"):
            pl.DataFrame(schema={"step": pl.Int64, "loss": pl.Float64}).write_parquet(path)
        else:
            path.write_bytes(content)
        found[name] = ids(judge(path, SMALL))
    assert len({tuple(rules) for rules in found.values()}) == 1
    (tmp_path / "telemetry.jsonl").write_bytes(b"")
    with pytest.raises(Unreadable, match="is empty"):
        judge(tmp_path / "telemetry.jsonl", SMALL)


FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64),
    st.sampled_from([0.0, -0.0, 1e-300, 5e-324, 2.0**53 - 1, 1e22, -1.5, 0.1]),
)
INTS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\",'"), max_size=8
).map(lambda text: f"a{text}z")  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Rows with a step, and optional keys of one type each; perhaps a loss that is not finite."""
    kinds = draw(
        st.dictionaries(
            st.from_regex(r"[a-y]{1,3}(\.[a-z]{1,3})?", fullmatch=True),
            st.sampled_from([FLOATS, INTS, TEXTS, st.booleans()]), max_size=4,
        )
    )  # fmt: skip
    odd = draw(st.sampled_from([None, math.nan, math.inf, -math.inf, -1.0]))
    rows = []
    for step in range(1, draw(st.integers(2, 12))):
        row: dict[str, Any] = {"step": step, "loss": draw(st.floats(0, 10)) + 0.1}
        for key, values in kinds.items():
            if draw(st.booleans()):
                row[key] = draw(values)
        rows.append(row)
    if odd is not None:
        rows[draw(st.integers(0, len(rows) - 1))]["loss"] = odd
    return rows


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables())
def test_any_rows_have_one_verdict_in_all_forms(rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "telemetry.json").write_bytes(as_list(rows))
    want = judge(tmp_path / "telemetry.json", SMALL)
    for form in FORMS:
        got = judge(store(tmp_path, form, rows), SMALL)
        assert (form, got.verdict, got.rows) == (form, want.verdict, want.rows)
        assert facts(got) == facts(want), form


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables())
def test_every_form_hands_on_the_same_cells(rows: Rows, tmp_path: Path) -> None:
    from trueup.gates.read.tables import open_table

    def cells(path: Path) -> list[dict[str, Any]]:
        table = open_table(path, report=lambda _: None)
        out = [row for batch in table.batches() for row in batch.frame.to_dicts()]
        return [{key: repr(cell) for key, cell in row.items() if cell is not None} for row in out]

    want = [{key: repr(cell) for key, cell in row.items()} for row in rows]
    for form in FORMS:
        got = cells(store(tmp_path, form, rows))
        assert [dict(sorted(row.items())) for row in got] == [
            dict(sorted(row.items())) for row in want
        ], form
