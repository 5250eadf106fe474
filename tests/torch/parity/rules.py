"""The optimizers: Eq. 22 to 24, M3 and Eq. 28 (rows 6 to 9), replicated and sharded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from outer import local_gradients
from setting import Row, Setting, error, largest, net, raises, train
from torch import Tensor, nn

from trueup.kernels.torch import (
    M3,
    DeepMomentum,
    DeltaMomentum,
    LayerCapture,
    MuonNS,
    ProjectedDescent,
    newton_schulz,
)
from trueup.kernels.torch.optim import projected
from trueup.kernels.torch.parallel import gather_rows, is_sharded, mean_weight, sum_over

Make = Callable[[nn.Module], torch.optim.Optimizer]


def compare(setting: Setting, make: Make, one: Make | None = None, **options: Any) -> Row:
    """Weights and states of both wrappings against one process."""
    want = train(setting, "one", one or make)
    row: Row = {}
    for wrap in ("ddp", "fsdp"):
        got = train(setting, wrap, make, **options)
        assert got.keys() == want.keys()
        row[wrap] = [largest(setting, error(got.values(), want.values())), 1e-10]
    return row


def delta(setting: Setting) -> Row:
    def make(inner: nn.Module) -> torch.optim.Optimizer:
        return DeltaMomentum(inner.parameters(), 0.05, 0.9)

    row = compare(setting, make)
    single = dataclasses.replace(setting, dtype=torch.float32)
    for wrap, (value, _) in compare(single, make).items():
        row[f"{wrap} float32"] = [value, 1e-5]
    (wrong, _), _ = compare(setting, make, weighted=False).values()
    row["MUTANT plain mean of unequal ranks"] = [wrong, 1e-5]
    row["MUTANT mean of g^T g"] = [local_squares(setting), 1e-5]
    states = make(net(setting, "fsdp")[1]).state.values()
    row["momentum is kept in shards"] = [
        float(not all(is_sharded(state["m"]) for state in states)),
        0,
    ]
    return row


def local_squares(setting: Setting) -> float:
    """Two steps of Eq. 22 with the quadratic term of local gradients, against the right order."""
    share = float(mean_weight(setting.counts[setting.rank], setting.ranks)) / setting.world
    right, wrong = (0.0 * local_gradients(setting)[0] for _ in range(2))
    for step in range(2):
        local = local_gradients(setting, step)[0]
        g = sum_over(share * local, setting.ranks)
        square = sum_over(share * local.mT @ local, setting.ranks)
        right = 0.9 * right - right @ g.mT @ g - g
        wrong = 0.9 * wrong - wrong @ square - g
    return error(wrong, right)


def muon(setting: Setting) -> Row:
    def make(inner: nn.Module) -> torch.optim.Optimizer:
        return MuonNS.library(inner.parameters(), 0.05, 0.1, 0.9, narrow=False)

    row = compare(setting, make)
    (wrong, _), _ = compare(setting, make, weighted=False).values()
    row["MUTANT plain mean of unequal ranks"] = [wrong, 1e-5]

    def narrow(inner: nn.Module) -> torch.optim.Optimizer:
        return MuonNS(inner.parameters(), 1.0, 0.9, narrow=True)

    start = [param.detach() for param in net(setting, "one")[1].parameters()]
    steps = {}
    for wrap in ("one", "ddp", "fsdp"):
        found = train(setting, wrap, narrow, steps=1)
        weights = [value for name, value in found.items() if name.endswith("weight")]
        steps[wrap] = [new - old for new, old in zip(weights, start, strict=True)]
    for wrap in ("ddp", "fsdp"):
        row[f"{wrap} step in bfloat16"] = [error(steps[wrap], steps["one"]), 0.04]
    matrix = local_gradients(setting)[0]
    whole = newton_schulz(sum_over(matrix, setting.ranks))
    row["MUTANT NS of each shard"] = [
        error(
            torch.cat(
                [
                    newton_schulz(part)
                    for part in sum_over(matrix, setting.ranks).chunk(setting.world)
                ]
            ),
            whole,
        ),
        0.04,
    ]
    mean = sum_over(newton_schulz(matrix), setting.ranks) / setting.world
    row["MUTANT mean of local NS"] = [error(mean, whole), 0.04]
    return row


def others(setting: Setting) -> Row:
    def m3(inner: nn.Module) -> torch.optim.Optimizer:
        return M3(inner.parameters(), 0.05, frequency=2)

    def deep(inner: nn.Module) -> torch.optim.Optimizer:
        return DeepMomentum(inner.parameters(), 0.05, 0.9, hidden=4)

    row = {f"m3 {key}": value for key, value in compare(setting, m3).items()}
    return row | {f"deep {key}": value for key, value in compare(setting, deep).items()}


def descent(group: Any, **options: Any) -> Make:
    def make(inner: nn.Module) -> torch.optim.Optimizer:
        capture = LayerCapture(inner)
        return ProjectedDescent(capture.weights(), capture, 0.05, group=group, **options)

    return make


def projected_batch(setting: Setting) -> Row:
    group = setting.ranks.group
    row: Row = {}
    for name, options in (
        ("derived", {}),
        ("mean", {"batch": "mean"}),
        ("prox", {"reading": "prox"}),
    ):
        found = compare(setting, descent(group, **options), descent("local", **options))
        row |= {f"{name} {wrap}": value for wrap, value in found.items()}
    lonely = compare(setting, descent("local"))
    row["MUTANT decay of local tokens"] = [lonely["ddp"][0], 1e-5]
    row["no group in several processes raises"] = [
        raises(lambda: train(setting, "one", descent(None))),
        0,
    ]
    return row


def projected_tokens(setting: Setting) -> Row:
    options = {"order": "tokens", "reading": "normalized"}
    make = descent(setting.ranks.group, **options)
    one = descent("local", **options)
    row, want = compare(setting, make, one), train(setting, "one", one)

    def backwards(rows: Tensor, ranks: Any) -> Tensor:
        return gather_rows(rows, ranks).flip(0)

    projected.gather_rows = backwards  # type: ignore[attr-defined]
    try:
        wrong = train(setting, "ddp", make)
    finally:
        projected.gather_rows = gather_rows  # type: ignore[attr-defined]
    row["MUTANT wrong token order"] = [error(wrong.values(), want.values()), 1e-5]
    return row


SCENARIOS = [delta, muon, others, projected_batch, projected_tokens]
