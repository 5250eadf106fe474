"""How long a verdict takes, against other ways to look at the same rows, and what each misses.

    python benchmarks/gate.py [--rows 200000] [--runs 3] [--only WORD] [--busy 0.1] [--write]

Each way runs in a process of its own, file reading included, after the file was read once to warm
the page cache and after the same way judged a small file (imports and first use are not counted;
the column `process` counts them). Medians of the runs. With `--busy`, each run waits until others
use less than this share of the processors. `--write` writes `results/gate.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from gate_ways import WAYS, Way, profile

RESULTS = Path(__file__).parent / "results" / "gate.md"
KEYS = [
    "loss", "ppl", "teach_signal_norm", "grad_norm", *(f"m{i:02}" for i in range(16)),
    *(f"layer{i}.cms.cms_{speed}.grad_norm" for i in range(4) for speed in ("fast", "slow")),
]  # fmt: skip
DIRTY_ROWS, DIRTY_AT = 20_000, 15_000  # past what readers infer a schema from
DEFECTS = ("NaN", "inf", "range", "null", "step", "twice")
HEAD = """
import json, resource, sys, time
path, warm, profile, sample = *sys.argv[1:4], int(sys.argv[4]) or None
"""
TAIL = """
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
run(warm)
start, used = time.perf_counter(), cpu()
try:
    passed = bool(run(path))
except Exception as error:
    passed = type(error).__name__
