"""The page on acceptances: its tables are those of the code, its example is one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from trueup.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "acceptance.md"


def test_the_tables_are_those_of_the_schema_and_the_defaults() -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "docs" / "acceptance_keys.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def test_the_example_judges_a_run(accepting: Any) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (text,) = blocks
    base = {"cells": [{"fold": fold, "val": 1.0} for fold in (0, 1)]}
    counts = {"full": 5, "directional": 100}
    run = {"cells": [{"fold": 0, "val": 0.85}, {"fold": 1, "val": 1.15}], "best_sharpe": 20}
    files = {"acceptance.toml": text, "baseline.toml": accepting.locked(base)}
    assert accepting.judged({**files, "results.json": run | {"counts": counts}}).passed
    counts["full"] = 4
    judgement = accepting.judged({**files, "results.json": run | {"counts": counts}})
    assert accepting.rules(judgement) == ["ACC003"]


def test_every_option_of_the_page_is_one() -> None:
    helped = "".join(
        CliRunner().invoke(app, ["accept", *words, "--help"]).stdout
        for words in ((), ("judge",), ("ledger", "add"), ("ledger", "check"))
    )
    page = PAGE.read_text("utf-8")
    console = "".join(re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    options = set(re.findall(r"(?<![\w-])--?[a-z]+", console))
    assert {"--lock", "-o", "--run", "--docs", "--manifest", "--outcome"} <= options
    assert all(option in helped for option in options)
    mentioned = set(re.findall(r"`(--[a-z]+)", page))
    assert all(option in helped for option in mentioned)


def test_what_the_page_says_of_places_is_there() -> None:
    for place in re.findall(r"`((?:fixtures|gates)/[\w./]+)`", PAGE.read_text("utf-8")):
        assert (ROOT / place).exists(), place
