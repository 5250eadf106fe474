"""Great Expectations as second judge: what it lets through, and that nothing comes through here."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
import warnings
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trueup.gates.acceptance import expectations
from trueup.gates.acceptance.errors import EngineMissing
from trueup.gates.acceptance.expectations import ask, exception_in
from trueup.gates.acceptance.model import Criterion, Held, Measure

LIMIT = '[results]\nfiles = ["results.json"]\n[[limit]]\nid = "x"\npath = "x"\nat_least = 1\n'


def criterion(name: str, value: str | None) -> Criterion:
    measure = Measure(None if value is None else Fraction(value), Fraction(1), Fraction(2))
    said: Held = "true" if measure.holds() else "false"
    return Criterion(name, "", "bands", said, str(value), "1 .. 2", measure=measure)


def library(frame: dict[str, list[Any]], *wanted: tuple[str, dict[str, Any]]) -> Any:
    """What the library itself says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import great_expectations as gx
        import great_expectations.expectations as gxe
        import pandas as pd

        context = expectations._context(gx)
        asset = context.data_sources.add_pandas("p").add_dataframe_asset("a")
        batch = asset.add_batch_definition_whole_dataframe("b")
        suite = gx.ExpectationSuite(
            name="s", expectations=[getattr(gxe, name)(**words) for name, words in wanted]
        )
        found = batch.get_batch(batch_parameters={"dataframe": pd.DataFrame(frame)})
        return found.validate(suite)


BETWEEN = ("ExpectColumnValuesToBeBetween", {"column": "x", "min_value": 1, "max_value": 2})


def test_an_empty_suite_succeeds_there_and_is_never_run_here(accepting: Any) -> None:
    assert library({"x": [9.0]}).success is True
    with pytest.raises(ValueError, match="an empty suite succeeds"):
        ask([], "mine")
    with pytest.raises(ValueError, match="an empty suite succeeds"):
        ask([Criterion("x", "", "bands", "true", "", "")], "mine")
    toml = '[[ablation]]\nid = "a"\nfile = "a.json"\n[[ablation.metric]]\nname = "m"\npath = "m"\n'
    toml += '[[ablation.outcome]]\nwhen = { m = "holds" }\ndecision = "KEEP"\n'
    arm = [{"seed": seed, "metrics": {"m": 1}} for seed in (1, 2, 3)]
    data = {"arms": {"control": arm, "ablated": arm}, "decision": "KEEP"}
    judgement = accepting.judged({"acceptance.toml": toml, "a.json": data})
    assert judgement.passed
    assert judgement.expectations == ()
    assert "great_expectations" not in judgement.engines


def test_no_rows_succeed_there_and_there_is_always_one_here() -> None:
    assert library({"x": []}, BETWEEN).success is True
    told = ask([criterion("x", "0.5")], "mine")
    assert [one.success for one in told.expectations] == [True, False]


def test_nan_is_skipped_by_between_there_and_held_not_to_be_null_here() -> None:
    assert library({"x": [float("nan")]}, BETWEEN).success is True
    told = ask([criterion("x", None)], "mine")
    assert [(one.expectation, one.success) for one in told.expectations] == [
        (expectations.NOT_NULL, False), (expectations.BETWEEN, True),
    ]  # fmt: skip
    assert (told.errors, told.disagreements) == ((), ())


def test_an_exception_is_hidden_in_a_result_there_and_found_here(
    monkeypatch: pytest.MonkeyPatch, accepting: Any
) -> None:
    answer = library({"y": [1.0]}, BETWEEN)
    (result,) = answer.results
    assert answer.success is False  # read like a failed check
    assert 'column "x"' in exception_in(result)
    real = expectations._suite

    def elsewhere(measured: Any) -> list[Any]:
        found = real(measured)
        found[1].column = "not_there"
        return found

    monkeypatch.setattr(expectations, "_suite", elsewhere)
    judgement = accepting.judged({"acceptance.toml": LIMIT, "results.json": {"x": 1.5}})
    assert accepting.rules(judgement) == ["ACC012"]
    assert not judgement.passed


def test_an_exception_in_the_right_column_is_found_too() -> None:
    one = criterion("x", "1.5")

    def said(kind: str, info: dict[str, Any]) -> Any:
        config = SimpleNamespace(type=kind, kwargs={"column": "x"})
        return SimpleNamespace(expectation_config=config, success=True, exception_info=info)

    raised = {"metric": {"raised_exception": True, "exception_message": "no column"}}
    first = said(expectations.NOT_NULL, raised)  # a success that never ran
    second = said(expectations.BETWEEN, {"raised_exception": False})
    assert one.measure is not None
    measured = [expectations._Measured(one, one.measure)]
    told = expectations.compare(measured, [first, second], "0")
    assert [message for _, message in told.errors] == [
        "expect_column_values_to_not_be_null raised for x: no column"
    ]
    silent = expectations.compare(measured, [first], "0")
    assert [message for _, message in silent.errors] == ["1 of 2 expectations ran for x"]


