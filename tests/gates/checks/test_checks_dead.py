"""Signals that are dead, copies, keys that never come, and where a metric is going."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Row = dict[str, Any]
Tell = Callable[..., Any]


def series(name: str, values: list[Any], **more: Any) -> list[Row]:
    return [{"step": step, name: value, **more} for step, value in enumerate(values)]


def rule(check: str, keys: str, params: str = "") -> str:
    target = keys if keys.startswith("pattern") else f"keys = {keys}"
    return f'check = "{check}"\n{target}\n' + (f"params = {{ {params} }}" if params else "")


@pytest.mark.parametrize(
    ("check", "params", "values", "status"),
    [
        ("moves", "min_rows = 3", [1.5, 1.5, 1.5], "false"),
        ("moves", "min_rows = 3", [1.5, 1.5, 1.25], "true"),
        ("moves", "min_rows = 4", [1.5, 1.5, 1.5], "not_applied"),
        ("ever_positive", "min_rows = 3", [0, 0, 0], "false"),
        ("ever_positive", "min_rows = 3", [0, 0, 1], "true"),
        ("ever_positive", "min_rows = 3, above = 1", [0, 0, 1], "false"),
        ("ever_positive", "min_rows = 3", [-1, -2, -1], "false"),
        ("any_nonzero", "min_rows = 1", [0.0, 0.0], "false"),
        ("any_nonzero", "min_rows = 1", [0.0, -0.0], "false"),
        ("any_nonzero", "min_rows = 1", [0.0, -1e-300], "true"),
        ("appears", "min_rows = 1", [None, 0.0], "true"),
        ("appears", "min_rows = 1, above = 0", [None, 0.0], "false"),
        ("appears", "min_rows = 3, above = 0", [0.0, 0.0], "not_applied"),
    ],
)
def test_signals_of_a_whole_run(
    check: str, params: str, values: list[Any], status: str, tell: Tell
) -> None:
    told = tell(rule(check, '["x"]', params), series("x", values))
    assert told.status == status


def test_a_group_may_be_dead_by_itself(tell: Tell) -> None:
    rows = [{"step": s, "fold": s % 2, "x": 0.0 if s % 2 else float(s)} for s in range(8)]
    told = tell(rule("ever_positive", '["x"]', 'min_rows = 3, by = ["fold"]'), rows)
    assert told.got == ["never above 0.0 in 4 rows (fold 1)"]


def test_zero_in_one_column_is_excused_by_another(tell: Tell) -> None:
    pattern = "pattern = '^d\\..*$'"
    rows = [{"step": s, "d.a": 0.0, "d.b": float(s)} for s in range(3)]
    assert tell(rule("any_nonzero", pattern, "min_rows = 1"), rows).status == "true"


def test_a_key_that_never_comes(tell: Tell) -> None:
    told = tell(rule("appears", "pattern = '^fast\\..*$'", "min_rows = 1"), series("x", [1.0]))
    assert told.status == "false"
    assert told.got == ["no key that matches ^fast\\..*$ holds a value in 1 rows"]


def test_a_forbidden_key_is_found_even_where_it_is_null(tell: Tell) -> None:
    forbidden = rule("forbidden", "pattern = '^old_.*$'")
    assert tell(forbidden, series("new", [1.0])).status == "true"
    assert tell(forbidden, series("old_x", [1.0])).keys == ["old_x"]
    assert tell(forbidden, series("old_x", [None, None], x=1.0)).keys == ["old_x"]


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ([0.1, 0.9], "true"),
        ([0.5, 0.4], "true"),
        ([0.5, 0.9], "false"),
        ([0.1, 0.4], "false"),
    ],
)
def test_a_gate_opens_and_closes(values: list[float], status: str, tell: Tell) -> None:
    crosses = rule("crosses", '["x"]', 'threshold = "gate", min_rows = 2')
    assert tell(crosses, [{"step": -1, "gate": 0.5}, *series("x", values)]).status == status


def test_a_gate_that_is_no_number_is_not_judged(tell: Tell) -> None:
    crosses = rule("crosses", '["x"]', 'threshold = "gate", min_rows = 2')
    told = tell(crosses, [{"step": -1, "gate": "high"}, *series("x", [0.1, 0.9])])
    assert (told.status, told.reason) == ("not_applied", "gate is no number")


def test_spreads_and_rising_orders(tell: Tell) -> None:
    spreads = rule(
        "spreads", "pattern = '^s\\.(?P<field>.*)$'", 'low = "lo", high = "hi", min_rows = 2'
    )
    rows = [{"step": s, "s.lo": 1.0, "s.hi": 1.0} for s in range(3)]
    assert tell(spreads, rows).status == "false"
    assert tell(spreads, [*rows, {"step": 3, "s.lo": 1.0, "s.hi": 2.0}]).status == "true"
    rising = rule("not_always_rising", '["a", "b"]', "min_rows = 2")
    rows = [{"step": s, "a": 1.0, "b": 2.0} for s in range(3)]
    assert tell(rising, rows).status == "false"
    assert tell(rising, [*rows, {"step": 3, "a": 2.0, "b": 2.0}]).status == "true"


DISTINCT = rule("distinct", "pattern = '^n\\..*$'", "min_rows = 3")


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        pytest.param([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "false", id="copy"),
        pytest.param([1.0, 2.0, 3.0], [1.0, 2.0, 3.0000000000000004], "true", id="last-bit"),
        pytest.param([1.0, 2.0, 3.0], [2.0, 1.0, 3.0], "true", id="other-order"),
        pytest.param([1.0, None, 2.0, 3.0], [None, 1.0, 2.0, 3.0], "true", id="other-rows"),
        pytest.param([1, 2, 3], [1.0, 2.0, 3.0], "false", id="integers-and-floats"),
        pytest.param([0.0, 1.0, 2.0], [-0.0, 1.0, 2.0], "false", id="signed-zero"),
        pytest.param([5.0, 5.0, 5.0], [5.0, 5.0, 5.0], "true", id="constants-are-not-judged"),
        pytest.param([1.0, 2.0], [1.0, 2.0], "not_applied", id="too-few"),
    ],
)
def test_copies(a: list[Any], b: list[Any], status: str, tell: Tell) -> None:
    rows = [{"step": s, "n.a": x, "n.b": y} for s, (x, y) in enumerate(zip(a, b, strict=True))]
    rows = [{k: v for k, v in row.items() if v is not None} for row in rows]
    assert tell(DISTINCT, rows).status == status


@given(
    a=st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0]), min_size=3, max_size=6),
    b=st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0]), min_size=3, max_size=6),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_copies_agree_with_plain_equality(a: list[float], b: list[float], tell: Tell) -> None:
    length = min(len(a), len(b))
    a, b = a[:length], b[:length]
    rows = [{"step": s, "n.a": x, "n.b": y} for s, (x, y) in enumerate(zip(a, b, strict=True))]
    copied = a == b and len(set(a)) > 1
    assert (tell(DISTINCT, rows).status == "false") == copied


APART = rule(
    "apart", "pattern = '^(?P<side>(train|eval)[._/])?(?P<field>loss|ppl)$'", "min_rows = 3"
)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        pytest.param([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], "false", id="the-same"),
        pytest.param([(1.0, 1.0), (2.0, 2.0), (3.0, 3.5)], "true", id="once-another"),
        pytest.param([(1.0, 1.0), (2.0, 2.0)], "not_applied", id="too-few"),
        pytest.param(
            [(1.0, None), (None, 1.0), (2.0, None), (None, 2.0), (3.0, None), (None, 3.0)],
            "false", id="in-rows-of-their-own",
        ),
        pytest.param(
            [(1.0, 1.0), (2.0, None), (3.0, 3.0), (4.0, None), (5.0, 5.0)], "false", id="seldom"
        ),
        pytest.param(
            [(1.0, 1.5), (2.0, None), (3.0, 2.5), (4.0, None), (5.0, 4.5)], "true", id="apart"
        ),
    ],
)  # fmt: skip
def test_training_and_evaluation(rows: list[tuple[Any, Any]], status: str, tell: Tell) -> None:
    made = [{"step": s, "loss": a, "eval/loss": b} for s, (a, b) in enumerate(rows)]
    made = [{k: v for k, v in row.items() if v is not None} for row in made]
    assert tell(APART, made).status == status


def test_metrics_of_another_name_are_not_compared(tell: Tell) -> None:
    rows = [{"step": s, "loss": float(s), "eval/ppl": float(s)} for s in range(5)]
    assert tell(APART, rows).status == "not_applied"


BELOW = rule("below_start", '["loss"]', "window = 2, warmup = 3")


@pytest.mark.parametrize(
    ("losses", "status"),
    [
        pytest.param([5.0, 5.0, 9.0, 3.0, 3.0], "true", id="high-in-the-warm-up"),
        pytest.param([5.0, 5.0, 4.0, 6.0, 6.0], "false", id="ends-above"),
        pytest.param([5.0, 5.0, 4.0, 6.0, 6.0, 1.0, 1.0], "false", id="was-above"),
        pytest.param([5.0, 5.0, 4.0, 6.0, 4.0], "true", id="mean-at-the-start"),
        pytest.param([5.0, 5.0, 4.0, 9.0], "not_applied", id="too-short"),
    ],
)
def test_a_loss_stays_below_its_start(losses: list[float], status: str, tell: Tell) -> None:
    assert tell(BELOW, series("loss", losses)).status == status


def test_the_worst_window_is_shown(tell: Tell) -> None:
    told = tell(BELOW, series("loss", [5.0, 5.0, 4.0, 6.0, 8.0, 6.0, 1.0]))
    assert told.got == ["a mean of 7.0 over rows 4 to 5, 5.0 over the first 2"]


@given(
    losses=st.lists(st.integers(0, 8).map(float), min_size=1, max_size=14),
    size=st.integers(1, 4), warmup=st.integers(0, 6),
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_windows_agree_with_plain_means(
    losses: list[float], size: int, warmup: int, tell: Tell
) -> None:
    first = max(warmup, size)
    means = [
        math.fsum(losses[at : at + size]) / size for at in range(first, len(losses) - size + 1)
    ]
    told = tell(rule("below_start", '["loss"]', f"window = {size}, warmup = {warmup}"),
                series("loss", losses))  # fmt: skip
    if not means:
        assert told.status == "not_applied"
    else:
        start = math.fsum(losses[:size]) / size
        # Means of integers by another order of operations: equal ones may differ in the last bit.
        assert (told.status == "false") == (max(means) > start + 1e-12)


SPIKE = rule("no_spike", '["loss"]', "window = 3, factor = 2.0")


@pytest.mark.parametrize(
    ("losses", "bad"),
    [
        pytest.param([2.0, 2.0, 2.0, 4.0], [], id="twice-passes"),
        pytest.param([2.0, 2.0, 2.0, 4.1], [4], id="more-than-twice"),
        pytest.param([2.0, 2.0, 9.0], [], id="no-full-window"),
        pytest.param([2.0, 2.0, 2.0, 5.0, 2.0, 7.0], [4, 6], id="mean-of-the-last-three"),
        pytest.param([2.0, None, 2.0, 2.0, 9.0], [5], id="rows-without-it"),
    ],
)
def test_spikes(losses: list[Any], bad: list[int], tell: Tell) -> None:
    rows = [{"step": s, "loss": x} if x is not None else {"step": s} for s, x in enumerate(losses)]
    told = tell(SPIKE, rows)
    assert [e.where.row for finding in told.findings for e in finding.examples] == bad
