"""kernels/README.md is what the contracts and the results say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def generator() -> Any:
    spec = importlib.util.spec_from_file_location("kernels_page", ROOT / "docs/kernels_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_written_from_contracts_and_results(generator: Any) -> None:
    assert (ROOT / "kernels/README.md").read_text("utf-8") == generator.page(), "run `make docs`"


def test_every_contract_has_a_row(generator: Any) -> None:
    contracts = {path for path in (ROOT / "kernels").glob("*/*.toml") if path.stem != "layout"}
    assert len(list(generator.rows())) == len(contracts)
