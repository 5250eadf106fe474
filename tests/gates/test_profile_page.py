"""docs/profiles.md says what the code does."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trueup.gates import judge
from trueup.gates.catalogue.kinds import kinds
from trueup.gates.profile.load import _validator, load_profile, parse_profile
from trueup.gates.telemetry.registry import CHECKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "profiles.md").read_text("utf-8")


@pytest.fixture(scope="module")
def tables() -> Any:
    spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_code(tables: Any) -> None:
    assert tables.filled(PAGE) == PAGE, "run: python docs/tables.py"


def test_every_check_and_every_kind_has_its_row() -> None:
    rows = [line.split(" | ")[0].strip("| `") for line in PAGE.splitlines() if line[:2] == "| "]
    for name in (*CHECKS, *(kind.id for kind in kinds().values())):
        assert rows.count(name) == 1, name


def test_a_table_without_its_place_is_an_error(tables: Any) -> None:
    with pytest.raises(ValueError, match="0 places for the table checks"):
        tables.filled("# nothing")


def test_every_key_of_a_rule_is_told() -> None:
    schema = _validator().schema
    for key in (
        *schema["$defs"]["rule"]["properties"],
        *schema["properties"]["table"]["properties"],
    ):
        assert f"`{key}`" in PAGE or f"\n{key} = " in PAGE, key


def test_the_count_of_built_in_rules_is_right() -> None:
    assert f"`gates/profiles/nl.toml`: {len(load_profile('nl').rules)} rules" in PAGE


def test_the_example_is_a_profile_that_judges(tmp_path: Path) -> None:
    example = re.search(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert example is not None
    profile = parse_profile(example[1].encode(), "docs/profiles.md")
    assert (profile.step, profile.config_step) == ("step", -1)
    (tmp_path / "mine.toml").write_text(example[1])
    run = tmp_path / "run"
    run.mkdir()
    rows = [{"step": i, "loss": 1.0, "layer0.grad_mean": 1, "layer0.grad_max": 2} for i in (0, 1)]
    for loss, verdict in ((1.0, "pass"), (-1.0, "fail")):
        rows[1]["loss"] = loss
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (run / "telemetry.jsonl").write_text(text)
        assert judge(run, profile=str(tmp_path / "mine.toml")).verdict == verdict
    rows[0]["layer0.grad_max"] = 0.5
    rows[1]["loss"] = 1.0
    (run / "telemetry.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    warned = judge(run, profile=str(tmp_path / "mine.toml"))
    assert (warned.verdict, [one.rule for one in warned.findings]) == ("pass", ["OWN002"])
