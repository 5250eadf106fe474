"""The seven criteria of a smoke run: each can fail alone, and each needs its evidence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.gates.acceptance.smoke import SEVEN

NAMES = [f"smoke.{name}" for name in SEVEN]


def smoke(accepting: Any, **changes: Any) -> Any:
    """The passing smoke run without its own report, some files replaced."""
    files = accepting.fixture("passes_smoke", **changes)
    files.setdefault("acceptance.toml", "")
    files["acceptance.toml"] = files["acceptance.toml"].replace('report = "smoke.json"\n', "")
    return accepting.judged(files)


def cells(**changes: Any) -> dict[str, Any]:
    """Folds of 1.0, 1.1, 1.2; `f2={...}` changes fold 2."""
    return {
        "run_id": "r1",
        "cells": [
            {"seed": 1, "fold": fold, "epochs": 2, "epochs_completed": 2, "exit_code": 0,
             "termination": {"reason": "COMPLETED"}, "val": val, **changes.get(f"f{fold}", {})}
            for fold, val in enumerate((1.0, 1.1, 1.2))
        ],
    }  # fmt: skip


def failing(accepting: Any, judgement: Any) -> set[str]:
    """The criteria of the seven that do not hold."""
    return {
        one.id.removeprefix("smoke.")
        for one in judgement.criteria
        if one.held != "true" and one.id in NAMES
    }


def test_all_seven_are_listed_with_value_threshold_and_verdict(accepting: Any) -> None:
    judgement = smoke(accepting)
    listed = [one for one in judgement.criteria if one.id in NAMES]
    assert {one.id for one in listed} == set(NAMES)
    assert all(one.value and one.threshold and one.held == "true" for one in listed)


@pytest.mark.parametrize(
    ("change", "criterion"),
    [
        pytest.param({"f0": {"val": 0.9499}}, "f0_retained", id="f0"),
        pytest.param({"f0": {"val": None}}, "f0_retained", id="f0-null"),
        pytest.param({"f1": {"val": 1.0999}}, "monotone", id="f1-below-its-base"),
        pytest.param({"f2": {"val": 1.1999}}, "monotone", id="f2-below-its-base"),
        pytest.param({"f1": {"val": 1.3}}, "monotone", id="f2-below-f1"),
        pytest.param({"f1": {"epochs_completed": 1}}, "folds_complete", id="an-epoch-short"),
        pytest.param({"f1": {"exit_code": 1}}, "folds_complete", id="exit-code"),
        pytest.param({"f1": {"exit_code": None}}, None, id="exit-code-of-another-type"),
        pytest.param(
            {"f2": {"termination": {"reason": "LAYOUT_MISMATCH"}}}, "no_hard_stop", id="hard-stop"
        ),
        pytest.param({"f1": {"nan_flags": [0, 3]}}, "flags_zero", id="flags-of-a-cell"),
    ],
)
def test_each_criterion_fails_alone(
    accepting: Any, change: dict[str, Any], criterion: str | None
) -> None:
    if criterion is None:  # the schema of results refuses it
        from trueup.gates.acceptance.errors import AcceptanceError

        with pytest.raises(AcceptanceError, match="exit_code"):
            smoke(accepting, results_json=cells(**change))
        return
    judgement = smoke(accepting, results_json=cells(**change))
    assert failing(accepting, judgement) == {criterion}
    assert not judgement.passed


@pytest.mark.parametrize("fold", ["exit_code", "epochs", "termination"])
def test_what_a_cell_does_not_say_does_not_hold(accepting: Any, fold: str) -> None:
    results = cells()
    del results["cells"][1][fold]
    judgement = smoke(accepting, results_json=results)
    name = "no_hard_stop" if fold == "termination" else "folds_complete"
    assert accepting.held(judgement)[f"smoke.{name}"] == "undetermined"


def test_f0_is_retained_at_exactly_its_bound(accepting: Any) -> None:
    assert smoke(accepting, results_json=cells(f0={"val": 0.95})).passed


def test_of_a_negative_base_no_improvement_is_demanded(accepting: Any) -> None:
    """0.95 * base would ask for -0.95 where the base is -1."""
    base = {"cells": [{"seed": 1, "fold": f, "val": v} for f, v in enumerate((-1.0, 1.1, 1.2))]}
    baseline = accepting.locked(base)
    kept = smoke(accepting, baseline_toml=baseline, results_json=cells(f0={"val": -1.05}))
    assert kept.passed
    lost = smoke(accepting, baseline_toml=baseline, results_json=cells(f0={"val": -1.0501}))
    assert failing(accepting, lost) == {"f0_retained"}


@pytest.mark.parametrize(
    ("mode", "values", "holds"),
    [
        ("both", (1.1, 1.2), True), ("both", (1.3, 1.2), False), ("both", (1.0, 1.2), False),
        ("baseline", (1.3, 1.2), True), ("baseline", (1.0, 1.2), False),
        ("folds", (1.0, 1.05), True), ("folds", (1.3, 1.2), False),
    ],
)  # fmt: skip
def test_both_readings_of_monotone(
    accepting: Any, mode: str, values: tuple[float, float], holds: bool
) -> None:
    toml = accepting.fixture("passes_smoke")["acceptance.toml"] + f'mono_mode = "{mode}"\n'
    run = cells(f1={"val": values[0]}, f2={"val": values[1]})
    judgement = smoke(accepting, acceptance_toml=toml, results_json=run)
    assert (failing(accepting, judgement) == set()) is holds


def test_every_seed_is_held_to_it_and_none_averaged(accepting: Any) -> None:
    results = cells()
    second = [{**cell, "seed": 2, "val": cell["val"] * 3} for cell in results["cells"]]
    third = [{**cell, "seed": 3, "val": cell["val"] / 3} for cell in results["cells"]]
    results["cells"] += second + third
    judgement = smoke(
        accepting, results_json=results,
        acceptance_toml=accepting.fixture("passes_smoke")["acceptance.toml"],
    )  # fmt: skip
    held = accepting.held(judgement)
    assert held["smoke.f0_retained[seed=1][fold=0]"] == "true"
    assert held["smoke.f0_retained[seed=2][fold=0]"] == "true"
    assert held["smoke.f0_retained[seed=3][fold=0]"] == "false"


def test_a_fold_that_is_not_there_fails(accepting: Any) -> None:
    results = cells()
    results["cells"].pop()
    judgement = smoke(accepting, results_json=results)
    assert failing(accepting, judgement) == {"monotone"}


def test_a_fold_that_is_there_twice_is_found(accepting: Any) -> None:
    results = cells()
    results["cells"].append({**results["cells"][0], "val": 9.0})
    assert "ACC406" in accepting.rules(smoke(accepting, results_json=results))


@pytest.mark.parametrize(
    ("file", "name"),
    [("train.log", "no_clamped_nan"), ("health.jsonl", "flags_zero"), ("audit.md", "audit_closed")],
)
def test_evidence_that_is_not_there_does_not_hold(accepting: Any, file: str, name: str) -> None:
    judgement = smoke(accepting, **{file.replace(".", "_"): None})
    assert accepting.held(judgement)[f"smoke.{name}"] != "true"
    assert "ACC013" in accepting.rules(judgement)


@pytest.mark.parametrize("key", ["logs", "health", "audit"])
def test_evidence_that_is_not_named_does_not_hold(accepting: Any, key: str) -> None:
    toml = accepting.fixture("passes_smoke")["acceptance.toml"]
    kept = "".join(line + "\n" for line in toml.splitlines() if not line.startswith(key))
    judgement = smoke(accepting, acceptance_toml=kept)
    assert failing(accepting, judgement)
    assert not judgement.passed


@pytest.mark.parametrize(
    ("log", "count"),
    [
        ("NaN-CLAMPED-TO-ZERO\n", 1),
        ("a\r\nwarn: NaN-CLAMPED-TO-ZERO iqn\r\nNaN-CLAMPED-TO-ZERO", 2),
        ("nan-clamped-to-zero\n", 0),
    ],
)
def test_clamped_lines_are_counted(accepting: Any, log: str, count: int) -> None:
    judgement = smoke(accepting, train_log=log)
    (one,) = [one for one in judgement.criteria if one.id == "smoke.no_clamped_nan"]
    assert (one.value, one.held) == (str(count), "false" if count else "true")


def test_a_line_too_long_to_be_searched_whole_is_found(accepting: Any) -> None:
    log = "x" * (5 << 20) + "NaN-CLAMPED-TO-ZERO\nend\n"
    judgement = smoke(accepting, train_log=log)
    assert "DOC014" in accepting.rules(judgement)
    assert not judgement.passed


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ('{"t": "HEALTH_DIAG", "nan_flags": [0, 0, 0]}', "ACC104"),
        ('{"t": "HEALTH_DIAG", "nan_flags": [0, 0.0]}', "ACC104"),
        ('{"t": "HEALTH_DIAG", "nan_flags": [0, false]}', "ACC104"),
        ('{"t": "HEALTH_DIAG", "nan_flags": [0, null]}', "ACC104"),
        ('{"t": "HEALTH_DIAG"}', "ACC104"),
        ('{"t": "HEALTH_DIAG", "nan_flags": [1, 0]}', "ACC103"),
        ('{"t": "HEALTH_DIAG", "nan_flags": [0, 0]} {}', "DOC005"),
        ("[0, 0]", "ACC101"),
        ("", "DOC015"),
    ],
)
def test_a_health_line_that_is_not_as_it_must_be(accepting: Any, line: str, rule: str) -> None:
    text = accepting.fixture("passes_smoke")["health.jsonl"] + line + "\n"
    judgement = smoke(accepting, health_jsonl=text)
    assert rule in accepting.rules(judgement)
    assert not judgement.passed


def test_places_in_a_health_file_count_its_lines(accepting: Any) -> None:
    first = accepting.fixture("passes_smoke")["health.jsonl"]
    text = first + '{"t": "HEALTH_DIAG", "nan_flags": [0, 7]}\n'
    (found,) = [f for f in smoke(accepting, health_jsonl=text).findings if f.rule == "ACC103"]
    assert (found.where.line, found.where.key) == (2, "nan_flags[1]")
    assert text.encode()[found.where.byte :].startswith(b"7]")


@pytest.mark.parametrize(
    ("audit", "held"),
    [
        ("| item | Status |\n|---|---|\n| tau | Wired |\n", "true"),
        ("| item | status |\n|---|---|\n| tau | **Wired** |\n| a | OUT |\n", "true"),
        ("| item | Status |\n|---|---|\n| tau | Ghost |\n", "false"),
        ("| item | Status |\n|---|---|\n| tau | Wired |\n| | Wired |\n", "false"),
        ("| item | note |\n|---|---|\n| tau | tbd |\n", "false"),
        ("| item | note |\n|---|---|\n| tau | evaluated in March |\n", "true"),
        ("no table\n", "undetermined"),
        ("| item | Status |\n|---|---|\n", "undetermined"),
        ("```\n| item | Status |\n|---|---|\n| tau | Wired |\n```\n", "undetermined"),
    ],
)
def test_rows_of_an_audit(accepting: Any, audit: str, held: str) -> None:
    judgement = smoke(accepting, audit_md=audit)
    assert accepting.held(judgement)["smoke.audit_closed"] == held


def report(**changes: Any) -> str:
    values = {"f0_retained": 1.0, "monotone": 1.1}
    return json.dumps({
        "criteria": [
            {"criterion": name, "value": values.get(name, 0), "threshold": 0, "verdict": "PASS"}
            | changes.get(name, {})
            for name in SEVEN
        ]
    })  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({}, []),
        ({"flags_zero": {"verdict": "FAIL"}}, ["ACC109"]),
        ({"f0_retained": {"value": 1.01}}, ["ACC109"]),
        ({"no_clamped_nan": {"value": 3}}, ["ACC109"]),
        ({"monotone": {"criterion": "monotonic"}}, ["ACC108"]),
        ({"monotone": {"criterion": "f0_retained", "value": 1.0}}, ["ACC108"]),
    ],
)
def test_the_report_is_held_to_the_evidence(accepting: Any, changes: Any, rules: list[str]) -> None:
    judgement = accepting.like("passes_smoke", smoke_json=report(**changes))
    assert accepting.rules(judgement) == rules
    assert judgement.passed is not rules


def test_a_report_that_claims_what_nothing_shows_is_found(accepting: Any) -> None:
    """All seven PASS, and one of them has no evidence."""
    judgement = accepting.like("passes_smoke", train_log=None)
    assert accepting.rules(judgement) == ["ACC013", "ACC101", "ACC109"]
