"""Bands, limits, mixes and monitors: boundaries, and every way to seem to hold."""

from __future__ import annotations

from typing import Any

import pytest

BAND = """
[results]
files = ["results.json"]
[[baseline]]
file = "baseline.toml"
[[band]]
id = "val"
path = "cells[*].val"
match = ["fold"]
relative = 0.15
"""


def cells(*values: Any) -> dict[str, Any]:
    return {"cells": [{"fold": fold, "val": value} for fold, value in enumerate(values)]}


def band(accepting: Any, base: Any, run: Any, toml: str = BAND) -> Any:
    baseline = accepting.locked(base)
    return accepting.judged(
        {"acceptance.toml": toml, "baseline.toml": baseline, "results.json": run}
    )


@pytest.mark.parametrize(
    ("base", "value", "held"),
    [
        pytest.param("1.0", "0.85", "true", id="on-the-lower-edge"),
        pytest.param("1.0", "1.15", "true", id="on-the-upper-edge"),
        pytest.param("1.0", "0.8499999999999999", "false", id="one-ulp-below"),
        pytest.param("1.0", "1.1500000000000001", "false", id="one-ulp-above"),
        pytest.param("-2", "-1.7", "true", id="negative-base-upper-edge"),
        pytest.param("-2", "-2.3", "true", id="negative-base-lower-edge"),
        pytest.param("-2", "-2.4", "false", id="negative-base-below"),
        pytest.param("0", "0", "true", id="zero-base-asks-for-zero"),
        pytest.param("0", "1e-12", "false", id="zero-base-and-nearly-zero"),
        pytest.param("0.1", "0.115", "true", id="decimals-that-no-double-is"),
        pytest.param("3", "3.45", "true", id="integer-base"),
        pytest.param("1.0", "null", "undetermined", id="null"),
        pytest.param("1.0", '"1.0"', "undetermined", id="text"),
        pytest.param("1.0", "true", "undetermined", id="boolean-is-no-1"),
        pytest.param("1.0", "NaN", "false", id="nan"),
        pytest.param("1.0", "-Infinity", "false", id="infinity"),
    ],
)
def test_a_value_against_its_base(accepting: Any, base: str, value: str, held: str) -> None:
    form = '{{"cells": [{{"fold": 0, "val": {}}}]}}'
    judgement = band(accepting, form.format(base), form.format(value))
    assert accepting.held(judgement)["val[fold=0]"] == held
    assert judgement.passed is (held == "true")


@pytest.mark.parametrize(
    ("value", "held"), [("0.01", "true"), ("0.0101", "false"), ("-0.01", "true")]
)
def test_a_zero_base_may_have_an_absolute_band(accepting: Any, value: str, held: str) -> None:
    toml = BAND + "absolute = 0.01\n"
    form = '{{"cells": [{{"fold": 0, "val": {}}}]}}'
    judgement = band(accepting, form.format(0), form.format(value), toml)
    assert accepting.held(judgement)["val[fold=0]"] == held


def test_the_absolute_band_is_not_a_second_chance_where_the_base_is_not_zero(
    accepting: Any,
) -> None:
    judgement = band(accepting, cells(1.0), cells(1.3), BAND + "absolute = 1.0\n")
    assert accepting.rules(judgement) == ["ACC001"]


@pytest.mark.parametrize(
    ("side", "value", "held"),
    [("lower", 5.0, "true"), ("lower", 0.8, "false"), ("upper", 0.1, "true"),
     ("upper", 1.2, "false")],
)  # fmt: skip
def test_a_band_may_have_one_side(accepting: Any, side: str, value: float, held: str) -> None:
    judgement = band(accepting, cells(1.0), cells(value), BAND + f'side = "{side}"\n')
    assert accepting.held(judgement)["val[fold=0]"] == held


def test_averaging_before_the_fold_test_would_pass(accepting: Any) -> None:
    """The mutant: the mean of 0.5 and 1.5 is the base."""
    judgement = band(accepting, cells(1.0, 1.0), cells(0.5, 1.5))
    assert accepting.held(judgement)["val[fold=0]"] == "false"
    assert accepting.held(judgement)["val[fold=1]"] == "false"


