"""docs/*.md and docs/rules/ say what the code does."""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trueup.gates import judge
from trueup.gates.catalogue.rules import built_in_entries
from trueup.gates.documents.registry import document_checks
from trueup.gates.profile.load import _validator, parse_profile
from trueup.gates.settings.apply import check_rules
from trueup.gates.settings.load import load_settings, schema
from trueup.gates.telemetry.registry import CHECKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "profiles.md").read_text("utf-8")


SETTINGS = (DOCS / "settings.md").read_text("utf-8")
ENTRIES = built_in_entries()


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def tables() -> Any:
    return module("tables")


@pytest.mark.parametrize("name", ["profiles.md", "settings.md"])
def test_the_tables_are_those_of_the_code(name: str, tables: Any) -> None:
    page = (DOCS / name).read_text("utf-8")
    assert tables.filled(name, page) == page, "run: make docs"


def test_every_check_has_its_row() -> None:
    rows = [line.split(" | ")[0].strip("| `") for line in PAGE.splitlines() if line[:2] == "| "]
    for name in (*CHECKS, *document_checks()):
        assert rows.count(name) >= 1, name


def test_a_table_without_its_place_is_an_error(tables: Any) -> None:
    with pytest.raises(ValueError, match="0 places for the table checks"):
        tables.filled("profiles.md", "# nothing")


def test_the_rules_pages_are_those_of_the_catalogue() -> None:
    wanted = module("rules_pages").pages()
    found = {path.name: path.read_text("utf-8") for path in (DOCS / "rules").glob("*")}
    assert found.keys() == wanted.keys(), "run: make docs"
    for name, text in wanted.items():
        assert found[name] == text, f"{name}: run: make docs"


def test_every_entry_has_its_place_on_a_page_and_its_row_in_the_index() -> None:
    index = (DOCS / "rules" / "README.md").read_text("utf-8")
    for entry in ENTRIES:
        page = (DOCS / "rules" / f"{entry.family}.md").read_text("utf-8")
        assert page.count(f"## {entry.id}\n") == 1, entry.id
        assert index.count(f"({entry.family}.md#{entry.id.lower()})") == 1, entry.id


def test_every_key_of_the_settings_is_told() -> None:
    defs = schema()["$defs"]
    for name, table in schema()["properties"].items():
        keys = table.get("properties", defs.get(name, {}).get("properties", {}))
        for key in keys:
            assert f"| `{key}` |" in SETTINGS, key


def test_the_example_of_the_settings_is_fit(tmp_path: Path) -> None:
    example = re.search(r"^```toml\n(.*?)^```$", SETTINGS, re.MULTILINE | re.DOTALL)
    assert example is not None
    (tmp_path / "trueup.toml").write_text(example[1])
    settings = load_settings(tmp_path / "trueup.toml")
    check_rules(settings, ENTRIES)
    assert len(settings.severities) == 4
    assert settings.waivers[0].expires > datetime.datetime.now(datetime.UTC).date()
    assert settings.limits is not None


def test_every_key_of_a_rule_is_told() -> None:
    schema = _validator().schema
    for key in (
        *schema["$defs"]["rule"]["properties"],
        *schema["properties"]["table"]["properties"],
    ):
        assert f"`{key}`" in PAGE or f"\n{key} = " in PAGE, key


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
