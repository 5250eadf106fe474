"""Memory stays bounded, whatever the file's size and shape. Each case is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MEASURE = """
import json, sys
from trueup.gates import judge
verdict = judge(sys.argv[1])
# VmHWM: ru_maxrss would start from what the parent process held.
peak = next(int(w.split()[1]) for w in open('/proc/self/status') if w.startswith('VmHWM')) // 1024
print(json.dumps([verdict.verdict, verdict.rows, peak, sorted({f.rule for f in verdict.findings})]))
"""
LIMIT = 400  # MiB


def measured(path: Path) -> tuple[str, int, int, list[str]]:
    out = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    verdict, rows, peak, rules = json.loads(out.stdout)
    return verdict, rows, peak, rules


READ = """
import sys
from pathlib import Path
from trueup.gates.read.tables import open_table
rows = sum(batch.frame.height for batch in open_table(Path(sys.argv[1]), report=print).batches())
peak = next(int(w.split()[1]) for w in open('/proc/self/status') if w.startswith('VmHWM')) // 1024
print(rows, peak)
"""


def step_rows(count: int) -> Iterator[str]:
    """Rows that pass, with numbers of full length."""
    start = {"step": -1, "model.surprise_threshold": None, "train.online_updates": True}
    yield json.dumps(start)
    parts = [f"layer{i}.cms.{level}" for i in range(2) for level in ("cms_fast", "cms_slow")]
    for step in range(count):
        noise = 0.1 + (step * 7919 % 10007) / 10007
        cells = "".join(
            f', "{part}.grad_norm": {noise * (i + 1)!r}, "{part}.chunk_tokens": 8,'
            f' "{part}.gate_hit": 2, "{part}.surprise_value": {noise / (i + 2)!r}'
            for i, part in enumerate(parts)
        )
        yield f'{{"step": {step}, "loss": 0.0, "ppl": 1.0, "teach_signal_norm": {noise!r}{cells}}}'


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same 50 MB of rows as lines and as a list."""
    folder = tmp_path_factory.mktemp("big")
    rows = list(step_rows(75_000))
    (folder / "telemetry.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "telemetry.json").write_text("[" + ", ".join(rows) + "]\n")
    return folder


@pytest.mark.parametrize("name", ["telemetry.jsonl", "telemetry.json"])
def test_fifty_megabytes(name: str, big: Path) -> None:
    assert (big / name).stat().st_size > 45_000_000
    verdict, rows, peak, rules = measured(big / name)
    assert rows == 75_001
    assert rules == ["TEL027"]  # the loss is the same in every row
    assert verdict == "fail"
    assert peak < LIMIT


@pytest.mark.parametrize("name", ["telemetry.jsonl", "telemetry.json"])
def test_batches_handed_on_are_not_kept(name: str, big: Path) -> None:
    """The reader alone, without the rules and what they import. It finds the one null."""
    out = subprocess.run(
        [sys.executable, "-c", READ, str(big / name)], capture_output=True, text=True, check=True
    )
    fault, numbers = out.stdout.splitlines()
    assert "model.surprise_threshold" in fault
    rows, peak = map(int, numbers.split())
    assert rows == 75_001
    assert peak < 200


def test_many_keys_times_many_rows(tmp_path: Path) -> None:
    """A small file whose table would hold 24 million cells."""
    path = tmp_path / "telemetry.jsonl"
    with path.open("w") as file:
        for i in range(2_000):
            file.write(f'{{"step": {i}, "k{i}": 1.5}}\n')
        for i in range(2_000, 12_000):
            file.write(f'{{"step": {i}}}\n')
    verdict, rows, peak, _ = measured(path)
    assert (verdict, rows) == ("fail", 12_000)
    assert peak < LIMIT


def test_one_endless_row(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    with path.open("w") as file:
        file.write('{"step": 0, "loss": 1.5}\n{"step": 1, "text": "')
        for _ in range(40):
            file.write("x" * (1 << 20))
        file.write('"}\n{"step": 2, "loss": 1.5}\n')
    _, rows, peak, rules = measured(path)
    assert rows == 2
    assert "RDR020" in rules
    assert peak < LIMIT


def test_endless_list_row(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.json"
    path.write_text('[{"step": 0, "loss": 1.5}, {"step": 1, "x": "' + "x" * (40 << 20) + '"}]')
    _, rows, peak, rules = measured(path)
    assert rows == 1
    assert "RDR020" in rules
    assert peak < LIMIT


def test_a_fault_in_every_row(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    with path.open("w") as file:
        for i in range(60_000):
            file.write(f'{{"step": {i}, "loss": NaN, "ppl": 1.5, "ppl": 2.5}}\n')
    verdict, rows, peak, rules = measured(path)
    assert (verdict, rows) == ("fail", 0)
    assert {"RDR007", "RDR008"} <= set(rules)
    assert peak < LIMIT