def test_results_come_in_another_order_there_and_are_found_by_column_here() -> None:
    """The library puts what failed first."""
    wanted = [criterion("a", "1.5"), criterion("b", "9"), criterion("c", None), criterion("d", "2")]
    told = ask(wanted, "mine")
    said = {one.criterion: True for one in told.expectations}
    for one in told.expectations:
        said[one.criterion] &= one.success is True
    assert said == {"a": True, "b": False, "c": False, "d": True}
    assert (told.errors, told.disagreements) == ((), ())


def test_no_progress_bar_and_no_line_of_log(capfd: pytest.CaptureFixture[str]) -> None:
    ask([criterion("x", "1.5")], "mine")
    assert capfd.readouterr() == ("", "")


def test_nothing_is_left_behind_and_nothing_is_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No folder in the temporary or the home directory, no connection, with Data Docs."""
    home, scratch = tmp_path / "home", tmp_path / "tmp"
    home.mkdir()
    scratch.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    def refuse(*words: Any) -> None:
        raise AssertionError(f"a connection to {words[1:]}")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    told = ask([criterion("x", "1.5")], "mine", tmp_path / "docs")
    assert not told.errors
    assert (tmp_path / "docs" / "index.html").is_file()
    assert list(home.iterdir()) == []
    assert list(scratch.iterdir()) == []


def test_its_json_is_not_strict_and_ours_is(accepting: Any) -> None:
    """A number no double holds is infinite there."""
    answer = library({"x": [float("inf")]}, BETWEEN)
    assert "Infinity" in json.dumps(answer.to_json_dict())
    digits = "1" + "0" * 309
    text = f'{{"x": {digits}}}'
    judgement = accepting.judged({"acceptance.toml": LIMIT, "results.json": text})

    def refuse(token: str) -> None:
        raise AssertionError(token)

    data = json.loads(judgement.to_json(), parse_constant=refuse)
    assert [one["value"] for one in data["expectations"]] == [None, None]
    assert data["criteria"][0]["status"] == "true"


def test_a_value_that_no_double_tells_from_its_bound_is_an_error_of_its_own(accepting: Any) -> None:
    text = '{"x": 0.99999999999999999999999}'
    judgement = accepting.judged({"acceptance.toml": LIMIT, "results.json": text})
    assert accepting.held(judgement) == {"x": "false"}  # exact arithmetic decides
    assert accepting.rules(judgement) == ["ACC002", "ACC011"]
    text = '{"x": 1.00000000000000000000001}'
    judgement = accepting.judged({"acceptance.toml": LIMIT, "results.json": text})
    assert (accepting.held(judgement), judgement.passed) == ({"x": "true"}, True)


def test_names_of_a_run_do_not_reach_the_templates(accepting: Any) -> None:
    """The library substitutes `$` in names, and its pages are HTML."""
    name = "<script>alert(1)</script>$HOME${x}"
    results = {"cells": [{"name": name, "x": 1.5}]}
    toml = LIMIT.replace('path = "x"', 'path = "cells[*].x"')
    judgement = accepting.judged({"acceptance.toml": toml, "results.json": results})
    assert judgement.passed
    columns = {one.column for one in judgement.expectations}
    assert len(columns) == 1
    assert not set("<>$\"'&{}") & set(columns.pop())


def test_two_measures_with_names_that_become_alike_stay_two() -> None:
    told = ask([criterion("a<", "1.5"), criterion("a>", "9")], "mine")
    assert [one.success for one in told.expectations] == [True, True, True, False]


def test_it_is_imported_only_where_it_is_asked(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"x": 1}')
    code = """
import sys
from pathlib import Path
from types import SimpleNamespace
import trueup.gates.acceptance.judge, trueup.gates.acceptance.check_ledger, trueup.cli.app
from trueup.gates.acceptance.lock import lock
lock(Path("results.json"), Path("baseline.toml"))
heavy = {"great_expectations", "pandas", "scipy", "jinja2", "polars"} & set(sys.modules)
assert not heavy, heavy
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
                         check=False, env={**os.environ})  # fmt: skip
    assert run.returncode == 0, run.stderr


def test_without_the_package_nothing_is_judged(
    monkeypatch: pytest.MonkeyPatch, accepting: Any
) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> Any:
        return None if name == "great_expectations" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(EngineMissing, match=r"pip install 'trueup\[accept\]'"):
        accepting.judged({"acceptance.toml": LIMIT, "results.json": {"x": 1.5}})
