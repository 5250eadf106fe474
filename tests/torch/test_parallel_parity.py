"""One process against N ranks, quantity by quantity: the parity table of the specification.

Each run starts N processes once; a test for each scenario reads what they found. A quantity whose
name begins with MUTANT is a fault planted on purpose, which must exceed its tolerance.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import torch

WORKER = Path(__file__).parent / "parity" / "worker.py"
NAMES = [
    "outer_gradient",
    "reported_loss",
    "clip_coefficient",
    "linear_momentum",
    "same_seed_everywhere",
    "delta",
    "muon",
    "others",
    "projected_batch",
    "projected_tokens",
    "per_sequence",
    "shared",
    "outer_through_writes",
]
Table = dict[str, dict[str, list[float]]]


@functools.cache
def table(world: int, backend: str) -> list[Table]:
    """Run all scenarios on so many ranks; what each rank found."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        ranks = [start(rank, world, backend, base) for rank in range(world)]
        try:
            end = time.monotonic() + 400
            while any(process.poll() is None for process in ranks):
                # A rank that fails leaves the others waiting for it.
                failed = [process for process in ranks if process.poll()]
                assert not failed, complaints(base)
                assert time.monotonic() < end, "the ranks did not finish within 400 s"
                time.sleep(0.05)
            assert not any(process.returncode for process in ranks), complaints(base)
        finally:
            for process in ranks:
                process.kill()
                process.wait()
        return [json.loads((base / f"{rank}.json").read_text()) for rank in range(world)]


def start(rank: int, world: int, backend: str, base: Path) -> subprocess.Popen[bytes]:
    options = {
        "rank": rank,
        "world": world,
        "backend": backend,
        "meet": base / "meet",
        "out": base / f"{rank}.json",
    }
    command = [sys.executable, str(WORKER), *(f"--{key}={value}" for key, value in options.items())]
    with (base / f"{rank}.log").open("wb") as log:
        return subprocess.Popen(command, stderr=log)


def complaints(base: Path) -> str:
    return "\n".join(f"{log.name}:\n{log.read_text()[-3000:]}" for log in base.glob("*.log"))


def check(tables: list[Table], name: str) -> None:
    wrong = []
    for rank, found in enumerate(tables):
        assert found[name]
        for quantity, (error, tolerance) in found[name].items():
            caught = error > tolerance
            if caught != quantity.startswith("MUTANT"):
                wrong.append(f"rank {rank}, {quantity}: error {error:.3g}, allowed {tolerance:g}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("world", [2, 4])
def test_parity_on_gloo(world: int, name: str) -> None:
    check(table(world, "gloo"), name)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_parity_on_nccl(name: str) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("two CUDA devices are needed")
    check(table(2, "nccl"), name)


def test_every_scenario_is_asked_for() -> None:
    assert sorted(table(2, "gloo")[0]) == sorted(NAMES)
