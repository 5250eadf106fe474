"""Measured values: paths, columns, exact decimals, and the answers of comparisons."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from trueup.gates.closure.columns import read_columns
from trueup.gates.closure.criteria import compare, threshold
from trueup.gates.closure.docket import Docket
from trueup.gates.closure.exact import parse_exact, printed, rational
from trueup.gates.closure.files import Files, Place
from trueup.gates.closure.model import Criterion, ListedFile, Source
from trueup.gates.closure.pointer import follow, parse_pointer
from trueup.gates.closure.values import Measured, Unmeasured, Values
from trueup.gates.profile.load import load_profile
from trueup.gates.read.documents.source import Text
from trueup.gates.read.limits import Limits


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("$.a", ("a",)),
        ("$.a.b_c-d", ("a", "b_c-d")),
        ("$['a b']['c']", ("a b", "c")),
        ('$["a.b"].c', ("a.b", "c")),
        ("$.a[0][-1]", ("a", 0, -1)),
        (r"$['it\'s']", ("it's",)),
        ("/a/b", ("a", "b")),
        ("/a~1b/~0c/0", ("a/b", "~c", "0")),
        ("/", ("",)),
    ],
)
def test_path_names_one_value(text: str, way: tuple[str | int, ...]) -> None:
    assert parse_pointer(text) == way


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$", "whole document"),
        ("$..a", "many values"),
        ("$.*", "many values"),
        ("$.a[*]", "many values"),
        ("$.a[1:2]", "many values"),
        ("$.a[0,1]", "many values"),
        ("$.a[?@.b]", "many values"),
        ("a.b", "starts neither"),
        ("$.a[01]", "cannot be read"),
        ("$.1a", "cannot be read"),
        ("$.a b", "cannot be read"),
        ("/a~2", "before 0 or 1"),
        ("$[']", "cannot be read"),
    ],
)
def test_other_paths_are_refused_in_words(text: str, said: str) -> None:
    found = parse_pointer(text)
    assert isinstance(found, str)
    assert said in found


DATA = {"a": {"b": [1, {"c": 2}], "0": "zero"}, "": 5}


@pytest.mark.parametrize(
    ("way", "value"),
    [(("a", "b", 1, "c"), 2), (("a", "b", -1, "c"), 2), (("a", "b", "0"), 1), (("a", "0"), "zero"),
     (("",), 5)],
)  # fmt: skip
def test_path_is_followed(way: tuple[str | int, ...], value: Any) -> None:
    found = follow(DATA, way)
    assert not isinstance(found, str)
    assert found[0] == value


@pytest.mark.parametrize(
    "way", [("x",), ("a", "b", 2), ("a", "b", "01"), ("a", "b", -3), ("a", 0), ("a", "b", 0, "c")]
)
def test_path_that_ends_too_soon_says_where(way: tuple[str | int, ...]) -> None:
    assert isinstance(follow(DATA, way), str)


def exact(text: str, form: str = "JSON") -> Any:
    raw = text.encode()
    return parse_exact(Text(raw, text, len(raw)), form, Limits(), [])


def test_decimals_are_those_of_the_file() -> None:
    assert exact('{"x": 0.8500000000000000000001}').data["x"] == Decimal("0.8500000000000000000001")
    assert exact("x = 0.10\n", "TOML").data["x"] == Decimal("0.10")
    assert printed(exact('{"x": 0.950}').data["x"]) == "0.950"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_decimal_it_prints(value: float) -> None:
    number = rational(value)
    assert number is not None
    assert number == Fraction(repr(value))


@pytest.mark.parametrize(
    "value",
    [None, True, "1", [1], {}, float("nan"), float("inf"), Decimal("NaN"), Decimal("1e401"),
     Decimal("1e-402"), Decimal("Infinity")],
)  # fmt: skip
def test_what_is_no_finite_number_has_no_rational(value: object) -> None:
    assert rational(value) is None


def criterion(comparison: str, value: Any, unit: str = "1", baseline: Any = None) -> Criterion:
    return Criterion(
        ("criterion", 0), "c", "text", Source("a", "$.x"), comparison, value, unit, baseline
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("comparison", "value", "measured", "baseline", "holds"),
    [
        ("==", Decimal("0.3"), Decimal("0.30"), None, True),
        ("==", 1, Decimal("1.0"), None, True),
        ("!=", Decimal("0.3"), Decimal("0.30"), None, False),
        ("<", 2, 2, None, False),
        ("<=", 2, 2, None, True),
        (">", 2, Decimal("2.0000000000000000000001"), None, True),
        (">=", 2, Decimal("1.9999999999999999999999"), None, False),
        ("between", [1, 2], 2, None, True),
        ("between", [1, 2], Decimal("2.1"), None, False),
        # in binary each of these two is false
        ("abs-within", Decimal("0.15"), Decimal("0.85"), Decimal("1.0"), True),
        ("abs-within", Decimal("0.15"), Decimal("1.15"), Decimal("1.0"), True),
        ("abs-within", Decimal("0.15"), Decimal("0.8499"), Decimal("1.0"), False),
        ("rel-within", Decimal("0.15"), Decimal("-2.30"), -2, True),
        ("rel-within", Decimal("0.15"), Decimal("-2.31"), -2, False),
        ("rel-within", Decimal("0.15"), 0, 0, True),
        ("rel-within", Decimal("0.15"), Decimal("1e-300"), 0, False),
        ("==", "derived", "derived", None, True),
        ("!=", "derived", "literal", None, True),
        ("==", True, True, None, True),
    ],
)
def test_comparison_of_the_printed_decimals(
    comparison: str, value: Any, measured: Any, baseline: Any, holds: bool
) -> None:
    answer = compare(criterion(comparison, value, baseline=baseline), measured, baseline)
    assert answer.status == ("holds" if holds else "does not hold")


@pytest.mark.parametrize(
    ("comparison", "value", "measured", "baseline"),
    [
        ("<=", 1, None, None),
        ("<=", 1, "0.5", None),
        ("<=", 1, True, None),
        ("<=", 1, float("nan"), None),
        ("<=", 1, float("inf"), None),
        ("!=", 1, float("nan"), None),
        ("!=", 1, None, None),
        ("!=", 1, "x", None),
        ("<=", 1, [0.5], None),
        ("<=", 1, {"value": 0.5}, None),
        ("==", "x", 1, None),
        ("!=", "x", None, None),
        ("==", True, 1, None),
        ("==", 1, True, None),
        ("abs-within", 1, 1, "x"),
        ("abs-within", 1, 1, float("nan")),
    ],
)
def test_what_cannot_be_compared_is_undetermined(
    comparison: str, value: Any, measured: Any, baseline: Any
) -> None:
    answer = compare(criterion(comparison, value, baseline=baseline), measured, baseline)
    assert answer.status == "cannot be determined"


def test_threshold_is_told_as_it_was_asked() -> None:
    assert threshold(criterion("between", [1, Decimal("2.50")])) == "between 1 and 2.50"
    assert threshold(criterion("abs-within", Decimal("0.15"), baseline=1)) == "within 0.15 of 1"
    told = threshold(criterion("rel-within", Decimal("0.15"), baseline=1))
    assert told == "within 0.15 times it of 1"
    assert threshold(criterion(">=", Decimal("0.90"))) == ">= 0.90"


def log(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "telemetry.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ROWS: list[dict[str, Any]] = [
    {"step": -1, "lr": 0.001, "loss": 99.0},
    {"step": 0, "loss": 0.1, "n": 3, "name": "a"},
    {"step": 1, "loss": 0.2, "n": 9007199254740993, "name": "b"},
    {"step": 2, "loss": 0.3, "n": 4, "name": "c"},
    {"step": 3, "n": 5, "name": "d"},
]


@pytest.mark.parametrize(
    ("column", "moment", "value"),
    [
        ("loss", "last", 0.3),
        ("loss", "min", 0.1),
        ("loss", "max", 0.3),
        ("loss", "mean", Fraction(2, 10)),
        ("loss", "step:1", 0.2),
        ("n", "max", 9007199254740993),
        ("name", "last", "d"),
    ],
)
def test_column_gives_the_value_at_the_moment(
    column: str, moment: str, value: Any, tmp_path: Path
) -> None:
    """Rows of the configuration do not count; the mean of 0.1, 0.2 and 0.3 is 0.2 exactly."""
    cells, _ = read_columns(log(tmp_path, ROWS), "x", [(column, moment)], load_profile("nl"))
    assert cells[(column, moment)].problem == ""
    assert cells[(column, moment)].value == value


@pytest.mark.parametrize(
    ("column", "moment", "said"),
    [
        ("none", "last", "no row has a value"),
        ("lr", "last", "no row has a value"),
        ("loss", "step:3", "no row has a value"),
        ("loss", "step:7", "no row has a value"),
        ("name", "max", "holds 'a'"),
    ],
)
def test_column_that_has_no_such_value_says_so(
    column: str, moment: str, said: str, tmp_path: Path
) -> None:
    cells, _ = read_columns(log(tmp_path, ROWS), "x", [(column, moment)], load_profile("nl"))
    assert said in cells[(column, moment)].problem


def test_nan_spoils_every_summary_and_is_no_last_value(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text('{"step": 0, "loss": 1.0}\n{"step": 1, "loss": NaN}\n')
    wanted = [("loss", one) for one in ("last", "min", "max", "mean", "step:0")]
    cells, faults = read_columns(path, "x", wanted, load_profile("nl"))
    assert faults
    for moment in ("min", "max", "mean"):
        assert "nan" in cells[("loss", moment)].problem
    assert rational(cells[("loss", "last")].value) is None


def test_two_rows_of_one_step_have_no_value_there(tmp_path: Path) -> None:
    rows = [{"step": 5, "loss": 1.0}, {"step": 5, "loss": 2.0}]
    cells, _ = read_columns(log(tmp_path, rows), "x", [("loss", "step:5")], load_profile("nl"))
    assert "2 rows" in cells[("loss", "step:5")].problem


def test_metadata_of_a_checkpoint_can_be_asked_for(tmp_path: Path) -> None:
    """The strings of a safetensors header; a pickled checkpoint is never opened."""
    numpy = pytest.importorskip("numpy")
    safetensors = pytest.importorskip("safetensors.numpy")
    run = tmp_path / "run"
    run.mkdir()
    safetensors.save_file(
        {"w": numpy.zeros((2, 2), "f4")}, run / "last.safetensors", {"mode": "two_pass"}
    )
    (run / "last.pt").write_bytes(b"\x80\x04.")
    files = Files(tmp_path, tmp_path, str(tmp_path), Docket("ticket"))
    place = files.find("ticket", "run", folder=True)
    assert isinstance(place, Place)
    listed = {
        name: ListedFile((), "checkpoint", name, f"last.{name}", "")
        for name in ("safetensors", "pt")
    }
    values = Values(place, listed, files, load_profile("nl"), Limits())
    found = values.measure(Source("safetensors", "$.metadata.mode"))
    assert isinstance(found, Measured)
    assert found.value == "two_pass"
    other = values.measure(Source("pt", "$.mode"))
    assert isinstance(other, Unmeasured)
    assert "list its metadata" in other.reason


@pytest.mark.parametrize(
    ("text", "path", "unit_path", "unit"),
    [
        ('{"x": {"value": 1, "unit": "nats"}}', "$.x", None, "nats"),
        ('{"x": {"value": 1, "unit": "nats"}}', "$.x.value", None, "nats"),
        ('{"x": 1, "x_unit": "nats"}', "$.x", None, "nats"),
        ('{"units": {"x": "nats"}, "x": 1}', "$.x", None, "nats"),
        ('{"units": {"x": "nats"}, "val": {"x": 1}}', "$.val.x", None, "nats"),
        ('{"x": 1, "about": {"unit": "nats"}}', "$.x", "$.about.unit", "nats"),
        ('{"x": 1, "unit": "nats"}', "$.x", None, None),
        ('{"x": [1], "x_unit": "nats"}', "$.x[0]", None, None),
        ('{"x": 1, "x_unit": 3}', "$.x", None, None),
    ],
)
def test_unit_that_the_artifact_states(
    text: str, path: str, unit_path: str | None, unit: str | None, tmp_path: Path
) -> None:
    values = of_document(text, tmp_path)
    found = values.measure(Source("m", path), unit_path)
    assert isinstance(found, Measured)
    assert (found.value, found.unit) == (1, unit)


@pytest.mark.parametrize("unit_path", ["$.none", "$.x", "$..unit"])
def test_unit_that_is_not_where_it_should_be_is_undetermined(
    unit_path: str, tmp_path: Path
) -> None:
    found = of_document('{"x": 1}', tmp_path).measure(Source("m", "$.x"), unit_path)
    assert isinstance(found, Unmeasured)
    assert found.reason.startswith("unit_path")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("{", "not fit"),
        ('{"x": NaN}', "not fit"),
        ('{"x": 1, "x": 2}', "not fit"),
        ('{"x": 1e999}', "not fit"),
        ("\ufeff{}", "not fit"),
        ("[" * 2000, "not fit"),
        ("[1]", "no 'x' in the document, which is a list of 1"),
        ("3", "which is a plain value"),
    ],
)
def test_document_that_is_not_fit_gives_no_value(text: str, said: str, tmp_path: Path) -> None:
    found = of_document(text, tmp_path).measure(Source("m", "$.x"))
    assert isinstance(found, Unmeasured)
    assert said in found.reason


def of_document(text: str, tmp_path: Path) -> Values:
    (tmp_path / "m.json").write_text(text)
    files = Files(tmp_path, tmp_path, str(tmp_path), Docket("ticket"))
    place = files.find("ticket", ".", folder=True)
    assert isinstance(place, Place)
    listed = {"m": ListedFile((), "document", "m", "m.json", "")}
    return Values(place, listed, files, load_profile("nl"), Limits())


@pytest.mark.parametrize("form", ["json", "jsonl", "jsonl.gz", "jsonl.zst", "csv", "parquet"])
def test_values_do_not_depend_on_the_form_of_the_log(form: str, tmp_path: Path) -> None:
    rows = [{"step": step, "loss": loss} for step, loss in enumerate((0.1, 0.7, 0.2))]
    path = tmp_path / f"telemetry.{form}"
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if form == "json":
        path.write_text(json.dumps(rows))
    elif form == "csv":
        path.write_text("step,loss\n0,0.1\n1,0.7\n2,0.2\n")
    elif form == "parquet":
        pl.DataFrame(rows).write_parquet(path)
    elif form.endswith("gz"):
        path.write_bytes(gzip.compress(lines))
    elif form.endswith("zst"):
        path.write_bytes(zstandard.compress(lines))
    else:
        path.write_bytes(lines)
    moments = ("last", "min", "max", "mean", "step:1")
    cells, faults = read_columns(
        path, "x", [("loss", moment) for moment in moments], load_profile("nl")
    )
    assert not faults
    found = [rational(c.value) or c.value for c in cells.values()]
    assert found == [Fraction(n, 30) for n in (6, 3, 21, 10, 21)]
