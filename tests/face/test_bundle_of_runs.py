"""Two runs with log, checkpoints and results: bundled, and judged by nl from end to end."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from trueup.cli.app import app
from trueup.gates import judge

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SMALL = FIXTURES / "runs" / "memory_small"
LOG = FIXTURES / "runs" / "cms_small" / "telemetry.json"
VARIANTS = {"phase0_selfmod": "teach", "phase0_attention": "no_teach"}
CONFIG = """\
train:
  algorithm_mode: two_pass_stopgrad_updates
  online_updates: true
  use_fast_state: false
"""


def sidecar(step: int, weights: bytes, created_at: str) -> dict[str, Any]:
    """What a trainer states of a checkpoint."""
    return {
        "step": step,
        "checkpoint_sha256": hashlib.sha256(weights).hexdigest(),
        "size_bytes": len(weights),
        "config_sha256": hashlib.sha256(CONFIG.encode()).hexdigest(),
        "created_at": created_at,
        "algorithm_mode": "two_pass_stopgrad_updates",
        "online_updates": True,
        "use_fast_state": False,
        "rng_states": {"python": "gASVxQ==", "numpy": "gASVxw==", "torch": "88130000a1"},
        "tokenizer_hash": None,
        "libraries": {"python": "3.11.7", "torch": "2.13.0+cpu", "numpy": "2.4.6"},
        "device": "cpu",
        "dtype": "float32",
        "git_commit": "0123456789abcdef0123456789abcdef01234567",
    }


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """The real results and weights of the small memory model, beside the log of a real run."""
    out = []
    for name, variant in VARIANTS.items():
        run = tmp_path / "runs" / name
        shutil.copytree(SMALL / variant, run)
        shutil.copy(LOG, run / "telemetry.json")
        for path in (run / "checkpoints").glob("*.safetensors"):
            old = json.loads(path.with_suffix(".meta.json").read_text())
            stated = sidecar(old["step"], path.read_bytes(), old["created_at"])
            path.with_suffix(".meta.json").write_text(json.dumps(stated))
            path.with_suffix(".yaml").write_text(CONFIG)
            line = f"{stated['checkpoint_sha256']}  {path.name}\n"
            path.with_suffix(".sha256").write_text(line)
        for path in (run / "eval").glob("*.json"):
            data = json.loads(path.read_text()) | {"variant": name}
            path.write_text(json.dumps(data))
        out.append(run)
    return out


def command(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*map(str, words), "--no-config"])
    return done.exit_code, done.stdout + done.stderr


def test_two_runs_are_bundled_and_judged(runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "phase0"
    code, said = command("bundle", *runs, "-o", out, "--profile", "nl")
    assert (code, "no result" in said) == (0, False), said
    code, said = command("gate", out, "--profile", "nl")
    assert code == 0, said
    statuses = {one.id: one.status for one in judge(out, "nl").rules}
    applied = {f"BND{n:03}" for n in range(1, 13)} | {f"EVAL{n:03}" for n in range(1, 22)}
    assert {rule for rule in applied if statuses[rule] != "true"} == set()


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("BND005", "phase0_selfmod/telemetry.json"),
        ("BND004", "phase0_attention/eval/pg19.json"),
        ("EVAL004", "phase0_selfmod/checkpoints/step_000300.safetensors"),
    ],
)
def test_what_is_changed_in_a_bundle_is_found(
    rule: str, path: str, runs: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "phase0"
    assert command("bundle", *runs, "-o", out, "--profile", "nl")[0] == 0
    if rule == "BND004":
        (out / path).unlink()
    else:
        (out / path).write_bytes((out / path).read_bytes().replace(b"1", b"2", 1))
    code, said = command("gate", out, "--profile", "nl")
    assert code == 1
    assert rule in said


def test_one_run_alone_lacks_a_variant(runs: list[Path], tmp_path: Path) -> None:
    code, said = command("bundle", runs[0], "-o", tmp_path / "half", "--profile", "nl")
    assert code == 0
    assert "variant phase0_attention: no result; the profile asks for it" in said
    code, said = command("gate", tmp_path / "half", "--profile", "nl")
    assert code == 1
    assert "BND010" in said
