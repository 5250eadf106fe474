"""A final run: every way to make thirty cells look like a passed first attempt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from trueup.gates.acceptance.errors import AcceptanceError
from trueup.gates.acceptance.robustness import median, squared_spread

DQN = "passes_dqn_final"
Change = Callable[[list[dict[str, Any]]], object]


def dqn(accepting: Any, change: Change, **files: Any) -> Any:
    """The passing final run with its cells changed."""
    results = json.loads(accepting.fixture(DQN)["results.json"])
    change(results["cells"])
    return accepting.like(DQN, results_json=results, **files)


def sharpe(cells: list[dict[str, Any]], *values: float) -> None:
    for cell, value in zip(cells, values * 30, strict=False):
        cell["metrics"]["sharpe"] = value


def tiers(accepting: Any, judgement: Any) -> tuple[str, ...]:
    held = accepting.held(judgement)
    return tuple(held[f"final.tier{tier}"] for tier in (1, 2, 3))


def test_the_whole_run_passes(accepting: Any) -> None:
    judgement = accepting.like(DQN)
    assert judgement.passed
    assert tiers(accepting, judgement) == ("true", "true", "true")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda cells: cells[7]["metrics"].update(best_val=9.0),
                     ("false", "true", "true"), id="one-fold-of-one-seed-out-of-its-band"),
        pytest.param(lambda cells: cells[29]["metrics"].update(cf_flip=0.0999),
                     ("true", "false", "true"), id="one-blocker"),
        pytest.param(lambda cells: sharpe(cells, 19.9), ("true", "true", "false"),
                     id="median-below-the-floor"),
        pytest.param(lambda cells: sharpe(cells, *[30.0] * 29, 14.9), ("true", "true", "false"),
                     id="worst-cell-below-half-of-the-median"),
        pytest.param(lambda cells: sharpe(cells, 20.0, 70.0), ("true", "true", "false"),
                     id="spread-above-half"),
        pytest.param(lambda cells: sharpe(cells, 20.0), ("true", "true", "true"),
                     id="all-on-the-floor"),
        pytest.param(lambda cells: cells[3].update(termination={"reason": "REGRESSION_HARD_STOP",
            "metric": "v", "value": 1, "band": "error", "consecutive": 10, "epoch": 3, "fold": 0}),
                     ("false", "true", "false"), id="a-hard-stop"),
        pytest.param(lambda cells: cells[3].pop("termination"), ("false", "true", "false"),
                     id="a-cell-that-does-not-say-how-it-ended"),
    ],
)  # fmt: skip
def test_every_tier_is_looked_at_whatever_the_others_say(
    accepting: Any, change: Change, expected: tuple[str, ...]
) -> None:
    """The mutant: tier 3 skipped when tier 1 passes (or fails)."""
    judgement = dqn(accepting, change)
    assert tiers(accepting, judgement) == expected
    assert judgement.passed is (expected == ("true", "true", "true"))


def test_the_worst_cell_on_its_bound_holds(accepting: Any) -> None:
    judgement = dqn(accepting, lambda cells: sharpe(cells, *[30.0] * 29, 15.0))
    assert accepting.held(judgement)["final.worst"] == "true"


@pytest.mark.parametrize(
    ("values", "ddof", "square"),
    [
        ([1, 3], 1, Fraction(1, 2)), ([1, 3], 0, Fraction(1, 4)), ([2, 2, 2], 1, Fraction(0)),
        ([-1, 1], 1, None), ([-2, -2], 1, None), ([5], 1, None),
    ],
)  # fmt: skip
def test_the_spread_by_hand(values: list[int], ddof: int, square: Fraction | None) -> None:
    """(1, 3): mean 2, variance 2 (ddof 1), so (std/mean)^2 = 1/2."""
    assert squared_spread([Fraction(one) for one in values], ddof) == square


def test_a_mean_that_is_not_above_0_fails(accepting: Any) -> None:
    judgement = dqn(accepting, lambda cells: sharpe(cells, -30.0))
    assert accepting.held(judgement)["final.spread"] == "false"


def test_the_median_of_an_even_number_is_between_the_middle_two() -> None:
    assert median([Fraction(n) for n in (1, 2, 4, 9)]) == 3
    assert median([Fraction(n) for n in (1, 2, 9)]) == 2


def test_best_of_n_over_seeds_would_pass(accepting: Any) -> None:
    def shine(cells: list[dict[str, Any]]) -> None:
        for cell in cells:
            cell["metrics"]["sharpe"] = 60.0 if cell["seed"] == 11 else 15.0

    judgement = dqn(accepting, shine)
    assert accepting.held(judgement)["final.median"] == "false"


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        pytest.param(lambda cells: cells.pop(), {"ACC404", "ACC416"}, id="dropping-the-worst-fold"),
        pytest.param(lambda cells: cells.append(cells[0]), {"ACC406", "ACC416"}, id="one-twice"),
        pytest.param(lambda cells: cells[0].update(seed=99), {"ACC404", "ACC405"},
                     id="another-seed"),
        pytest.param(lambda cells: cells[0].update(fold=6), {"ACC404", "ACC405"},
                     id="another-fold"),
        pytest.param(lambda cells: cells[0].update(run_id="final-0"), {"ACC407"},
                     id="a-cell-of-another-run"),
        pytest.param(lambda cells: cells[0]["metrics"].update(sharpe=None), {"ACC004", "ACC416"},
                     id="a-cell-without-a-number"),
        pytest.param(lambda cells: cells[0]["metrics"].pop("sharpe"), {"ACC004", "ACC416"},
                     id="a-cell-without-the-metric"),
    ],
)  # fmt: skip
def test_there_are_exactly_the_announced_cells(
    accepting: Any, change: Change, rules: set[str]
) -> None:
    judgement = dqn(accepting, change)
    assert rules <= set(accepting.rules(judgement))
    assert not judgement.passed


def final(accepting: Any, said: dict[str, Any] | None = None, **files: Any) -> Any:
    """The small final run; `said` changes its manifest, and the ledger's digest of it."""
    fixture = accepting.fixture("passes_final")
    if said is not None:
        text = json.dumps(json.loads(fixture["manifest.json"]) | said)
        record = json.loads(fixture["ledger.jsonl"])
        record["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
        files = {"manifest_json": text, "ledger_jsonl": json.dumps(record) + "\n"} | files
    return accepting.like("passes_final", **files)


def small(accepting: Any, **top: Any) -> dict[str, Any]:
    return dict(json.loads(accepting.fixture("passes_final")["results.json"]) | top)


@pytest.mark.parametrize(
    ("said", "rules"),
    [
        ({}, []),
        ({"seeds": [1, 1]}, ["ACC401", "ACC404", "ACC405"]),
        ({"seeds": [1, 2, 3]}, ["ACC401", "ACC404"]),
        ({"folds": [0, 0]}, ["ACC401"]),
        ({"started_at": "2026-11-01T08:00:00"}, ["ACC401", "ACC408"]),
        ({"started_at": "2026-11-01T09:00:00Z"}, ["ACC408"]),
        ({"started_at": "2026-11-01T09:29:00+01:00"}, []),
        ({"run_id": "r2"}, ["ACC403", "ACC407"]),
        ({"git_commit": "9" * 40}, ["ACC407"]),
        ({"config_sha256": "9" * 64}, ["ACC407"]),
    ],
)  # fmt: skip
def test_the_manifest_and_the_results_are_of_one_run(
    accepting: Any, said: dict[str, Any], rules: list[str]
) -> None:
    found = accepting.rules(final(accepting, said))
    if "seeds" in said and said["seeds"] == [1, 1]:
        rules = ["ACC401", "ACC405"]  # seed 2 was never announced
    assert found == rules


@pytest.mark.parametrize(
    ("top", "rules"),
    [
        ({"started_at": "2026-11-01T07:59:59Z"}, ["ACC408"]),
        ({"started_at": None}, None),
        ({"finished_at": "2026-11-01T08:29:00Z"}, ["ACC408"]),
        ({"finished_at": "2026-11-01T09:30:00"}, ["ACC408"]),
        ({"started_at": "2026-11-01T08:00:00Z"}, []),
        ({"run_id": "r0"}, ["ACC407"]),
        ({"git_commit": "9" * 40}, ["ACC407"]),
    ],
)
def test_results_are_not_older_than_the_manifest(
    accepting: Any, top: dict[str, Any], rules: list[str] | None
) -> None:
    results = small(accepting, **top)
    if rules is None:
        with pytest.raises(AcceptanceError, match="started_at"):
            final(accepting, results_json=results)
        return
    assert accepting.rules(final(accepting, results_json=results)) == rules


def test_results_that_do_not_say_when_they_ran_are_not_younger(accepting: Any) -> None:
    results = small(accepting)
    del results["started_at"]
    found = accepting.rules(final(accepting, results_json=results))
    assert found == ["ACC403", "ACC408"]


def test_results_in_parts_are_one_run(accepting: Any) -> None:
    results = small(accepting)
    parts = [{**results, "cells": [cell]} for cell in results["cells"]]
    toml = accepting.fixture("passes_final")["acceptance.toml"]
    toml = toml.replace('["results.json"]', '["a.json", "b.json"]')
    said = {"gate_parameters": {"acceptance_sha256": hashlib.sha256(toml.encode()).hexdigest(),
                                "baseline_sha256": []}}  # fmt: skip
    files = {"acceptance_toml": toml, "a_json": parts[0], "results_json": None}
    assert final(accepting, said, b_json=parts[1], **files).passed
    other = {**parts[1], "run_id": "r0"}
    judgement = final(accepting, said, b_json=other, **files)
    assert accepting.rules(judgement) == ["ACC407"]


def test_limits_that_were_moved_after_the_announcement_are_found(accepting: Any) -> None:
    toml = accepting.fixture("passes_final")["acceptance.toml"].replace("0.05", "0.01")
    assert accepting.rules(final(accepting, acceptance_toml=toml)) == ["ACC402"]
    files = accepting.fixture(DQN)
    softer = files["baseline.toml"].replace("base = 1", "base = 1") + "\n"
    judgement = accepting.like(DQN, baseline_toml=softer)
    assert accepting.rules(judgement) == ["ACC008", "ACC402"]


def test_a_tier_without_a_criterion_is_not_passed(accepting: Any) -> None:
    toml = accepting.fixture("passes_final")["acceptance.toml"]
    warned = toml.replace('class = "blocker"', 'class = "warn"')
    said = {"gate_parameters": {"acceptance_sha256": hashlib.sha256(warned.encode()).hexdigest(),
                                "baseline_sha256": []}}  # fmt: skip
    judgement = final(accepting, said, acceptance_toml=warned)
    assert accepting.rules(judgement) == ["ACC415"]
    assert tiers(accepting, judgement) == ("true", "undetermined", "true")


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        ({"manifest_sha256": "0" * 64}, ["ACC403"]),
        ({"recorded_at": "2026-11-01T08:30:01Z"}, ["ACC403"]),
        ({"recorded_at": "2026-11-01T08:30:00Z"}, []),
        ({"recorded_at": "2026-11-01T07:00:00"}, ["ACC403"]),
        ({"run_id": "r9"}, ["ACC403"]),
        ({"outcome": "REJECTED_RERUN"}, ["ACC409"]),
        ({"prev": "1" * 64}, ["ACC411"]),
    ],
)
def test_the_ledger_announced_this_run(
    accepting: Any, change: dict[str, Any], rules: list[str]
) -> None:
    record = json.loads(accepting.fixture("passes_final")["ledger.jsonl"]) | change
    judgement = final(accepting, ledger_jsonl=json.dumps(record) + "\n")
    assert accepting.rules(judgement) == rules


def test_a_head_that_was_kept_must_still_be_in_the_ledger(accepting: Any) -> None:
    toml = accepting.fixture("passes_final")["acceptance.toml"] + f'ledger_head = "{"0" * 64}"\n'
    said = {"gate_parameters": {"acceptance_sha256": hashlib.sha256(toml.encode()).hexdigest(),
                                "baseline_sha256": []}}  # fmt: skip
    assert accepting.rules(final(accepting, said, acceptance_toml=toml)) == ["ACC411"]
