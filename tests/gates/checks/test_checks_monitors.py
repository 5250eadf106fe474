"""Monitors that count changes, zeros that go on, and what a run says of itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Row = dict[str, Any]
Tell = Callable[..., Any]

MONITOR = r"pattern = '^monitors\.[^.]+\.(?P<field>value|fire_rate|n_obs)$'" + "\n"
FOLLOWS = (
    f'check = "rate_follows"\n{MONITOR}'
    'params = { value = "value", rate = "fire_rate", count = "n_obs", by = ["fold"]MORE }'
)
RATE = f'check = "rate_of"\n{MONITOR}params = {{ rate = "fire_rate", count = "n_obs", rel = 1e-6 }}'


def watched(step: int, value: float | None, rate: float, count: int, fold: int = 0) -> Row:
    one = {"value": value, "fire_rate": rate, "n_obs": count}
    return {"step": step, "fold": fold, "monitors": {"tau": one}}


def faithful(values: list[float], looks: int = 1) -> list[Row]:
    """Rows of a monitor that looks so often at each value."""
    seen: list[float] = []
    out = []
    for step, value in enumerate(values):
        seen += [value] * looks
        fires = sum(a != b for a, b in pairwise(seen))
        out.append(watched(step, value, fires / max(1, len(seen) - 1), len(seen)))
    return out


@given(values=st.lists(st.sampled_from([0.5, 0.25, 1.0]), min_size=1, max_size=8),
       looks=st.integers(1, 3))  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_faithful_monitor_passes(values: list[float], looks: int, tell: Tell) -> None:
    rows = faithful(values, looks)
    assert tell(FOLLOWS.replace("MORE", ""), rows).status == "true"
    assert tell(RATE, rows).status == "true"


@pytest.mark.parametrize(
    ("rows", "rate", "follows"),
    [
        pytest.param(
            [watched(0, 1.0, 1.0, 1), watched(1, 2.0, 2.0, 2)], "false", "true", id="first-fires"
        ),
        pytest.param(
            [watched(0, 1.0, 0.0, 1), watched(1, 2.0, 0.5, 2)], "false", "false", id="over-n-obs"
        ),
        pytest.param(
            [watched(0, 1.0, 0.0, 1), watched(1, 2.0, 1.0, 2), watched(2, 2.0, 1.0, 3)],
            "true", "false", id="against-the-first",
        ),
        pytest.param(
            [watched(0, 1.0, 0.0, 1), watched(1, 2.0, 0.0, 2)], "true", "false", id="never-fires"
        ),
        pytest.param(
            [watched(0, 1.0, 0.0, 1), watched(1, 2.0, 0.0, 4)], "true", "false", id="unseen-change"
        ),
        pytest.param(
            [watched(0, 1.0, 0.0, 1), watched(1, 1.0, 1.0, 4)], "true", "true", id="there-and-back"
        ),
        pytest.param(
            [watched(0, 1.0, 0.0, 2), watched(1, 2.0, 0.0, 2)], "true", "false", id="no-new-look"
        ),
        pytest.param(
            [watched(0, 1.0, 0.5, 3), watched(1, 5.0, 0.0, 1, fold=1)], "true", "true",
            id="another-fold",
        ),
    ],
)  # fmt: skip
def test_monitors_that_count_otherwise(
    rows: list[Row], rate: str, follows: str, tell: Tell
) -> None:
    assert tell(RATE, rows).status == rate
    assert tell(FOLLOWS.replace("MORE", ""), rows).status == follows


def test_a_monitor_may_have_a_tolerance(tell: Tell) -> None:
    rows = [watched(0, 1.0, 0.0, 1), watched(1, 1.01, 0.0, 2)]
    assert tell(FOLLOWS.replace("MORE", ""), rows).status == "false"
    assert tell(FOLLOWS.replace("MORE", ", rtol = 0.02"), rows).status == "true"
    assert tell(FOLLOWS.replace("MORE", ", atol = 0.02"), rows).status == "true"


ENDS = (
    f'check = "ends_within"\n{MONITOR}'
    'params = { rate = "fire_rate", count = "n_obs", min_count = 5, by = ["fold"]MORE }'
)


@pytest.mark.parametrize(
    ("more", "last", "status"),
    [
        (", above = 0.0", 0.0, "false"),
        (", above = 0.0", 0.25, "true"),
        (", below = 1.0", 1.0, "false"),
        (", below = 1.0", 0.75, "true"),
    ],
)
def test_the_last_rate_of_a_fold(more: str, last: float, status: str, tell: Tell) -> None:
    rows = [watched(0, 1.0, 0.5, 3), watched(1, 1.0, last, 5), watched(2, 1.0, 0.0, 1, fold=1)]
    assert tell(ENDS.replace("MORE", more), rows).status == status
    assert tell(ENDS.replace("MORE", more), rows[:1]).status == "not_applied"


STREAK = (
    'check = "no_zero_streak"\nkeys = ["norm"]\n'
    'params = { epochs = 2, epoch = "epoch", loss = "loss", by = ["fold"] }'
)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        pytest.param([(0, 0.0), (1, 0.0)], "false", id="two-epochs"),
        pytest.param([(0, 0.0), (1, 1.0), (2, 0.0)], "true", id="not-in-a-row"),
        pytest.param([(0, 0.0), (0, 0.0)], "true", id="two-rows-of-one-epoch"),
        pytest.param([(0, 1.0), (0, 0.0), (1, 0.0)], "true", id="alive-in-the-first"),
        pytest.param([(0, 0.0), (0, 1.0), (1, 0.0), (2, 0.0)], "false", id="the-later-two"),
        pytest.param([(0, 0.0), (1, 0.0, 0.0), (2, 0.0)], "true", id="no-loss-no-gradient"),
        pytest.param([(0, 0.0, 1.0, 0), (1, 0.0, 1.0, 1)], "true", id="two-folds"),
    ],
)
def test_zeros_that_go_on(rows: list[tuple[Any, ...]], status: str, tell: Tell) -> None:
    made = []
    for step, row in enumerate(rows):
        epoch, norm, loss, fold = (*row, *(1.0, 0)[len(row) - 2 :])
        made.append({"step": step, "fold": fold, "epoch": epoch, "norm": norm, "loss": loss})
    assert tell(STREAK, made).status == status


def test_a_streak_says_where_it_begins(tell: Tell) -> None:
    rows = [{"step": e, "fold": 3, "epoch": e, "norm": 0.0 if e > 1 else 1.0} for e in range(5)]
    told = tell(STREAK, rows)
    assert told.got == ["exactly 0 in 3 consecutive epochs from epoch 2 on (fold 3)"]


IMPLIES = (
    'check = "implies"\nrows = "all"\nkeys = ["code", "on"]\n'
    'params = { key = "code", is = "off", then = "on", among = [false] }'
)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        pytest.param([{"on": False}, {"code": "off"}], "true", id="agrees"),
        pytest.param([{"on": True}, {"code": "off"}], "false", id="contradicts"),
        pytest.param([{"code": "off"}, {"on": True}], "false", id="in-any-order"),
        pytest.param([{"on": True}, {"code": "other"}], "not_applied", id="another-code"),
        pytest.param([{"code": "off"}], "not_applied", id="not-recorded"),
        pytest.param([{"on": 0}, {"code": "off"}], "false", id="a-number-is-no-truth-value"),
        pytest.param(
            [{"on": True}, {"code": "off"}, {"code": "other"}], "false", id="said-once-of-many"
        ),
    ],
)
def test_what_one_row_says_binds_another(rows: list[Row], status: str, tell: Tell) -> None:
    assert tell(IMPLIES, [{"step": -1, **row} for row in rows]).status == status


TOLD_ZERO = (
    'check = "zero_when_told"\nrows = "all"\nkeys = ["n"]\nparams = { key = "code", is = "off" }'
)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        pytest.param([{"code": "off"}, {"n": 0}], "true", id="zero"),
        pytest.param([{"code": "off"}, {"m": 1}], "true", id="absent"),
        pytest.param([{"n": 3}, {"code": "off"}], "false", id="before-it-was-said"),
        pytest.param([{"code": "off"}, {"n": -3}], "false", id="negative"),
        pytest.param([{"code": "on"}, {"n": 3}], "not_applied", id="never-said"),
    ],
)
def test_counters_of_what_is_off(rows: list[Row], status: str, tell: Tell) -> None:
    assert tell(TOLD_ZERO, [{"step": s, **row} for s, row in enumerate(rows)]).status == status


ONCE = 'check = "once"\nrows = "all"\nkeys = ["end"]\nparams = { by = ["run"] }'


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        pytest.param([("a", None), ("a", "done")], "true", id="one"),
        pytest.param([("a", "done"), ("a", "done")], "false", id="two"),
        pytest.param([("a", "done"), ("b", None)], "false", id="none-in-another-run"),
        pytest.param([("a", "done"), (None, None)], "true", id="a-row-of-no-run"),
        pytest.param([("a", None), ("b", None)], "not_applied", id="never"),
    ],
)
def test_a_reason_is_given_once(rows: list[tuple[Any, Any]], status: str, tell: Tell) -> None:
    made = [{"step": s, "run": run, "end": end} for s, (run, end) in enumerate(rows)]
    made = [{k: v for k, v in row.items() if v is not None} for row in made]
    assert tell(ONCE, made).status == status


KEYS = (
    "check = \"keys_are\"\npattern = '^isv\\..*$'\n"
    'params = { prefix = "isv.", names = { A = 1, B = 2 }MORE }'
)


@pytest.mark.parametrize(
    ("more", "isv", "keys"),
    [
        pytest.param("", {"A": 1.0, "B": [1.0, 2.0]}, [], id="all"),
        pytest.param("", {"A": 1.0, "B": [1.0, 2.0], "C": 1.0}, [], id="more"),
        pytest.param(", only = true", {"A": 1.0, "B": [1.0, 2.0], "C": 1.0}, ["isv.C"], id="only"),
        pytest.param("", {"A": 1.0, "B": [1.0]}, ["isv.B[1]"], id="short-list"),
        pytest.param(", only = true", {"A": 1.0, "B": [1.0] * 3}, ["isv.B[2]"], id="long-list"),
        pytest.param("", {"B": [1.0, 2.0]}, ["isv.A"], id="missing"),
        pytest.param("", {"A": None, "B": [1.0, 2.0]}, [], id="null-is-there"),
    ],
)
def test_keys_are_the_declared_ones(more: str, isv: Row, keys: list[str], tell: Tell) -> None:
    told = tell(KEYS.replace("MORE", more), [{"step": s, "isv": isv} for s in range(3)])
    assert told.keys == keys