seconds, used = time.perf_counter() - start, cpu() - used
# VmHWM: ru_maxrss would start from what the parent process held.
peak = next(int(w.split()[1]) for w in open('/proc/self/status') if w.startswith('VmHWM')) // 1024
print(json.dumps([seconds, used, peak, passed]))
"""
Row = dict[str, Any]


def rows(count: int, seed: int = 7) -> Any:
    """Batches of rows that pass: a step and 28 numbers of full length."""
    import numpy as np

    rng = np.random.default_rng(seed)
    for low in range(0, count, 10_000):
        values = rng.uniform(0.0, 1000.0, (min(10_000, count - low), len(KEYS)))
        yield [
            {"step": low + place, **dict(zip(KEYS, row, strict=True))}
            for place, row in enumerate(values.tolist())
        ]


def write(folder: Path, count: int, defect: str = "") -> None:
    """The same rows as lines, as a list and as parquet; with a defect in one of them."""
    import polars as pl

    frames = []
    with (folder / "x.jsonl").open("w") as lines, (folder / "x.json").open("w") as listed:
        for batch in rows(count):
            if defect:
                spoil(batch, defect)
            frames.append(pl.DataFrame(batch, infer_schema_length=None))
            texts = [json.dumps(row) for row in batch]
            if defect == "twice" and batch[0]["step"] <= DIRTY_AT <= batch[-1]["step"]:
                texts[DIRTY_AT % 10_000] = texts[DIRTY_AT % 10_000][:-1] + ', "loss": 2.5}'
            lines.write("\n".join(texts) + "\n")
            listed.write(("[" if batch[0]["step"] == 0 else ", ") + ", ".join(texts))
        listed.write("]\n")
    pl.concat(frames).write_parquet(folder / "x.parquet")


def spoil(batch: list[Row], defect: str) -> None:
    """One wrong value, late in the file."""
    for row in batch:
        if row["step"] == DIRTY_AT:
            values = {"NaN": float("nan"), "inf": float("inf"), "range": -1.5, "null": None}
            if defect in values:
                row["m03"] = values[defect]
            elif defect == "step":
                row["step"] -= 1


def _busy() -> float:
    """The share of all processors that was at work during a second."""

    def ticks() -> tuple[int, int]:
        with open("/proc/stat") as file:
            each = [int(word) for word in file.readline().split()[1:]]
        return sum(each), each[3] + each[4]

    (before, idle), _ = ticks(), time.sleep(1)
    after, idle_after = ticks()
    return 1 - (idle_after - idle) / max(1, after - before)


def wait(most: float) -> None:
    """Until nobody else uses the machine: half a processor taken would change the ratios."""
    while most and _busy() > most:
        time.sleep(5)


def measure(way: Way, path: Path, warm: Path, rules: Path) -> tuple[float, float, float, int, Any]:
    """Seconds of the check, of its processors, of the process; peak MiB; verdict, or an error."""
    code = HEAD + way.code + TAIL
    command = [
        sys.executable, "-W", "ignore", "-c", code, str(path), str(warm), str(rules),
        str(way.sample),
    ]  # fmt: skip
    start = time.perf_counter()
    out = subprocess.run(command, capture_output=True, text=True)
    whole = time.perf_counter() - start
    if out.returncode:
        raise SystemExit(f"{way.name}: {out.stderr[-2000:]}")
    seconds, used, peak, passed = json.loads(out.stdout.splitlines()[-1])
    return seconds, used, whole, peak, passed


def caught(way: Way, folder: Path, warm: Path, rules: Path) -> str:
    """Which of the defects this way does not let through."""
    found = []
    for defect in DEFECTS:
        if defect == "twice" and way.form == "parquet":
            continue
        *_, passed = measure(way, folder / defect / f"x.{way.form}", warm, rules)
        if passed is False:
            found.append(defect)
        elif passed is not True:
            found.append(f"{defect} (stops)")
    return ", ".join(found) or "none"


def table(folder: Path, count: int, runs: int, only: str, most: float) -> list[str]:
    """One line for each way; ratios to the quickest honest thing of the same form."""
    rules = folder / "bench.toml"
    rules.write_text(profile())
    out: list[str] = []
    base: dict[str, float] = {}
    measured: list[tuple[Way, float, float, float, int, str]] = []
    for way in WAYS:
        if only not in way.name:
            continue
        path, warm = folder / f"x.{way.form}", folder / "warm" / f"x.{way.form}"
        path.read_bytes()
        each = []
        for _ in range(runs):
            wait(most)
            each.append(measure(way, path, warm, rules))
        if any(passed is not True for *_, passed in each):
            raise SystemExit(f"{way.name}: the clean table does not pass: {each}")
        scale = count / way.sample if way.sample else 1
        seconds, used, whole, peak = (median(one[i] for one in each) for i in range(4))
        whole += seconds * (scale - 1)
        seconds, used = seconds * scale, used * scale
        said = caught(way, folder, warm, rules)
        measured.append((way, seconds, used, whole, int(peak), said))
        if way.name.startswith("trueup: whole"):
            base[way.form] = seconds
        print(f"{way.form}: {way.name}: {seconds:.2f} s, {used:.2f} of CPU", file=sys.stderr)
    for way, seconds, used, whole, peak, said in measured:
        ratio = f"{seconds / base[way.form]:.2f}" if way.form in base else "?"
        mark = "*" if way.sample else ""
        out.append(
            f"| {way.form} | {way.name} | {seconds:.2f}{mark} | {ratio} | {used:.2f}{mark} | "
            f"{count / seconds / 1000:.0f} | {whole:.1f}{mark} | {peak} | {said} |"
        )
    return out


def report(lines: list[str], folder: Path, args: argparse.Namespace) -> str:
    """The page."""
    sizes = ", ".join(
        f"{(folder / f'x.{form}').stat().st_size / 1e6:.0f} MB as {form}"
        for form in ("jsonl", "json", "parquet")
    )
    names = ("polars", "pandera", "msgspec", "orjson", "pandas", "great-expectations", "jsonschema")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    load = ", ".join(f"{one:.1f}" for one in args.load)
    return "\n".join(
        [
            "# A verdict on a table, beside other ways",
            "",
            f"- command: `python benchmarks/gate.py --rows {args.rows} --runs {args.runs}`",
            f"- date: {datetime.date.today()}; Python {platform.python_version()}, "
            f"{os.cpu_count()} cores, load before the first run {load}",
            f"- {versions}",
            f"- {args.rows} rows of {len(KEYS) + 1} columns: {sizes}",
            "- rules: no value missing, finite, within 0..1000, steps rise",
            f"- the defects: one NaN, infinity, value out of range, null, repeated step, key that "
            f"stands twice; each alone in row {DIRTY_AT} of {DIRTY_ROWS}",
            "- *: 20000 rows measured, the rest extrapolated",
            "",
            "| form | way | check s | of trueup's gate | CPU s | krows/s | process s | peak MiB | "
            "does not let through |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *lines,
            "",
        ]
    )


def main() -> None:
    """Write the tables, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="ways whose name holds this word")
    parser.add_argument(
        "--busy", type=float, default=0, help="wait while others use a larger share"
    )
    parser.add_argument("--write", action="store_true", help="write results/gate.md")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, args.rows)
        for sub, count, defect in [("warm", 50, ""), *((d, DIRTY_ROWS, d) for d in DEFECTS)]:
            (folder / sub).mkdir()
            write(folder / sub, count, defect)
        args.load = os.getloadavg()
        page = report(table(folder, args.rows, args.runs, args.only, args.busy), folder, args)
    print(page)
    if args.write:
        RESULTS.write_text(page)


if __name__ == "__main__":
    main()
