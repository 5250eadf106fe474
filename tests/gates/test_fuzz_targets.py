"""The checks of the fuzzer hold on the inputs it starts from, and find what is wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _load() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz_readers.py"
    spec = importlib.util.spec_from_file_location("fuzz_readers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_readers"] = module
    spec.loader.exec_module(module)
    return module


fuzz = _load()


@pytest.mark.parametrize("name", sorted(fuzz.TARGETS))
def test_seeds_are_read_as_they_are_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    fuzz.seeds(name, tmp_path / "seeds")
    seeds = sorted((tmp_path / "seeds").iterdir())
    assert len(seeds) > 2
    for seed in seeds:
        fuzz.run(name, seed.read_bytes(), tmp_path)


GOOD = b'\x02{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 1.5}\n'


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda rows: rows.popitem(), id="dropped"),
        pytest.param(lambda rows: rows[2].update(loss=1.25), id="changed"),
        pytest.param(lambda rows: rows[2].update(step=2.0000001), id="rounded"),
        pytest.param(lambda rows: rows[2].update(loss=True), id="retyped"),
        pytest.param(lambda rows: rows[2].update(late=1), id="added"),
    ],
)
def test_what_a_reader_does_in_silence_is_found(
    change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fuzz.read_table

    def wrong(*args: Any) -> Any:
        rows, faults = real(*args)
        change(rows)
        return rows, faults

    fuzz.run("lines", GOOD, tmp_path)
    monkeypatch.setattr(fuzz, "read_table", wrong)
    with pytest.raises(fuzz.Silent):
        fuzz.run("lines", GOOD, tmp_path)