def test_dropping_the_worst_fold_would_pass(accepting: Any) -> None:
    judgement = band(accepting, cells(1.0, 1.0, 1.0), cells(1.0, 1.0))
    assert accepting.held(judgement)["val[fold=2]"] == "undetermined"
    assert accepting.rules(judgement) == ["ACC006"]


def test_folds_are_compared_by_name_and_not_by_order(accepting: Any) -> None:
    run = {"cells": [{"fold": 1, "val": 2.0}, {"fold": 0, "val": 1.0}]}
    assert band(accepting, cells(1.0, 2.0), run).passed


def test_every_seed_is_held_to_the_base_of_its_fold(accepting: Any) -> None:
    """Best-of-N over seeds would pass: the first seed is perfect."""
    run = {"cells": [{"seed": seed, "fold": 0, "val": val} for seed, val in ((1, 1.0), (2, 0.5))]}
    judgement = band(accepting, cells(1.0), run)
    assert accepting.held(judgement) | {"baseline[baseline.toml]": ""} == {
        "baseline[baseline.toml]": "", "val[seed=1,fold=0]": "true", "val[seed=2,fold=0]": "false",
    }  # fmt: skip


def test_a_base_that_is_not_unique_is_no_base(accepting: Any) -> None:
    base = {"cells": [{"seed": seed, "fold": 0, "val": 1.0} for seed in (1, 2)]}
    judgement = band(accepting, base, cells(1.0))
    assert accepting.rules(judgement) == ["ACC006", "ACC007"]
    assert not judgement.passed


def test_an_empty_list_of_cells_passes_nothing(accepting: Any) -> None:
    judgement = band(accepting, cells(1.0), {"cells": []})
    assert accepting.rules(judgement) == ["ACC004", "ACC006"]


def test_a_duplicate_key_is_a_finding_although_one_value_would_pass(accepting: Any) -> None:
    judgement = band(accepting, cells(1.0), '{"cells": [{"fold": 0, "val": 9, "val": 1.0}]}')
    assert accepting.rules(judgement) == ["DOC006"]
    assert not judgement.passed


def limit(accepting: Any, value: Any, **more: Any) -> Any:
    words = "".join(f"{key} = {value!r}\n" for key, value in more.items()).replace("'", '"')
    toml = f'[results]\nfiles = ["results.json"]\n[[limit]]\nid = "x"\npath = "x"\n{words}'
    return accepting.judged({"acceptance.toml": toml, "results.json": {"x": value}})


@pytest.mark.parametrize(
    ("value", "bound", "held"),
    [(20, 20, "true"), (20.0, 20, "true"), (19.999999999999996, 20, "false"), (0.05, 0.05, "true"),
     (0.049999999999999996, 0.05, "false"), (0.1, 0.1, "true"), (0.09999999999999999, 0.1, "false"),
     (None, 0.1, "undetermined")],
)  # fmt: skip
def test_a_floor_is_inclusive(accepting: Any, value: Any, bound: float, held: str) -> None:
    assert accepting.held(limit(accepting, value, at_least=bound)) == {"x": held}


def test_a_blocker_is_not_made_up_for(accepting: Any) -> None:
    """The mutant: a score over all metrics."""
    toml = '[results]\nfiles = ["results.json"]\n' + "".join(
        f'[[limit]]\nid = "m{n}"\npath = "m{n}"\nat_least = 1\n' for n in range(20)
    )
    toml += '[[limit]]\nid = "cf_flip"\npath = "cf_flip"\nat_least = 0.1\nclass = "blocker"\n'
    run = {f"m{n}": 1e6 for n in range(20)} | {"cf_flip": 0.0999}
    judgement = accepting.judged({"acceptance.toml": toml, "results.json": run})
    assert (judgement.count("true"), judgement.passed) == (20, False)
    assert accepting.rules(judgement) == ["ACC003"]


def test_a_warning_is_told_and_does_not_decide(accepting: Any) -> None:
    toml = '[results]\nfiles = ["results.json"]\n'
    toml += '[[limit]]\nid = "a"\npath = "a"\nat_least = 1\n'
    toml += '[[limit]]\nid = "b"\npath = "b"\nat_least = 1\nclass = "warn"\n'
    judgement = accepting.judged({"acceptance.toml": toml, "results.json": {"a": 1, "b": 0}})
    assert judgement.passed
    assert [(f.rule, f.severity) for f in judgement.findings] == [("ACC002", "warning")]
    missing = accepting.judged({"acceptance.toml": toml, "results.json": {"a": 1}})
    assert missing.passed
    assert accepting.held(missing)["b"] == "undetermined"


