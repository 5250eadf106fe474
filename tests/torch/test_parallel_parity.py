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
        ranks = [
            subprocess.Popen(
                [
                    sys.executable,
                    str(WORKER),
                    f"--rank={rank}",
                    f"--world={world}",
                    f"--backend={backend}",
                    f"--meet={base / 'meet'}",
                    f"--out={base / str(rank)}",
                ],
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(world)
        ]
        failed = []
        for rank, process in enumerate(ranks):
            try:
                _, errors = process.communicate(timeout=240)
            except subprocess.TimeoutExpired:
                for other in ranks:
                    other.kill()
                raise
            if process.returncode:
                failed.append(f"rank {rank}:\n{errors[-3000:]}")
        assert not failed, "\n".join(failed)
        return [json.loads((base / str(rank)).read_text()) for rank in range(world)]


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
