"""What a file makes a check remember is bounded; what finds no room is not judged in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trueup.gates.telemetry import groups, said_checks

Row = dict[str, Any]
Tell = Callable[..., Any]

GROUPED = [
    pytest.param(
        'check = "moves"\nkeys = ["x"]\nparams = { min_rows = 1, by = ["run"] }',
        lambda run, x: {"x": x}, id="moves",
    ),
    pytest.param(
        'check = "once"\nkeys = ["x"]\nparams = { by = ["run"] }',
        lambda run, x: {"x": x} if x == 1.0 else {}, id="once",
    ),
    pytest.param(
        "check = \"ends_within\"\npattern = '^m\\.(?P<field>r|n)$'\n"
        'params = { rate = "r", count = "n", min_count = 1, below = 2.0, by = ["run"] }',
        lambda run, x: {"m.r": 0.5, "m.n": 3}, id="ends_within",
    ),
    pytest.param(
        'check = "no_zero_streak"\nkeys = ["x"]\n'
        'params = { epochs = 2, epoch = "step", by = ["run"] }',
        lambda run, x: {"x": x}, id="no_zero_streak",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "cells"), GROUPED)
def test_groups_past_the_limit_leave_a_rule_open(
    rule: str, cells: Callable[[int, float], Row], tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MAX_PLACES", 2)
    rows = [
        {"step": 2 * run + k, "run": f"r{run}", **cells(run, float(k + 1))}
        for run in range(3)
        for k in range(2)
    ]
    assert tell(rule, rows[:4]).status == "true"
    told = tell(rule, rows)
    assert (told.status, told.got) == (
        "undetermined", ["undetermined: more than 2 columns times groups"],
    )  # fmt: skip


def test_a_value_that_is_asked_for_is_remembered_after_many_others(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(said_checks, "MAX_SAID", 3)
    rule = (
        'check = "implies"\nrows = "all"\nkeys = ["code", "on"]\n'
        'params = { key = "code", is = "off", then = "on", among = [false] }'
    )
    rows: list[Row] = [{"step": -1, "on": True}]
    rows += [{"step": -1, "code": f"c{k}"} for k in range(9)]
    assert tell(rule, rows).status == "not_applied"
    assert tell(rule, [*rows, {"step": -1, "code": "off"}]).status == "false"
