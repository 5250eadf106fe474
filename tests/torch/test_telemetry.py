"""Telemetry of a ContinuumMemory in training, judged by the gate of the `nl` profile."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from trueup.cli.app import app
from trueup.kernels.torch.modules import ContinuumMemory, LevelSpec

V, D, B, T, STEPS = 17, 8, 4, 26, 24
PERIODS = {"cms_fast": 4, "cms_slow": 16}


def configuration(threshold: float | None) -> dict[str, Any]:
    return {
        "step": -1,
        "train.online_updates": True,
        "train.use_fast_state": False,
        "train.online_boundary_targets": True,
        "train.backprop_through_online_writes": False,
        "train.algorithm_mode": "two_pass_stopgrad_updates",
        "device": "cpu",
        "model.surprise_metric": "l2",
        "model.surprise_threshold": threshold,
        "model.vocab_size": V,
        "model.cms.flush_partial": True,
        **{f"model.cms.{name}.update_period": period for name, period in PERIODS.items()},
    }


def train(threshold: float | None = None) -> list[dict[str, Any]]:
    """Next-token training: an outer optimizer for table and head, the CMS learns online."""
    torch.manual_seed(0)
    table, head = nn.Embedding(V, D), nn.Linear(D, V)
    levels = [LevelSpec(name, period, 12, 0.5, 0.5) for name, period in PERIODS.items()]
    cms = ContinuumMemory(D, levels, flush="flush_partial", threshold=threshold)
    outer = torch.optim.Adam([*table.parameters(), *head.parameters()], 0.02)
    generator = torch.Generator().manual_seed(1)
    rows = [configuration(threshold)]
    for step in range(STEPS):
        start = torch.randint(0, V, (B, 1), generator=generator)
        text = (start + 3 * torch.arange(T + 1)) % V
        norms: list[torch.Tensor] = []

        def signal(
            y: torch.Tensor,
            a: int,
            b: int,
            text: torch.Tensor = text,
            norms: list[torch.Tensor] = norms,
        ) -> torch.Tensor:
            leaf = y.detach().requires_grad_()
            logits = head(leaf).flatten(0, 1)
            loss = nn.functional.cross_entropy(
                logits, text[:, a + 1 : b + 1].flatten(), reduction="sum"
            )
            (delta,) = torch.autograd.grad(loss / (B * T), leaf)
            norms.append(delta.norm(dim=-1))
            return delta

        y = cms.stream(table(text[:, :-1]).detach(), signal)
        cms.finish()
        loss = nn.functional.cross_entropy(
            head(y.detach() + 0.1 * table(text[:, :-1])).flatten(0, 1), text[:, 1:].flatten()
        )
        outer.zero_grad()
        loss.backward()
        outer.step()
        teach = torch.cat(norms, 1).mean().item()
        rows.append(
            {
                "step": step,
                "loss": loss.item(),
                "ppl": math.exp(loss.item()),
                "teach_signal_norm": teach,
                "surprise_metric": "l2",
                "surprise_value": teach,
                **cms.telemetry(0),
            }
        )
    return rows


def judge(rows: list[dict[str, Any]], path: Path) -> tuple[int, str]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["gate", str(path), "--profile", "nl"])
    return result.exit_code, result.output


@pytest.mark.parametrize("threshold", [None, 0.004])
def test_the_rows_pass_the_gate(threshold: float | None, tmp_path: Path) -> None:
    rows = train(threshold)
    code, output = judge(rows, tmp_path / "run.jsonl")
    assert code == 0, output
    assert any(row.get("layer0.cms.cms_fast.chunk_tokens", 0) > 0 for row in rows)
    if threshold is not None:
        assert any("layer0.gate.cms_fast.gate_hit" in row for row in rows) or any(
            row.get("layer0.cms.cms_fast.tokens_gated", 0) for row in rows
        )


def test_cadence_is_counted_by_hand() -> None:
    """R5, T = 26 with flush: ceil(26 / 4) = 7 updates, ceil(26 / 16) = 2; 2 and 10 flushed."""
    row = train()[1]
    fast, slow = ("layer0.cms.cms_fast.", "layer0.cms.cms_slow.")
    assert row[f"{fast}updates_applied"] == row[f"{fast}gate_hit"] == 7
    assert row[f"{slow}updates_applied"] == 2
    assert (row[f"{fast}chunk_tokens"], row[f"{fast}tokens_flushed"]) == (26, 2)
    assert (row[f"{slow}chunk_tokens"], row[f"{slow}tokens_flushed"]) == (26, 10)
    assert row[f"{fast}pending_tokens"] == row[f"{slow}pending_tokens"] == 0


def test_a_wrong_cadence_does_not_pass(tmp_path: Path) -> None:
    rows = train()
    for row in rows[1:]:
        row["layer0.cms.cms_fast.chunk_tokens"] -= 1
    code, output = judge(rows, tmp_path / "run.jsonl")
    assert code == 1, output


def test_a_level_without_anything_to_tell_is_absent() -> None:
    cms = ContinuumMemory(2, [LevelSpec("fast", 2, 3, 0.1), LevelSpec("slow", 4, 3, 0.1)])
    assert cms.telemetry() == {}
    cms.stream(torch.ones(1, 4, 2), torch.ones(1, 4, 2))
    assert {key.split(".")[2] for key in cms.telemetry(3)} == {"fast", "slow"}
    cms.stream(torch.ones(1, 2, 2), torch.ones(1, 2, 2))
    row = cms.telemetry(3)
    assert row["layer3.cms.fast.updates_applied"] == 1
    assert row["layer3.cms.slow.pending_tokens"] == 2
    assert row["layer3.cms.slow.updates_applied"] == 0
