"""Cells, relations between the keys of a row, and records: by values worked out by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from trueup.gates.errors import ProfileError
from trueup.gates.profile.load import parse_profile
from trueup.gates.profile.rules import When

Row = dict[str, Any]
Tell = Callable[..., Any]

HEAD = """
[profile]
id = "own"
summary = "s"
[[artifact]]
kind = "telemetry"
patterns = ["*.jsonl"]
[[rule]]
id = "OWN001"
severity = "error"
summary = "s"
why = "w"
expected = "e"
fix = "f"
"""


def rule(check: str, keys: str, params: str = "") -> str:
    target = keys if keys.startswith("pattern") else f"keys = {keys}"
    return f'check = "{check}"\n{target}\n' + (f"params = {{ {params} }}" if params else "")


@pytest.mark.parametrize(
    ("check", "params", "value", "status"),
    [
        ("boolean", "", True, "true"),
        ("boolean", "", 1, "false"),
        ("boolean", "", "true", "false"),
        ("text", "", "cpu", "true"),
        ("text", "", 0, "false"),
        ("text", "", False, "false"),
        ("nonzero", "", 1e-300, "true"),
        ("nonzero", "", 0.0, "false"),
        ("nonzero", "", -0.0, "false"),
        ("nonzero", "", "0", "undetermined"),
        ("at_most", "max = 2", 2, "true"),
        ("at_most", "max = 2", 2.0000000000000004, "false"),
        ("at_most", "max = 9007199254740992", 2**53 + 1, "false"),
        ("none_of", 'values = ["a", 1]', "b", "true"),
        ("none_of", 'values = ["a", 1]', "a", "false"),
        ("none_of", 'values = ["a", 1]', 1.0, "false"),
        ("none_of", 'values = ["a", 1]', True, "true"),
        ("matches", "regex = '0x[0-9a-f]{4}'", "0x00ff", "true"),
        ("matches", "regex = '0x[0-9a-f]{4}'", "0x00FF", "false"),
        ("matches", "regex = '0x[0-9a-f]{4}'", "0x00ff\n", "false"),
        ("matches", "regex = '0x[0-9a-f]{4}'", "0x00ff0", "false"),
        ("matches", "regex = '\\d{2}'", "12", "true"),
        ("matches", "regex = '[0-9]{2}'", "\u0661\u0662", "false"),
        ("matches", "regex = '0x[0-9a-f]{4}'", 255, "false"),
        ("unset", "", "", "true"),
        ("unset", "", "no memory", "false"),
        ("unset", "", False, "false"),
    ],
)
def test_cells(check: str, params: str, value: Any, status: str, tell: Tell) -> None:
    assert tell(rule(check, '["x"]', params), [{"step": 0, "x": value}]).status == status


REASONED = rule("reasoned", "pattern = '^v\\..*$'", 'reasons = "why."')


@pytest.mark.parametrize(
    ("rows", "keys"),
    [
        pytest.param([{"v": {"a": 1.0}}], [], id="a-value"),
        pytest.param([{"v": {"a": None}, "why": {"v.a": "length"}}], [], id="a-reason"),
        pytest.param([{"v": {"a": None}, "why": {"v.a": ""}}], ["v.a"], id="an-empty-reason"),
        pytest.param([{"v": {"a": None}, "why": {"v.b": "length"}}], ["v.a"], id="of-another"),
        pytest.param([{"v": {"a": None}}, {"v": {"a": None}}], ["v.a"], id="never-written"),
        pytest.param([{"v": {"a": 1.0}}, {"v": {"a": None}}], ["v.a"], id="once-null"),
        pytest.param([{"v": {"a": [1.0, 2.0]}}, {"v": {}}], ["v.a[0]", "v.a[1]"], id="list-gone"),
    ],
)
def test_every_null_has_a_reason(rows: list[Row], keys: list[str], tell: Tell) -> None:
    made = [{"step": s, "x": 1, **row} for s, row in enumerate(rows)]
    assert tell(REASONED, made, cut=False).keys == keys


PAIRS = rule("pairs_equal", '["a"]', 'pairs = { a = "b" }, rel = REL')


@pytest.mark.parametrize(
    ("rel", "a", "b", "status"),
    [
        ("0.0", 0.1, 0.1, "true"),
        ("0.0", 0.1, 0.10000000000000002, "false"),
        ("0.125", 8.0, 7.0, "true"),  # 1 in 8
        ("0.125", 8.0, 6.9, "false"),
        ("0.125", -8.0, 8.0, "false"),
        ("0.5", 1e308, -1e308, "false"),  # their difference is past the largest double
        ("0.0", 0.0, -0.0, "true"),
    ],
)
def test_pairs(rel: str, a: float, b: float, status: str, tell: Tell) -> None:
    assert tell(PAIRS.replace("REL", rel), [{"step": 0, "a": a, "b": b}]).status == status


def test_infinity_is_near_nothing_but_itself(tmp_path: Any) -> None:
    """JSON has no infinity, and a parquet file may: so the expression itself is asked."""
    import polars as pl

    from trueup.gates.telemetry.closeness import close

    inf = math.inf
    frame = pl.DataFrame({"a": [inf, inf, inf, 1.0], "b": [inf, -inf, 1.0, inf]})
    for rel in (0.0, 0.5):
        assert frame.select(close(pl.col("a"), pl.col("b"), rel)).to_series().to_list() == [
            True, False, False, False,
        ]  # fmt: skip


WHERE = rule(
    "equals_where", '["a"]',
    'value = "a", other = "b", key = "m", is = "l2", config = "model.m", rel = 0.0',
)  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        pytest.param([{"m": "l2", "a": 1, "b": 1}], "true", id="equal"),
        pytest.param([{"m": "l2", "a": 1, "b": 2}], "false", id="not-equal"),
        pytest.param([{"m": "loss", "a": 1, "b": 2}], "not_applied", id="another-metric"),
        pytest.param(
            [{"m": "loss", "a": 1, "b": 2}, {"m": "l2", "a": 1, "b": 1}], "true", id="both"
        ),
        pytest.param([{"step": -1, "model.m": "l2"}, {"a": 1, "b": 2}], "false", id="configured"),
        pytest.param([{"a": 1, "b": 2}], "not_applied", id="nobody-says"),
    ],
)
def test_equal_under_a_condition(rows: list[Row], status: str, tell: Tell) -> None:
    made = [{"step": s, **row} for s, row in enumerate(rows)]
    assert tell(WHERE, made).status == status


@pytest.mark.parametrize(
    ("value", "index", "status"),
    [(0.02, 9, "true"), (0.0200001, 9, "true"), (0.021, 9, "false"), (0.5, 8, "true")],
)
def test_a_schedule_ends(value: float, index: int, status: str, tell: Tell) -> None:
    ends = rule("ends_at", '["y"]', 'value = "y", index = "i", total = "n", end = 0.02, rel = 1e-5')
    assert tell(ends, [{"step": 0, "y": value, "i": index, "n": 10}]).status == status


REQUIRES = rule("requires", '["end"]', 'key = "end", is = "STOP", then = ["metric", "value"]')


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        ({"end": "STOP", "metric": "m", "value": 1.0}, []),
        ({"end": "STOP", "metric": "m"}, ["value"]),
        ({"end": "STOP"}, ["metric", "value"]),
        ({"end": "GO"}, []),
    ],
)
def test_a_value_asks_for_others(row: Row, keys: list[str], tell: Tell) -> None:
    told = tell(REQUIRES, [{"step": 0, **row}, {"step": 1, "end": "GO"}])
    assert told.keys == keys


@pytest.mark.parametrize(
    ("classes", "value", "status"),
    [
        ("256", math.log(256), "true"),
        ("256", math.log(256) + 0.9e-5, "true"),
        ("256", math.log(256) + 1.1e-5, "false"),
        ("256", -0.9e-5, "true"),
        ("256", -1.1e-5, "false"),
        ('"V"', math.log(256), "true"),
        ('"V"', 8.0, "false"),
        ('"other"', 8.0, "not_applied"),
    ],
)
def test_entropies(classes: str, value: float, status: str, tell: Tell) -> None:
    entropy = rule("entropy_of", '["h"]', f"classes = {classes}, abs = 1e-5")
    assert tell(entropy, [{"step": -1, "V": 256}, {"step": 0, "h": value}]).status == status


RECORD = "pattern = '^r\\.(?P<field>[a-z]+)$'"
LIST = "pattern = '^(.*\\.)?[A-Z]+\\[(?P<field>\\d+)\\]$'"


@pytest.mark.parametrize(
    ("check", "params", "fields", "status"),
    [
        ("not_above", 'value = "a", limit = "b"', {"a": 2, "b": 2}, "true"),
        ("not_above", 'value = "a", limit = "b"', {"a": 3, "b": 2}, "false"),
        ("zero_together", 'fields = ["a", "b"]', {"a": 0, "b": 0.0}, "true"),
        ("zero_together", 'fields = ["a", "b"]', {"a": 1, "b": 0.5}, "true"),
        ("zero_together", 'fields = ["a", "b"]', {"a": 0, "b": 0.5}, "false"),
        ("ratio_within", 'numerator = "a", denominator = "b", min = 1, max = 4',
         {"a": 8.0, "b": 2.0}, "true"),
        ("ratio_within", 'numerator = "a", denominator = "b", min = 1, max = 4',
         {"a": 2.0, "b": 8.0}, "false"),
        ("ratio_within", 'numerator = "a", denominator = "b", min = 1, max = 4',
         {"a": 0.0, "b": 8.0}, "true"),
        ("ratio_of", 'value = "c", numerator = "a", denominator = "b", rel = 1e-3',
         {"a": 60.0, "b": 0.5, "c": 120.0}, "true"),
        ("ratio_of", 'value = "c", numerator = "a", denominator = "b", rel = 1e-3',
         {"a": 60.0, "b": 0.5, "c": 121.0}, "false"),
        ("ratio_of", 'value = "c", numerator = "a", denominator = "b", rel = 1e-3',
         {"a": 60.0, "b": 0.0, "c": 0.0}, "false"),
        ("mean_of", "mean = 1.0, abs = 1e-6", {"a": 1.5, "b": 0.5, "c": 1.0}, "true"),
        ("mean_of", "mean = 1.0, abs = 1e-6", {"a": 1.5, "b": 0.25, "c": 1.0}, "false"),
    ],
)  # fmt: skip
def test_records(check: str, params: str, fields: Row, status: str, tell: Tell) -> None:
    made = {"step": 0, **{f"r.{name}": value for name, value in fields.items()}}
    assert tell(rule(check, RECORD, params), [made]).status == status


def test_a_ratio_over_nothing_is_null(tell: Tell) -> None:
    ratio = rule("ratio_of", RECORD, 'value = "c", numerator = "a", denominator = "b", rel = 0.1')
    rows = [{"step": 0, "r.a": 1.0, "r.b": 1.0, "r.c": 1.0}, {"step": 1, "r.a": 1.0, "r.b": 0.0}]
    assert tell(ratio, rows).status == "true"


@pytest.mark.parametrize(
    ("shares", "status"),
    [
        ([0.25, 0.25, 0.25, 0.25], "true"),
        ([0.25, 0.25, 0.25, 0.2500009], "true"),
        ([0.25, 0.25, 0.25, 0.2500011], "false"),
        ([38, 12, 42, 14], "false"),  # 106 percent
        ([38, 12, 40, 12], "true"),  # 102: half a percent for each of four
        ([38, 12, 40, 13], "false"),
        ([34, 33, 33], "true"),
        ([36, 33, 33], "false"),  # 102 of three
        ([1.5, -0.5], "false"),
        ([0.0, 0.0], "false"),
    ],
)
def test_shares_of_a_whole(shares: list[float], status: str, tell: Tell) -> None:
    whole = rule("parts_of_whole", LIST, "abs = 1e-6, percent = 0.5")
    assert tell(whole, [{"step": 0, "mix": {"DIR": shares}}]).status == status


@pytest.mark.parametrize(
    ("shares", "status"),
    [
        ([0.25, 0.25, 0.25, 0.25], "true"),
        ([50, 50, 0, 0], "true"),  # ln 2 is half of ln 4
        ([51, 49, 0, 0], "false"),
        ([0.96, 0.02, 0.02, 0.0], "false"),
        ([0.0, 0.0, 0.0, 0.0], "undetermined"),
    ],
)
def test_choices_are_spread_out(shares: list[float], status: str, tell: Tell) -> None:
    spread = rule("spread_out", LIST, "min_entropy = 0.4999999, max_share = 0.95")
    assert tell(spread, [{"step": 0, "mix": {"DIR": shares}}]).status == status


@pytest.mark.parametrize(
    ("length", "row", "keys"),
    [
        ("4", {"DIR": [1.0] * 4}, []),
        ("4", {"DIR": [1.0] * 3}, ["DIR"]),
        ("4", {"DIR": [1.0] * 5}, ["DIR"]),
        ("{ DIR = 4, MAG = 3 }", {"DIR": [1.0] * 4, "MAG": [1.0] * 3}, []),
        ("{ DIR = 4, MAG = 3 }", {"DIR": [1.0] * 4, "MAG": [1.0] * 4}, ["MAG"]),
        ("{ DIR = 4 }", {"DIR": [1.0] * 4, "ORD": [1.0]}, []),
    ],
)
def test_lengths_of_lists(length: str, row: Row, keys: list[str], tell: Tell) -> None:
    told = tell(rule("length", LIST, f"length = {length}"), [{"step": 0, **row}])
    assert told.keys == keys


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rule("between", '["x"]', "min = 2, max = 1"), "min 2 is above max 1"),
        (rule("matches", '["x"]', "regex = '('"), "unterminated"),
        (rule("moves", '["x"]', "min_rows = 0"), "min_rows is 0, expected a number of 1 or more"),
        (rule("increasing", '["x"]', "by = []"), "by is [], expected a list of names"),
        (rule("increasing", '["x"]', "by = [1]"), "by is [1], expected a list of names"),
        (rule("follows", '["x"]', 'value = "x", with = ["y"], direction = "left"'),
         "direction is 'left', expected one of up, down"),
        (rule("chunked", RECORD, 'tokens = "a", updates = "b", flushed = "c", pending = "d", '
              'agg = "mean"'), "agg is 'mean', expected one of last, sum"),
        (rule("chunk_bounds", RECORD, 'tokens = "a", updates = "b", periods = { fast = 0 }'),
         "periods is {'fast': 0}, expected whole numbers of 1 or more"),
        (rule("length", LIST, "length = { A = 1.5 }"), "expected whole numbers of 1 or more"),
        (rule("pairs_equal", '["x"]', "pairs = { x = 1 }, rel = 0.0"), "expected a table of names"),
        (rule("no_spike", '["x"]', "window = 3, factor = 1.0"), "factor is 1.0, expected above 1"),
        (rule("keys_are", "pattern = '^a$'", 'prefix = "", names = { a = 1 }'), "prefix is empty"),
        (rule("implies", '["x"]', 'key = "a", is = 1, then = "b", among = []'), "among is empty"),
        (rule("counts_every", '["x"]', 'count = "a", every = "b", step = "c", unit = "epoch"'),
         "unit is 'epoch', expected one of batch, update"),
        (rule("apart", "pattern = '^loss$'", "min_rows = 3"), "(?P<side>...)"),
        (rule("apart", '["loss"]', "min_rows = 3"), "(?P<side>...)"),
        (rule("same", "pattern = '^a[(?P<field>]$'", 'fields = ["a"]'), "(?P<field>...)"),
    ],
)  # fmt: skip
def test_parameters_are_checked_when_a_profile_is_loaded(text: str, message: str) -> None:
    with pytest.raises(ProfileError, match=re.escape(message)) as caught:
        parse_profile(f"{HEAD}{text}\n".encode(), "own.toml")
    assert "own.toml" in str(caught.value)
    assert "OWN001" in str(caught.value)


def test_a_key_without_the_field_of_a_record_is_in_none(tell: Tell) -> None:
    """The group may stand in an optional part of the pattern."""
    same = rule("same", "pattern = '^r(\\.(?P<field>[ab]))?$'", 'fields = ["a", "b"]')
    assert tell(same, [{"step": 0, "r": 9, "r.a": 1, "r.b": 1}]).status == "true"


def test_several_conditions_must_all_hold(tell: Tell) -> None:
    text = rule("finite", '["x"]').replace(
        "keys", 'when = [{ key = "a", equals = true }, { key = "b", state = ["set"] }]\nkeys'
    )
    row = {"step": 0, "x": 1.0}
    assert tell(text, [{"step": -1, "a": True, "b": 1}, row]).status == "true"
    told = tell(text, [{"step": -1, "a": True, "b": None}, row])
    assert (told.status, told.reason) == ("not_applied", "applies when a is True and b is set")
    assert tell(text, [{"step": -1, "a": False, "b": 1}, row]).status == "not_applied"


def test_a_condition_by_itself_is_one() -> None:
    one = When("a", (), True)
    assert one.holds({"a": True})
    assert not When("a", (), True, (When("b", ("set",)),)).holds({"a": True})
