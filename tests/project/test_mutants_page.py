"""docs/mutants.md is what its record says, and every mutant there is was run and found."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def mutants() -> Any:
    """The generator of the page, which imports the module beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        spec = importlib.util.spec_from_file_location("mutants", DOCS / "mutants.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
        sys.modules.pop("mutant_runs", None)


def test_the_page_is_written_from_the_record(mutants: Any) -> None:
    page = (DOCS / "mutants.md").read_text("utf-8")
    assert page == mutants.page(mutants.read_record()), "run `make docs`"


def test_the_record_has_every_mutant_and_no_other(mutants: Any) -> None:
    record = mutants.read_record()
    wanted = {folder.name for folder in mutants.wrong_kernels()}
    assert set(record["kernels"]) == wanted, "run `make docs`"
    assert set(record["variants"]) == {f"{e.id}/{n}" for e, n in mutants.variants()}


def test_every_mutant_is_found(mutants: Any) -> None:
    for kind, entries in mutants.read_record().items():
        missed = sorted(name for name, found in entries.items() if not found.lane)
        assert not missed, kind


def test_a_row_says_what_is_wrong_and_what_found_it(mutants: Any) -> None:
    one = mutants.Found("0", "a | b", "numeric", "2.5", "n=7/unit")
    lost = mutants.Found("0", "nothing finds it")
    text = mutants.page({"kernels": {"k": one}, "variants": {"x.y/z": one, "x.y/lost": lost}})
    assert "| `k` | a \\| b | numeric | 2.5 | n=7/unit |" in text
    assert "### x.y" in text
    assert "| `lost` | nothing finds it | **not found** |" in text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.2345, "1.2"), (99.0, "99"), (12345.0, "1.2e+04"), (float("inf"), "∞")],
)
def test_ratios_have_two_digits(mutants: Any, ratio: float, text: str) -> None:
    runs = sys.modules["mutant_runs"]
    assert runs.ratio_text(ratio) == text


def test_a_changed_mutant_is_run_again(mutants: Any) -> None:
    record = mutants.read_record()
    name = next(iter(record["kernels"]))
    record["kernels"] = {name: mutants.Found("another digest", "")}
    record["variants"].clear()
    jobs = {(kind, job) for kind, job, _ in mutants.stale(record)}
    assert ("kernels", name) in jobs
    assert ("variants", "dqn.symlog") in jobs
