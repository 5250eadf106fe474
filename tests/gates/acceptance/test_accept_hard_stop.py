"""The regression hard stop: first firings counted by hand, and records that are not of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

N2 = '[hard_stop]\nseries = ["evals.jsonl"]\ntermination = "end.json"\nn_consec = 2\n'
VAL = '[[hard_stop.metric]]\nname = "val"\nwarn_below = 0.8\nerror_below = 0.5\n'
LOSS = '[[hard_stop.metric]]\nname = "loss"\nerror_above = 4\n'
E, W, O = 0.1, 0.6, 0.9  # noqa: E741  error, warn, ok


def series(*rows: dict[str, Any]) -> str:
    """Rows of a fold each, an epoch each, unless they say otherwise."""
    return "".join(
        json.dumps({"fold": 0, "epoch": index, **row}) + "\n" for index, row in enumerate(rows)
    )


def vals(*values: Any, **more: Any) -> str:
    return series(*({"val": value, **more} for value in values))


def stop(epoch: int, value: Any = E, **more: Any) -> dict[str, Any]:
    return {
        "reason": "REGRESSION_HARD_STOP", "metric": "val", "value": value, "band": "error",
        "consecutive": 4, "epoch": epoch, "fold": 0, "written_at": "2026-11-01T10:00:00Z",
        "flushed_at": "2026-11-01T10:00:01Z", "signalled_at": "2026-11-01T10:00:02Z", **more,
    }  # fmt: skip


DONE = {"reason": "COMPLETED"}


def judge(accepting: Any, evals: str, *records: Any, warnings: Any = None, toml: str = "",
          allowed: str = '["COMPLETED", "REGRESSION_HARD_STOP"]', **more: Any) -> Any:  # fmt: skip
    head = N2 + f"allowed = {allowed}\n" + ("warnings = false\n" if warnings is None else "")
    end = {"records": list(records), **more}
    if warnings is not None:
        end["warnings"] = [{"metric": "val", "fold": 0, "epoch": epoch} for epoch in warnings]
    text = head + (toml or VAL)
    return accepting.judged({"acceptance.toml": text, "evals.jsonl": evals, "end.json": end})


@pytest.mark.parametrize(
    ("evals", "epoch"),
    [
        pytest.param(vals(O, E, E, E, E), 4, id="fourth-in-a-row"),
        pytest.param(vals(E, E, E, E), 3, id="from-the-start"),
        pytest.param(vals(E, E, E, O, E, E, E, E), 7, id="ok-resets"),
        pytest.param(vals(E, E, E, W, E, E, E, E), 7, id="warn-resets"),
        pytest.param(vals(None, E, None, E), 3, id="nan-is-an-error"),
        pytest.param(vals("0.9", E, E, E), 3, id="text-is-an-error"),
        pytest.param(vals(0.5, E, E, E, E), 4, id="on-the-edge-is-no-error"),
        pytest.param(vals(0.49999999999999994, E, E, E), 3, id="just-below-the-edge-is"),
        pytest.param(
            series({"val": E}, {"val": E}, {"val": E}, {"val": E, "epoch": 0, "fold": 1},
                   {"val": E, "fold": 1}, {"val": E, "fold": 1}, {"val": E, "fold": 1}),
            6, id="a-fold-starts-from-0",
        ),
    ],
)  # fmt: skip
def test_the_stop_fires_at_the_fourth_error_in_a_row(
    accepting: Any, evals: str, epoch: int
) -> None:
    rows = [json.loads(line) for line in evals.splitlines()]
    last = rows[-1]
    record = stop(last["epoch"], last["val"], fold=last["fold"])
    judgement = judge(accepting, evals, record)
    assert accepting.rules(judgement) == []
    assert judgement.passed
    # The mutant that fires one evaluation earlier, and the one that fires later.
    early = "".join(evals.splitlines(True)[:-1])
    before = stop(rows[-2]["epoch"], rows[-2]["val"], fold=rows[-2]["fold"], consecutive=3)
    assert accepting.rules(judge(accepting, early, before)) == ["ACC204"]
    late = evals + json.dumps({**last, "epoch": epoch + 1}) + "\n"
    after = {**record, "epoch": epoch + 1, "consecutive": 5}
    assert accepting.rules(judge(accepting, late, after)) == ["ACC205", "ACC206"]
    assert accepting.rules(judge(accepting, late, DONE)) == ["ACC203"]


@pytest.mark.parametrize(
    "evals",
    [
        pytest.param(vals(E, E, E, O, E, E, E), id="counts-non-consecutive"),
        pytest.param(vals(E, O, E, O, E, O, E, O), id="every-second"),
        pytest.param(vals(E, E, E), id="too-few"),
    ],
)
def test_what_does_not_fire_must_not_be_recorded(accepting: Any, evals: str) -> None:
    assert judge(accepting, evals, DONE).passed
    last = json.loads(evals.splitlines()[-1])
    judgement = judge(accepting, evals, stop(last["epoch"], last["val"]))
    assert accepting.rules(judgement) == ["ACC204"]


def test_metrics_are_not_pooled(accepting: Any) -> None:
    """Two errors of each, in turn: four in all, never four of one."""
    rows = series({"val": E, "loss": 1}, {"val": E, "loss": 9}, {"val": O, "loss": 9},
                  {"val": O, "loss": 1})  # fmt: skip
    assert judge(accepting, rows, DONE, toml=VAL + LOSS).passed
    judgement = judge(accepting, rows, stop(3, O), toml=VAL + LOSS)
    assert accepting.rules(judgement) == ["ACC204"]


def test_of_two_that_fire_together_the_record_may_name_either(accepting: Any) -> None:
    rows = series(*({"val": E, "loss": 9} for _ in range(4)))
    for record in (stop(3), stop(3, 9, metric="loss")):
        assert judge(accepting, rows, record, toml=VAL + LOSS).passed
    other = judge(accepting, rows, stop(3, metric="sharpe"), toml=VAL + LOSS)
    assert accepting.rules(other) == ["ACC205"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"value": 0.2}, "ACC205"), ({"value": None}, "ACC205"), ({"fold": 1}, "ACC205"),
        ({"epoch": 4}, "ACC205"), ({"consecutive": 2}, "ACC205"), ({"band": "warn"}, "ACC205"),
        ({"signalled_at": "2026-11-01T10:00:00.5Z"}, "ACC207"),
        ({"flushed_at": "2026-11-01T09:00:00Z"}, "ACC207"),
        ({"written_at": "2026-11-01T10:00:00"}, "ACC207"),
        ({"signalled_at": "2026-11-01T11:00:01+01:00"}, None),
    ],
)  # fmt: skip
def test_the_record_is_the_one_the_series_leads_to(
    accepting: Any, change: dict[str, Any], rule: str | None
) -> None:
    judgement = judge(accepting, vals(E, E, E, E), stop(3) | change)
    assert accepting.rules(judgement) == ([rule] if rule else [])


def test_times_that_are_not_there_are_no_order(accepting: Any) -> None:
    record = stop(3)
    del record["flushed_at"]
    assert accepting.rules(judge(accepting, vals(E, E, E, E), record)) == ["ACC207"]


@pytest.mark.parametrize(
    ("setting", "evals", "fires"),
    [
        ("warn_resets = false\n", vals(E, E, W, E, E), True),
        ("warn_resets = true\n", vals(E, E, W, E, E), False),
        ('reset_at = "epoch"\n', vals(E, E, E, E), False),
        ('reset_at = "never"\n', series({"val": E}, {"val": E}, {"val": E, "fold": 1},
                                        {"val": E, "fold": 1}), True),
        ('missing = "skip"\n', series({"val": E}, {"val": E}, {}, {"val": E}, {"val": E}), True),
        ('missing = "error"\n', series({"val": E}, {}, {}, {"val": E}), True),
        ('missing = "skip"\n', series({"val": E}, {}, {}, {"val": E}), False),
    ],
)  # fmt: skip
def test_what_the_programme_proposes_can_be_set(
    accepting: Any, setting: str, evals: str, fires: bool
) -> None:
    toml = setting + VAL
    judgement = judge(accepting, evals, DONE, toml=toml)
    assert ("ACC203" in accepting.rules(judgement)) is fires


def test_n_can_be_set(accepting: Any) -> None:
    toml = N2.replace("n_consec = 2", "n_consec = 1") + "warnings = false\n" + VAL
    end = {"records": [DONE]}
    files = {"acceptance.toml": toml, "evals.jsonl": vals(E, E), "end.json": end}
    assert accepting.rules(accepting.judged(files)) == ["ACC203"]


@pytest.mark.parametrize(
    ("evals", "warnings", "sound"),
    [
        (vals(O, E, E, O), [2], True), (vals(O, E, E, O), [], False),
        (vals(O, E, E, O), [2, 2], False), (vals(O, E, O), [], True),
        (vals(O, E, E, E, O), [2], True), (vals(O, E, E, E, O), [2, 3], False),
        (vals(E, E, O, E, E, O), [1, 4], True), (vals(E, E, O, E, E, O), [1], False),
    ],
)  # fmt: skip
def test_n_in_a_row_are_one_warning(
    accepting: Any, evals: str, warnings: list[int], sound: bool
) -> None:
    judgement = judge(accepting, evals, DONE, warnings=warnings)
    assert accepting.rules(judgement) == ([] if sound else ["ACC208"])


@pytest.mark.parametrize(
    ("records", "more", "rules"),
    [
        ([], {}, ["ACC201"]),
        ([DONE, DONE], {}, ["ACC201"]),
        ([], {"exit_code": 1}, ["ACC201"]),
        ([], {"exit_code": 143}, ["ACC202"]),
        ([], {"exit_code": -15}, ["ACC202"]),
        ([{"reason": "EXTERNAL_SIGNAL", "sig": 15}], {}, ["ACC202"]),
        ([{"reason": "NAN_FLAG", "slot": 7}], {}, ["ACC202"]),
        ([DONE], {}, []),
    ],
)
def test_there_is_exactly_one_reason(
    accepting: Any, records: list[Any], more: Any, rules: list[str]
) -> None:
    judgement = judge(accepting, vals(O), *records, allowed='["COMPLETED"]', **more)
    assert accepting.rules(judgement) == rules
    assert judgement.passed is not rules


def test_a_stop_that_is_right_is_still_no_accepted_end(accepting: Any) -> None:
    judgement = judge(accepting, vals(E, E, E, E), stop(3), allowed='["COMPLETED"]')
    assert accepting.rules(judgement) == ["ACC202"]
    assert accepting.held(judgement)["hard_stop.as_the_series"] == "true"


@pytest.mark.parametrize(
    "record",
    [{"reason": "REGRESSION_HARD_STOP"}, {"reason": "PANIC"}, {"reason": "DONE"}, {}, "COMPLETED"],
)
def test_a_record_of_another_form_is_refused(accepting: Any, record: Any) -> None:
    from trueup.gates.acceptance.errors import AcceptanceError

    with pytest.raises(AcceptanceError, match=r"end\.json: records\[0\]"):
        judge(accepting, vals(O), record)


@pytest.mark.parametrize("evals", ["[1]\n", vals(O) + '{"val"', vals(O) + "\n"])
def test_rows_that_cannot_be_read_leave_it_open(accepting: Any, evals: str) -> None:
    judgement = judge(accepting, evals, DONE)
    assert accepting.held(judgement)["hard_stop.as_the_series"] == "undetermined"
    assert not judgement.passed


def test_a_series_over_several_files_is_one(accepting: Any) -> None:
    toml = N2.replace('["evals.jsonl"]', '["a.jsonl", "b.jsonl"]') + "warnings = false\n" + VAL
    files = {"acceptance.toml": toml, "a.jsonl": vals(E, E), "b.jsonl": vals(E, E),
             "end.json": {"records": [DONE]}}  # fmt: skip
    assert accepting.rules(accepting.judged(files)) == ["ACC203"]
