"""What is told from least and largest values is what asking every row would tell."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.gates.errors import GateError
from trueup.gates.profile.rules import Rule
from trueup.gates.telemetry import compile as engine
from trueup.gates.telemetry.compile import Judge, answers, failing
from trueup.gates.telemetry.probe import Probe, View
from trueup.gates.telemetry.registry import CHECKS
from trueup.gates.telemetry.scopes import Rows

BIG = 2**53
FLOATS = st.sampled_from(
    [None, float("nan"), float("inf"), -float("inf"), -1.5, 0.0, 0.5, 1.0, 2.0]
)
INTS = st.sampled_from([None, -1, 0, 1, BIG, BIG + 1, 2**63 - 1])
WIDE = st.sampled_from([None, 0, 1, 2**63, 2**64 + 1, -(2**63) - 1])
COLUMNS = (
    st.lists(FLOATS, min_size=1, max_size=6).map(lambda v: pl.Series("x", v, dtype=pl.Float64))
    | st.lists(INTS, min_size=1, max_size=6).map(lambda v: pl.Series("x", v, dtype=pl.Int64))
    | st.lists(WIDE, min_size=1, max_size=6).map(lambda v: pl.Series("x", v, dtype=pl.Int128))
    | st.lists(st.none() | st.booleans(), min_size=1).map(
        lambda v: pl.Series("x", v, dtype=pl.Boolean)
    )
    | st.lists(st.none() | st.just("a"), min_size=1).map(
        lambda v: pl.Series("x", v, dtype=pl.String)
    )
)
BOUNDS = st.sampled_from([-1, 0, 0.5, 1.0, BIG, BIG + 0.0, 2**64, float("inf"), float("nan")])
NAMES = ["present", "finite", "at_least", "at_most", "between", "nonzero", "number", "integer"]


def probes(check: str, params: dict[str, Any], rows: Rows) -> list[Probe]:
    rule = Rule("OWN001", "error", "s", "w", "e", "f", check, keys=("x",), params=params)
    view = View(rows, rule, ["x"], {}, {}, dict(rows.frame.schema))
    build = CHECKS[check].build
    assert build is not None
    return build(view)


@settings(max_examples=1_500, deadline=None)
@given(column=COLUMNS, check=st.sampled_from(NAMES), low=BOUNDS, high=BOUNDS)
def test_quick_answers_are_the_answers(
    column: pl.Series, check: str, low: float, high: float
) -> None:
    frame = column.to_frame()
    rows = Rows(frame, ("step", "all"))
    compiled = {"OWN001": probes(check, {"min": low, "max": high}, rows)}
    if not compiled["OWN001"]:
        return
    asked = answers(compiled, frame)
    assert answers(compiled, frame, rows.columns).equals(asked)
    assert failing(compiled, frame, rows.columns) == failing(compiled, frame)


@pytest.mark.parametrize("check", ["present", "finite", "at_least", "at_most", "between"])
def test_quick_answers_are_given(check: str) -> None:
    """A column that holds asks nothing: the query would fail here."""
    rows = Rows(pl.DataFrame({"x": [0.25, 0.5]}), ("step", "all"))
    compiled = {"OWN001": probes(check, {"min": 0, "max": 1}, rows)}
    told = answers(compiled, pl.DataFrame({"y": [1, 2]}), rows.columns)
    assert told.get_column("holds").to_list() == [True]


X = [Probe("x", pl.col("x") > 0, ("x",))]
GOOD, BAD = pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [1, -2]})


def test_batches_that_hold_are_judged_together_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    real = engine._judged

    def noted(told: pl.DataFrame) -> set[str]:
        seen.append(told.height)
        return real(told)

    monkeypatch.setattr(engine, "_judged", noted)
    judge = Judge()
    compiled = {"OWN001": X, "OWN002": X}
    found = [judge.failing(compiled, frame, {}) for frame in (GOOD, BAD, GOOD)]
    assert found == [set(), {"OWN001", "OWN002"}, set()]
    judge.finish()
    assert seen == [2, 4]


@pytest.mark.parametrize(("frame", "says"), [(BAD, set()), (GOOD, {"OWN001"})])
def test_engine_that_contradicts_the_answers_is_found_out(
    frame: pl.DataFrame, says: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_judged", lambda told: says)
    with pytest.raises(GateError, match="does not judge what it was told"):
        judged_whole(frame)


def judged_whole(frame: pl.DataFrame) -> None:
    judge = Judge()
    judge.failing({"OWN001": X}, frame, {})
    judge.finish()
