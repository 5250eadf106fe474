"""Date-times: what is one, what zone it has, and that no row was written before the one above."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates import ProfileError, judge
from trueup.gates.profile.load import parse_profile
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.tables import open_table
from trueup.gates.read.timestamps import _instants

PROFILE = (Path(__file__).resolve().parents[2] / "fixtures/tables/profile.toml").read_text()
SMALL = Limits(first_piece=40, piece=40)  # every batch holds one row
NAIVE, AWARE = "2026-01-31T12:30:0{}", "2026-01-31T12:30:0{}Z"


def found(tmp_path: Path, times: list[Any], limits: Limits | None = None) -> list[Fault]:
    path = tmp_path / "x.jsonl"
    rows = [{"step": step, "time": time} for step, time in enumerate(times)]
    path.write_text("".join(json.dumps({k: v for k, v in r.items() if v is not None}) + "\n"
                            for r in rows))  # fmt: skip
    faults: list[Fault] = []
    table = open_table(path, report=faults.append, timestamps=["^time$"], limits=limits)
    for _ in table.batches():
        pass
    return faults


@pytest.mark.parametrize(
    ("text", "micros", "zoned"),
    [
        ("1970-01-01T00:00:00Z", 0, True),
        ("1970-01-01 00:00:01", 1_000_000, False),
        ("1970-01-01T01:00:00+01:00", 0, True),
        ("1969-12-31T22:30:00-01:30", 0, True),
        ("1970-01-01T00:00:00.000001z", 1, True),
        ("1970-01-01T00:00:00.5-0000", 500_000, True),
        ("1970-01-01T05:00:00+05", 0, True),
        ("9999-12-31T23:59:59.999999+00:00", 253402300799_999999, True),
        ("0001-01-01T00:00:00Z", -62135596800_000000, True),
    ],
)
def test_an_instant_is_the_one_meant(text: str, micros: int, zoned: bool) -> None:
    instants, zones = _instants(pl.Series([text]))
    assert (instants[0], zones[0]) == (micros, zoned)


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-01-31", "12:30:00", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
     "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:30Z", "20260131T123000Z",
     "2026-01-31T12:30:00+24:00", "2026-01-31T12:30:00+01:60", "2026-01-31T12:30:00 UTC",
     "2026-01-31T12:30:00Z\n", " 2026-01-31T12:30:00Z", "2026-01-31T12:30:00.Z", "1769862600"],
)  # fmt: skip
def test_what_is_no_date_time_is_said(text: str, tmp_path: Path) -> None:
    faults = found(tmp_path, ["2026-01-31T12:30:00Z", text])
    assert [(fault.kind, fault.row, fault.step, fault.key) for fault in faults] == [
        ("bad_timestamp", 2, 1, "time")
    ]


@settings(max_examples=300, deadline=None)
@given(
    moment=st.datetimes(
        min_value=dt.datetime(1, 1, 2), max_value=dt.datetime(9999, 12, 30),
        timezones=st.timezones() | st.none(),
    )
)  # fmt: skip
def test_instants_are_those_of_the_standard_library(moment: dt.datetime) -> None:
    instants, zoned = _instants(pl.Series([moment.isoformat()]))
    offset = moment.utcoffset()
    if offset is not None and offset.total_seconds() % 60:
        assert instants[0] is None  # zones of seconds, before there were zones
        return
    aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    start = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert instants[0] == (aware - start) // dt.timedelta(microseconds=1)
    assert zoned[0] == (moment.tzinfo is not None)


@pytest.mark.parametrize("limits", [None, SMALL], ids=["whole", "row by row"])
def test_forms_and_order_are_held_over_batches(limits: Limits | None, tmp_path: Path) -> None:
    times = [AWARE.format(1), AWARE.format(3), AWARE.format(2), None, AWARE.format(2)]
    assert [(f.kind, f.row) for f in found(tmp_path, times, limits)] == [("time_goes_back", 3)]
    times = [NAIVE.format(1), NAIVE.format(2), AWARE.format(3), NAIVE.format(4)]
    kinds = [(f.kind, f.row) for f in found(tmp_path, times, limits)]
    assert sorted(kinds) == [("mixed_timestamps", 3), *(("naive_timestamp", n) for n in (1, 2, 4))]
    times = [5.0, 4.5, None, 4.75, 4.5]
    assert [f.row for f in found(tmp_path, times, limits)] == [2, 5]


def test_many_naive_cells_are_counted(tmp_path: Path) -> None:
    faults = found(tmp_path, ["2026-01-31T12:30:00"] * 5_000)
    assert len(faults) < 20
    assert sum(fault.count for fault in faults) == 5_000


def test_only_declared_columns_are_held_to_it(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_text(
        '{"step": 1, "loss": 1.5, "when": "yesterday", "time": "2026-01-31T12:30:00"}\n'
    )
    profile = tmp_path / "mine.toml"
    profile.write_text(PROFILE)
    assert [finding.rule for finding in judge(path, str(profile)).findings] == ["RDR046"]
    profile.write_text(PROFILE.replace("timestamps = ['^time$']\n", ""))
    assert judge(path, str(profile)).passed


@pytest.mark.parametrize("pattern", ["'time'", "'^(time$'", "5"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(ProfileError, match="timestamps"):
        parse_profile(PROFILE.replace("'^time$'", pattern).encode(), "mine.toml")


def test_the_nl_profile_holds_its_timestamp_to_it(tmp_path: Path) -> None:
    good = Path(__file__).resolve().parents[2] / "fixtures/telemetry/passes_list/telemetry.json"
    rows = json.loads(good.read_text())
    path = tmp_path / "telemetry.json"
    for zone, rules in (("Z", set()), ("", {"RDR046"})):
        stamped = [
            {**row, "timestamp": f"2026-01-31T12:30:0{n}{zone}"} for n, row in enumerate(rows)
        ]
        path.write_text(json.dumps(stamped))
        assert {finding.rule for finding in judge(path).findings} == rules
