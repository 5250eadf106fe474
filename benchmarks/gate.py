"""How long a verdict takes, against other ways to look at the same rows.

    python benchmarks/gate.py [--rows 200000] [--with-gx]

Each way runs in a process of its own, file reading included, after one run that warms the page
cache. Only the first two make every check of the reader; the others are what people do instead,
and what they miss is in the last column.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = "import json, math, sys, time\npath = sys.argv[1]\n"
TAIL = """
# VmHWM: ru_maxrss would start from what the parent process held.
peak = next(int(w.split()[1]) for w in open('/proc/self/status') if w.startswith('VmHWM')) // 1024
print(json.dumps([time.perf_counter() - start, peak, bool(passed)]))
"""
JUDGE = """
from trueup.gates import judge
judge(sys.argv[2])  # imports and first use are paid here
start = time.perf_counter()
passed = judge(path).passed
"""
MSGSPEC = """
import msgspec
decode = msgspec.json.Decoder().decode
start = time.perf_counter()
last, passed = -2, True
for line in open(path, "rb"):
    step = decode(line)["step"]
    passed, last = passed and step > last, step
"""
STDLIB = MSGSPEC.replace("import msgspec\n", "").replace(
    "msgspec.json.Decoder().decode", "json.loads"
)
POLARS = """
import polars as pl
start = time.perf_counter()
frame = pl.read_ndjson(path, infer_schema_length=None)
floats = [name for name, kind in frame.schema.items() if kind == pl.Float64]
tests = [pl.col(name).is_finite().all() for name in floats]
tests.append((pl.col("step").diff() > 0).all())
passed = frame.select(pl.all_horizontal(tests).all()).item()
"""
PANDERA = """
import polars as pl, pandera.polars as pa
from pandera.config import ValidationDepth, config_context
start = time.perf_counter()
frame = pl.read_ndjson(path, infer_schema_length=None)
finite = lambda: pa.Check(lambda d: d.lazyframe.select(pl.col(d.key).is_finite()), ignore_na=True)
rises = pa.Check(lambda d: d.lazyframe.select((pl.col(d.key).diff() > 0).fill_null(True)))
columns = {name: pa.Column(pl.Float64, finite(), nullable=True)
           for name, kind in frame.schema.items() if kind == pl.Float64}
schema = pa.DataFrameSchema({"step": pa.Column(pl.Int64, rises), **columns})
with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
    schema.validate(frame, lazy=True)
passed = True
"""
GX = """
import pandas as pd, great_expectations as gx, great_expectations.expectations as gxe
from great_expectations.data_context.types.base import ProgressBarsConfig
start = time.perf_counter()
frame = pd.read_json(path, lines=True)
context = gx.get_context(mode="ephemeral")
context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
asset = context.data_sources.add_pandas("p").add_dataframe_asset("t")
batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
floats = [name for name in frame.columns if frame[name].dtype == "float64"]
suite = gx.ExpectationSuite(name="s", expectations=[
    gxe.ExpectColumnValuesToBeIncreasing(column="step", strictly=True),
    *(gxe.ExpectColumnValuesToBeBetween(column=name, min_value=-1e300, max_value=1e300)
      for name in floats)])
passed = batch.validate(suite, result_format="BASIC").success
"""
WAYS = [
    ("trueup, lines", JUDGE, "jsonl", "-"),
    ("trueup, list", JUDGE, "json", "-"),
    ("msgspec loop, step only", MSGSPEC, "jsonl", "duplicates, types, every other rule"),
    ("json loop, step only", STDLIB, "jsonl", "duplicates, NaN, types, every other rule"),
    ("polars, finite and step", POLARS, "jsonl", "duplicates, blank lines, lost digits"),
    ("pandera, finite and step", PANDERA, "jsonl", "duplicates, blank lines, lost digits"),
]


def write(folder: Path, rows: int) -> None:
    """A log that passes, 33 keys a row, as lines and as a list."""
    rng = random.Random(5)
    parts = [f"layer{i}.cms.{name}" for i in (0, 1) for name in ("cms_fast", "cms_slow")]
    whole = {"gate_hit": 2, "updates_applied": 2, "tokens_flushed": 0, "pending_tokens": 1}
    with (folder / "x.jsonl").open("w") as lines, (folder / "x.json").open("w") as listed:
        for step in range(-1, rows):
            loss = rng.uniform(1.0, 6.0)
            row = {"step": step, "loss": loss, "ppl": 2.718281828459045**loss}
            row["teach_signal_norm"] = rng.random()
            for part in parts:
                values = {"grad_norm": rng.uniform(0.1, 1), "chunk_tokens": 8, **whole}
                values["surprise_value"] = rng.random()
                row.update({f"{part}.{key}": value for key, value in values.items()})
            if step < 0:
                row = {"step": -1, "model.surprise_threshold": None, "train.online_updates": True}
            text = json.dumps(row)
            lines.write(text + "\n")
            listed.write(("[" if step < 0 else ", ") + text)
        listed.write("]\n")


def measure(code: str, path: Path, warm: Path) -> tuple[float, int, bool]:
    """Seconds, peak MiB and verdict of one way."""
    command = [sys.executable, "-W", "ignore", "-c", HEAD + code + TAIL, str(path), str(warm)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak, passed = json.loads(out.stdout.splitlines()[-1])
    return seconds, peak, passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--with-gx", action="store_true", help="Great Expectations as well (slow)")
    args = parser.parse_args()
    ways = WAYS + ([("GX, range and step", GX, "jsonl", "NaN, duplicates")] if args.with_gx else [])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, args.rows)
        (folder / "warm").mkdir()
        write(folder / "warm", 50)
        size = (folder / "x.jsonl").stat().st_size
        print(f"{args.rows} rows, 32 columns, {size / 1e6:.0f} MB as lines\n")
        print("| way | s | krows/s | peak MiB | passes | misses |\n|---|---|---|---|---|---|")
        for label, code, ending, misses in ways:
            warm = folder / "warm" / f"x.{ending}"
            runs = sorted(measure(code, folder / f"x.{ending}", warm) for _ in range(3))
            seconds, peak, passed = runs[1]
            rate = args.rows / seconds / 1000
            print(f"| {label} | {seconds:.2f} | {rate:.0f} | {peak} | {passed} | {misses} |")


if __name__ == "__main__":
    main()