RATIO = """
[results]
files = ["results.json"]
[[limit]]
id = "F_Half"
ratio = ["half", "directional"]
at_least = 0.05
class = "blocker"
"""


@pytest.mark.parametrize(
    ("half", "directional", "held"),
    [(12, 240, "true"), (11, 240, "false"), (0, 0, "undetermined"), (1, None, "undetermined")],
)
def test_a_share_of_two_counts_is_exact(
    accepting: Any, half: Any, directional: Any, held: str
) -> None:
    run = {"half": half, "directional": directional}
    judgement = accepting.judged({"acceptance.toml": RATIO, "results.json": run})
    assert accepting.held(judgement) == {"F_Half": held}


MIX = '[results]\nfiles = ["results.json"]\n[[mix]]\nid = "m"\npath = "m"\n'


@pytest.mark.parametrize(
    ("shares", "more", "rules"),
    [
        pytest.param([0.5, 0.5, 0, 0], "", [], id="exactly-half-the-entropy"),
        pytest.param([0.501, 0.499, 0, 0], "", ["ACC015"], id="just-below"),
        pytest.param([0.95, 0.05], "min_entropy = 0\n", [], id="largest-share-on-its-bound"),
        pytest.param([0.951, 0.049], "min_entropy = 0\n", ["ACC015"], id="larger"),
        pytest.param([0.25, 0.25, 0.25, 0.250001], "", [], id="sum-on-its-tolerance"),
        pytest.param([0.25, 0.25, 0.25, 0.250002], "", ["ACC016"], id="sum-past-it"),
        pytest.param([38, 12, 42, 14], "total = 100\n", ["ACC016"], id="106-percent"),
        pytest.param([40, 12, 38, 10], "total = 100\n", [], id="percent"),
        pytest.param([0.5, 0.6, -0.1], "", ["ACC016"], id="negative"),
        pytest.param([0.5, None, 0.5], "", ["ACC016"], id="null"),
        pytest.param([0.3, 0.3, 0.4], "classes = 4\n", ["ACC016"], id="a-class-too-few"),
        pytest.param([1.0], "", ["ACC016"], id="one-choice"),
        pytest.param("even", "", ["ACC016"], id="no-list"),
    ],
)
def test_a_mix_of_choices(accepting: Any, shares: Any, more: str, rules: list[str]) -> None:
    judgement = accepting.judged({"acceptance.toml": MIX + more, "results.json": {"m": shares}})
    assert accepting.rules(judgement) == rules
    assert judgement.passed is not rules


WIRED = (
    '[results]\nfiles = ["results.json"]\n'
    '[[wired]]\nid = "w"\npath = "w"\nnames = ["tau", "gamma"]\n'
)


@pytest.mark.parametrize(
    ("monitors", "held"),
    [
        ({"tau": {"n_obs": 1}, "gamma": {"n_obs": 5}, "more": {}}, "true"),
        ({"tau": {"n_obs": 0}, "gamma": {"n_obs": 5}}, "false"),
        ({"tau": {"n_obs": True}, "gamma": {"n_obs": 5}}, "false"),
        ({"tau": {"n_obs": 1}}, "undetermined"),
        ({}, "undetermined"),
        (None, "undetermined"),
    ],
)
def test_monitors_are_there_and_have_observed(accepting: Any, monitors: Any, held: str) -> None:
    judgement = accepting.judged({"acceptance.toml": WIRED, "results.json": {"w": monitors}})
    assert accepting.held(judgement) == {"w": held}
    assert judgement.passed is (held == "true")


def test_a_finding_names_the_line_the_byte_and_the_key(accepting: Any) -> None:
    judgement = limit(accepting, 19, at_least=20)
    (finding,) = judgement.findings
    assert (finding.where.line, finding.where.byte, finding.where.key) == (1, 6, "x")
    assert (finding.got, finding.expected) == ("x = 19", ">= 20")
