"""Memory stays bounded in every form of a table. Each case is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
import zstandard

from trueup.gates import judge

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "tables"
PROFILE = str(FIXTURES / "profile.toml")
MEASURE = """
import json, sys
from trueup.gates import judge
def peak(name):
    return next(int(w.split()[1]) for w in open('/proc/self/status') if w.startswith(name)) // 1024
judge(sys.argv[2], sys.argv[3])  # what is imported and first used is not counted
start = peak('VmRSS')
verdict = judge(sys.argv[1], sys.argv[3])
over = peak('VmHWM') - start
print(json.dumps([verdict.rows, over, sorted({f.rule for f in verdict.findings})]))
"""
LIMIT = 300  # MiB over what the imports take


def measured(path: Path) -> tuple[int, int, list[str]]:
    small = FIXTURES / "passes_csv"
    out = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), str(small), PROFILE],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, over, rules = json.loads(out.stdout)
    return rows, over, rules


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    """As many rows as take 60 MB of CSV."""
    rng = np.random.default_rng(7)
    count = 150_000
    columns: dict[str, Any] = {"step": np.arange(count), "loss": rng.random(count)}
    columns |= {f"layer{i}.norm": rng.random(count) for i in range(19)}
    return pl.DataFrame(columns)


FORMS = ["csv", "csv.zst", "jsonl.zst", "polars", "one-group", "quoted"]


@pytest.mark.parametrize("form", FORMS)
def test_sixty_megabytes(form: str, frame: pl.DataFrame, tmp_path: Path) -> None:
    name = {"polars": "parquet", "one-group": "parquet", "quoted": "csv"}.get(form, form)
    path = tmp_path / f"telemetry.{name}"
    if form == "polars":
        frame.write_parquet(path)
    elif form == "one-group":
        pq.write_table(frame.to_arrow(), path, row_group_size=1 << 20)
    else:
        plain = tmp_path / "plain"
        if form.startswith("jsonl"):
            frame.write_ndjson(plain)
        else:
            frame.write_csv(plain, quote_style="always" if form == "quoted" else "necessary")
        assert plain.stat().st_size > 55_000_000
        if form.endswith("zst"):
            with plain.open("rb") as source, path.open("wb") as target:
                zstandard.ZstdCompressor(level=1).copy_stream(source, target)
            plain.unlink()
        else:
            plain.rename(path)
    rows, over, rules = measured(path)
    assert (rows, rules) == (150_000, [])
    assert over < LIMIT


def test_a_long_constant_column_costs_no_memory_for_its_size_on_disk(tmp_path: Path) -> None:
    """Ten million equal rows are a few kilobytes of parquet."""
    path = tmp_path / "telemetry.parquet"
    count = 10_000_000
    frame = pl.LazyFrame({"step": [0]}).select(
        pl.int_range(count, dtype=pl.Int32).alias("step"), pl.lit(1.5).alias("loss")
    )
    frame.select("step", pl.col("loss")).collect().write_parquet(path, row_group_size=5_000_000)
    rows, over, rules = measured(path)
    assert (rows, rules) == (count, [])
    assert over < 2 * LIMIT


def test_an_open_quote_in_a_large_file(frame: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "telemetry.csv"
    text = frame.write_csv()
    head, rest = text.split("\n", 1)
    path.write_text(f'{head}\n"{rest}')
    rows, over, rules = measured(path)
    assert rows == 149_999
    assert rules == ["RDR040"]
    assert over < LIMIT


def test_a_column_that_is_missing_in_every_row_of_a_large_table(tmp_path: Path) -> None:
    """The engine takes a large frame in parts; a condition without a column is one value."""
    path = tmp_path / "telemetry.parquet"
    pl.DataFrame({"step": range(300_000), "x": [1.5] * 300_000}).write_parquet(path)
    found = {finding.rule: finding.count for finding in judge(path, PROFILE).findings}
    assert found["OWN001"] == 300_000
