"""Order within groups and after a resume, counters that accumulate, gaps, repeated steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trueup.gates.telemetry import gap_checks, past

Row = dict[str, Any]
Tell = Callable[..., Any]

RISES = 'check = "increasing"\nrows = "all"\nkeys = ["step"]\n'
RESUMABLE = RISES + 'params = { resume = "from", by = ["fold"] }'
EXACT = RISES + 'params = { resume = "from", interval = 1 }'


def resume(step: float | None, **more: Any) -> Row:
    return {"step": -1, "from": step, **more}


def rows_of(*steps: Any) -> list[Row]:
    """Rows of these steps; a row is taken as it is."""
    return [one if isinstance(one, dict) else {"step": one} for one in steps]


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        pytest.param([0, 1, 2, resume(1), 2, 3], "true", id="goes-back-to-one-past-it"),
        pytest.param([0, 1, 2, resume(0), 1, 2, resume(1), 2], "true", id="twice"),
        pytest.param([resume(41), 42, 43], "true", id="begins-the-file"),
        pytest.param([0, 1, 2, resume(2), 3], "true", id="goes-on"),
        pytest.param([0, 1, 2, resume(0), 2, 3], "false", id="leaves-a-step-out"),
        pytest.param([0, 1, 2, resume(1), 1], "false", id="does-the-restored-step-again"),
        pytest.param([0, 1, 2, resume(9), 10], "false", id="from-a-step-never-reached"),
        pytest.param([0, 1, 2, resume(None), 1], "false", id="declares-nothing"),
        pytest.param([0, 1, 2, {"step": -1, "device": "cpu"}, 1], "false", id="other-config-row"),
        pytest.param([0, 1, 2, resume(0), 1, 1], "false", id="repeats-after-it"),
        pytest.param([0, 1, {"step": 1, "from": 0}, 2], "false", id="in-a-row-of-steps"),
        pytest.param([0, 1, {"step": 2, "from": 1}, {"step": 3, "from": 2}], "true", id="harmless"),
        pytest.param([0, 1, resume(0), resume(0), 1], "true", id="declared-twice"),
    ],
)
def test_a_declared_resume_may_go_back(steps: list[Any], status: str, tell: Tell) -> None:
    assert tell(EXACT, rows_of(*steps)).status == status


def test_a_resume_is_one_of_its_group_alone(tell: Tell) -> None:
    rows = [
        {"fold": 0, "step": 1}, {"fold": 1, "step": 1}, {"fold": 0, "step": 2},
        {"fold": 0, "step": -1, "from": 1}, {"fold": 1, "step": 2}, {"fold": 0, "step": 2},
    ]  # fmt: skip
    assert tell(RESUMABLE, rows).status == "true"
    rows[-1]["fold"] = 1
    told = tell(RESUMABLE, rows)
    assert (told.status, told.findings[0].where.row) == ("false", 6)


def plain_increasing(rows: list[Row]) -> list[int]:
    """The rows at fault, by the definition and one row after the other."""
    bad = []
    last: dict[int, int] = {}
    furthest: dict[int, int] = {}
    declared: dict[int, int] = {}
    for index, row in enumerate(rows):
        fold, step = row["fold"], row["step"]
        if step == -1:
            if row.get("from") is not None:
                if fold in furthest and row["from"] > furthest[fold]:
                    bad.append(index)
                declared[fold] = row["from"]
                last.pop(fold, None)
            continue
        least = last[fold] if fold in last else declared.get(fold, -1)
        bad += [index] * (step <= least)
        last[fold] = step
        furthest[fold] = max(step, furthest.get(fold, step))
    return bad


one_row = st.builds(
    lambda fold, step, at: (
        {"fold": fold, "step": -1, "from": at} if step == -1 else {"fold": fold, "step": step}
    ),
    st.integers(0, 2),
    st.integers(-1, 6),
    st.integers(0, 6),
)


@given(rows=st.lists(one_row, min_size=1, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_order_agrees_with_a_loop_over_rows(rows: list[Row], tell: Tell) -> None:
    bad = plain_increasing(rows)
    told = tell(RESUMABLE, rows)
    assert (told.status == "false") == bool(bad)
    assert sum(finding.count for finding in told.findings) == len(bad)


def test_equal_values_pass_where_it_need_not_be_strict(tell: Tell) -> None:
    rule = 'check = "increasing"\nkeys = ["n"]\nparams = { strict = false }'
    assert tell(rule, [{"step": s, "n": n} for s, n in enumerate([1, 1, 2])]).status == "true"
    assert tell(rule, [{"step": s, "n": n} for s, n in enumerate([1, 2, 1])]).status == "false"


def test_other_counts_may_go_back_with_the_step(tell: Tell) -> None:
    rule = (
        'check = "increasing"\nrows = "all"\nkeys = ["epoch"]\n'
        'params = { step = "step", resume = "from" }'
    )
    rows: list[Row] = [{"step": s, "epoch": s} for s in (1, 2, 3)]
    again: list[Row] = [{"step": 2, "epoch": 2}]
    assert tell(rule, [*rows, resume(1), *again]).status == "true"
    assert tell(rule, [*rows, *again]).status == "false"


def test_a_group_stays_one_where_its_column_turns_to_floats(tell: Tell) -> None:
    rows = [{"fold": 1, "step": 5}, {"fold": 0.5, "step": 1}, {"fold": 1, "step": 4}]
    rule = 'check = "increasing"\nkeys = ["step"]\nparams = { by = ["fold"] }'
    assert tell(rule, rows).findings[0].where.row == 3
    moves = 'check = "moves"\nkeys = ["step"]\nparams = { min_rows = 2, by = ["fold"] }'
    rows[2]["step"] = 5
    assert tell(moves, rows).got == ["5 in all 2 rows (fold 1)"]


def test_too_many_groups_leave_it_open(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MAX_GROUPS", 3)
    rule = 'check = "increasing"\nkeys = ["step"]\nparams = { by = ["run"] }'
    rows = [{"run": f"r{k}", "step": 0} for k in range(5)]
    assert tell(rule, rows[:3]).status == "true"
    told = tell(rule, rows, cut=False)  # from which row on depends on the batches
    assert (told.status, told.keys) == ("undetermined", ["step"])


FIRST = (
    'check = "config_first"\nrows = "all"\nkeys = ["step"]\n'
    'params = { config_step = -1, resume = "from" }'
)
CONFIG: Row = {"step": -1, "device": "cpu"}


@pytest.mark.parametrize(
    ("steps", "bad"),
    [
        pytest.param([CONFIG, CONFIG, 0, 1], [], id="first"),
        pytest.param([0, 1], [None], id="none"),
        pytest.param([CONFIG, 0, CONFIG, 1], [3], id="late"),
        pytest.param([CONFIG, 0, 1, resume(0), 1], [], id="a-resume"),
        pytest.param([CONFIG, 0, 1, resume(0), CONFIG, CONFIG, 1], [], id="with-its-configuration"),
        pytest.param([CONFIG, 0, 1, CONFIG, resume(0), 1], [4], id="before-the-resume"),
        pytest.param([CONFIG, 0, 1, resume(0), 1, CONFIG], [6], id="after-its-first-step"),
        pytest.param([CONFIG, 0, {"step": 1, "from": 0}, CONFIG], [4], id="declared-in-a-step"),
        pytest.param([CONFIG, 0, 1, resume(None), CONFIG], [4, 5], id="declares-nothing"),
    ],
)
def test_configuration_stands_first(steps: list[Any], bad: list[Any], tell: Tell) -> None:
    told = tell(FIRST, rows_of(*steps))
    assert [e.where.row for finding in told.findings for e in finding.examples] == bad


TOTAL = (
    'check = "accumulates"\nrows = "all"\nkeys = ["total"]\n'
    'params = { total = "total", part = "part", step = "step", resume = "from" }'
)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        pytest.param([(0, 8, 8), (1, 16, 8), (2, 24, 8)], "true", id="by-eight"),
        pytest.param([(0, 8, 8), (1, 16, 8), (4, 40, 8)], "true", id="steps-between"),
        pytest.param([(5, 100, 8), (6, 108, 8)], "true", id="any-start-but-0"),
        pytest.param([(0, 16, 8), (1, 24, 8)], "false", id="first-step-has-seen-more"),
        pytest.param([(0, 8, 8), (1, 24, 8)], "false", id="twice"),
        pytest.param([(0, 8, 8), (1, 12, 4), (2, 20, 8)], "true", id="a-short-batch"),
        pytest.param([(0, 8, 8), (2, 20, 8)], "false", id="a-short-batch-between"),
    ],
)
def test_totals_accumulate(rows: list[tuple[int, int, int]], status: str, tell: Tell) -> None:
    made = [{"step": s, "total": t, "part": p} for s, t, p in rows]
    assert tell(TOTAL, made).status == status


def test_uneven_batches_between_rows_may_be_declared(tell: Tell) -> None:
    rows = [{"step": 0, "total": 8, "part": 8}, {"step": 2, "total": 20, "part": 8}]
    rule = TOTAL.replace("}", ", uneven = true }")
    assert tell(rule, rows).status == "true"
    assert tell(rule, [rows[0], {**rows[1], "total": 8}]).status == "false"


def test_a_total_starts_anew_after_a_resume(tell: Tell) -> None:
    rows: list[Row] = [{"step": s, "total": 8 * (s + 1), "part": 8} for s in range(4)]
    again = [{"step": 2, "total": 3, "part": 8}, {"step": 3, "total": 11, "part": 8}]
    assert tell(TOTAL, [*rows, resume(1), *again]).status == "true"
    assert tell(TOTAL, [*rows, resume(1), again[0], {**again[1], "total": 12}]).status == "false"


EVERY = (
    'check = "counts_every"\nrows = "all"\nkeys = ["count"]\n'
    'params = { count = "count", every = "every", step = "step", resume = "from", unit = "UNIT" }'
)


@pytest.mark.parametrize(
    ("unit", "counts", "status"),
    [
        pytest.param("batch", [0, 1, 1, 2, 2, 3], "true", id="from-an-even-step"),
        pytest.param("batch", [1, 1, 2, 2, 3, 3], "true", id="from-an-odd-step"),
        pytest.param("batch", [0, 1, 1, 2, 2, 2, 2], "false", id="one-too-few"),
        pytest.param("batch", [0, 1, 2, 3, 4, 5], "false", id="each"),
        pytest.param("update", [1, 2, 3, 4, 5, 6], "true", id="a-step-is-an-update"),
        pytest.param("update", [0, 1, 1, 2, 2, 3], "false", id="a-step-is-a-batch"),
    ],
)
def test_steps_of_the_optimiser(unit: str, counts: list[int], status: str, tell: Tell) -> None:
    rows = [{"step": s, "count": c, "every": 2} for s, c in enumerate(counts)]
    assert tell(EVERY.replace("UNIT", unit), rows).status == status


FOLLOWS = (
    'check = "follows"\nkeys = ["y"]\n'
    'params = { value = "y", with = ["a", "b"], direction = "DIRECTION" }'
)


@pytest.mark.parametrize(
    ("direction", "rows", "status"),
    [
        pytest.param("up", [(1, 1, 1), (2, 2, 1), (2, 2, 2)], "true", id="up"),
        pytest.param("up", [(1, 1, 2), (2, 2, 1)], "false", id="up-falls"),
        pytest.param("up", [(1, 1, 2), (2, 0, 1)], "true", id="up-one-falls"),
        pytest.param("down", [(1, 1, 3), (2, 1, 2), (2, 1, 2)], "true", id="down"),
        pytest.param("down", [(1, 1, 1), (2, 1, 2)], "false", id="down-rises"),
        pytest.param("down", [(2, 1, 1), (1, 1, 2)], "true", id="down-one-falls"),
    ],
)
def test_a_value_follows_others(
    direction: str, rows: list[tuple[int, int, int]], status: str, tell: Tell
) -> None:
    made = [{"step": s, "a": a, "b": b, "y": y} for s, (a, b, y) in enumerate(rows)]
    assert tell(FOLLOWS.replace("DIRECTION", direction), made).status == status


def test_a_constant_is_that_of_its_group(tell: Tell) -> None:
    rule = 'check = "constant"\nkeys = ["seed", "name"]\nparams = { by = ["run"] }'
    rows = [{"step": s, "run": s % 2, "seed": s % 2, "name": f"r{s % 2}"} for s in range(6)]
    assert tell(rule, rows).status == "true"
    rows[5]["name"] = "r0"
    assert tell(rule, rows).keys == ["name"]


REGULAR = 'check = "regular"\nrows = "all"\nkeys = ["step"]\n'


@pytest.mark.parametrize(
    ("params", "steps", "status"),
    [
        pytest.param("min_rows = 3", [0, 10, 20, 30, 37], "true", id="usual-and-a-last-row"),
        pytest.param("min_rows = 3", [0, 10, 20, 30, 50], "false", id="usual-and-a-gap"),
        pytest.param("min_rows = 9", [0, 10, 20, 30, 50], "not_applied", id="too-few-to-tell"),
        pytest.param("interval = 5", [0, 5, 10, 16], "false", id="declared"),
        pytest.param("interval = 50", [0, 5, 10, 60], "true", id="declared-wider"),
        pytest.param(
            'interval = "log.every"', [{"step": -1, "log.every": 5}, 0, 5, 11], "false", id="key"
        ),
        pytest.param('resume = "from"', [0, 1, 2, resume(0), 1, 2], "true", id="resumed"),
        pytest.param('resume = "from"', [0, 1, 2, resume(0), 2, 3], "false", id="resumed-late"),
    ],
)
def test_gaps(params: str, steps: list[Any], status: str, tell: Tell) -> None:
    assert tell(f"{REGULAR}params = {{ {params} }}", rows_of(*steps)).status == status


def test_a_gap_is_placed_and_counted(tell: Tell) -> None:
    rows = rows_of(0, 1, 2, 3, 7, 8, 9, 12, 13)
    (finding,) = tell(f"{REGULAR}params = {{ min_rows = 2 }}", rows).findings
    assert finding.where.step == 3
    assert finding.got == "from 3 to 7, with rows every 1; 2 gaps in all"


AGREES = (
    'check = "repeats_agree"\nrows = "all"\nkeys = ["loss"]\n'
    'params = { step = "step", resume = "from", rel = 1e-3 }'
)


def losses(*pairs: tuple[int, float]) -> list[Row]:
    return [{"step": step, "loss": loss} for step, loss in pairs]


@pytest.mark.parametrize(
    ("again", "status"),
    [
        pytest.param(losses((1, 4.0), (2, 3.0)), "true", id="the-same"),
        pytest.param(losses((1, 4.002), (2, 3.0)), "true", id="within"),
        pytest.param(losses((1, 4.0), (2, 3.5)), "false", id="another"),
        pytest.param(losses((3, 2.5)), "not_applied", id="nothing-repeated"),
    ],
)
def test_repeated_steps_agree(again: list[Row], status: str, tell: Tell) -> None:
    before = losses((0, 5.0), (1, 4.0), (2, 3.0))
    assert tell(AGREES, [*before, resume(again[0]["step"] - 1), *again]).status == status


def test_a_repetition_is_held_against_the_last_one(tell: Tell) -> None:
    rows = [*losses((0, 5.0), (1, 4.0)), resume(0), *losses((1, 2.0)), resume(0)]
    assert tell(AGREES, [*rows, *losses((1, 2.0))]).got == [
        "4.0 and, after the resume, 2.0 at step 1; 1 of 2 repeated steps differ"
    ]


def test_what_lies_too_far_back_is_not_said_to_agree(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gap_checks, "KEPT", 2)
    rows = [*losses(*((s, 5.0) for s in range(6))), resume(0), *losses((1, 5.0), (2, 5.0))]
    assert tell(AGREES, rows).status == "undetermined"
