"""Fast memories: per sequence, shared by all, their cadence and teach signal (rows 10 to 14)."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
import torch.distributed as dist
from setting import Row, Setting, error, largest, raises
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from trueup.kernels.torch.modules import ContinuumMemory, LevelSpec, LinearMemory
from trueup.kernels.torch.parallel import sum_over, whole

D, T, PER_RANK = 4, 11, 2


def memory(setting: Setting, **options: Any) -> ContinuumMemory:
    torch.manual_seed(0)
    levels = [LevelSpec("fast", 2, 6, 0.1, 0.5), LevelSpec("slow", 4, 6, 0.05)]
    made: ContinuumMemory = ContinuumMemory(D, levels, flush="flush_partial", **options)
    made.to(setting.device, setting.dtype)
    return made


def streams(setting: Setting) -> tuple[Tensor, Tensor, Tensor]:
    """All sequences' inputs, targets and active flags; the flags differ from rank to rank."""
    generator = torch.Generator().manual_seed(9)
    N = PER_RANK * setting.world
    x, v = (torch.randn(N, T, D, generator=generator, dtype=torch.float64) for _ in range(2))
    mask = torch.rand(N, T, generator=generator) > 0.3
    return (
        x.to(setting.device, setting.dtype),
        v.to(setting.device, setting.dtype),
        mask.to(setting.device),
    )


def own(setting: Setting, rows: Tensor) -> Tensor:
    return rows[PER_RANK * setting.rank : PER_RANK * (setting.rank + 1)]


def run(made: ContinuumMemory, x: Tensor, v: Tensor, mask: Tensor, share: float) -> Tensor:
    """One call; the teach signal is that of a loss divided by `share`."""
    y = made.stream(x, lambda y, a, b: (y - v[:, a:b]) / share, mask)
    made.finish()
    return y


def weights(made: ContinuumMemory) -> list[Tensor]:
    return [whole(param.detach()) for param in made.parameters()]


def per_sequence(setting: Setting) -> Row:
    row: Row = {}
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        at = dataclasses.replace(setting, dtype=dtype)
        x, v, mask = streams(at)
        all_of, mine = memory(at, sequences=len(x)), memory(at, sequences=PER_RANK)
        want = run(all_of, x, v, mask, 1.0)
        got = run(mine, own(at, x), own(at, v), own(at, mask), 1.0)
        row[f"continuum outputs {dtype}"] = [error(got, own(at, want)), tolerance]
        for one, two in zip(mine.levels, all_of.levels, strict=True):
            pairs = zip(one.weights(), two.weights(), strict=True)
            worst = max(error(a.detach(), own(at, b.detach())) for a, b in pairs)
            row[f"continuum {one.spec.name} {dtype}"] = [worst, tolerance]
        torch.manual_seed(0)
        linear = LinearMemory(D, rule="l2", chunk=3, eta=0.05).to(at.device, dtype)
        y, M = linear(x)
        y_own, M_own = linear(own(at, x))
        worst = error([y_own, M_own], [own(at, y), own(at, M)])
        row[f"linear memory {dtype}"] = [worst, tolerance]
    x, v, mask = streams(setting)
    off = own(setting, mask) & (setting.rank != setting.world - 1)
    silent = run(memory(setting, sequences=PER_RANK), own(setting, x), own(setting, v), off, 1.0)
    want = run(memory(setting, sequences=len(x)), x, v, mask, 1.0)
    row["MUTANT a rank disables online updates"] = [
        largest(setting, error(silent, own(setting, want))),
        1e-6,
    ]
    return row


def shared(setting: Setting) -> Row:
    """One memory for all ranks: chunk gradients are reduced at every chunk."""
    x, v, mask = streams(setting)
    group = setting.ranks.group
    row: Row = {}
    count = float(mask.sum())
    for reduce in ("sum", "mean"):
        one = memory(setting, reduce=reduce, group="local")
        want = run(one, x, v, mask, count)
        start = weights(memory(setting, reduce=reduce))
        moved = [new - old for new, old in zip(weights(one), start, strict=True)]
        for name, shard in (("replicated", False), ("sharded", True)):
            made = memory(setting, reduce=reduce, group=group)
            if shard:
                mesh = init_device_mesh(setting.device.type, (setting.world,))
                fully_shard(made, mesh=mesh)
            got = run(made, own(setting, x), own(setting, v), own(setting, mask), count)
            row[f"{reduce} {name} outputs"] = [error(got, own(setting, want)), 1e-12]
            change = [new - old for new, old in zip(weights(made), start, strict=True)]
            row[f"{reduce} {name} change of the weights"] = [
                largest(setting, error(change, moved)),
                1e-10,
            ]
            same = made.counters() == one.counters()
            row[f"{reduce} {name} cadence"] = [largest(setting, float(not same)), 0]
    return row | shared_mutants(setting)


def shared_mutants(setting: Setting) -> Row:
    x, v, mask = streams(setting)
    parts = own(setting, x), own(setting, v)
    group, count = setting.ranks.group, float(mask.sum())
    one = memory(setting, group="local")
    run(one, x, v, mask, count)
    last = setting.rank == setting.world - 1

    def wrong(made: ContinuumMemory, flags: Tensor, share: float) -> float:
        run(made, *parts, flags, share)
        return largest(setting, error(weights(made), weights(one)))

    mine = own(setting, mask)
    lonely = memory(setting, group="local")
    drift = wrong(lonely, mine, count)
    flat = torch.cat([item.flatten() for item in weights(lonely)])
    apart = float((flat - sum_over(flat, setting.ranks) / setting.world).norm() / flat.norm())
    uneven = parts[0][:, : T - 1] if last else parts[0]
    return {
        "MUTANT a rank disables online updates": [
            wrong(memory(setting, group=group), mine & (not last), count), 1e-6,
        ],
        "MUTANT every rank writes its own": [drift, 1e-6],
        "MUTANT ranks drift apart": [largest(setting, apart), 1e-6],
        "MUTANT teach signal of the local count": [
            wrong(memory(setting, group=group), mine, float(mine.sum())), 1e-6,
        ],
        "no group in several processes raises": [
            raises(lambda: memory(setting).stream(parts[0], parts[1])), 0,
        ],
        "calls of other lengths on other ranks raise": [
            raises(lambda: memory(setting, group=group).stream(uneven, uneven)), 0,
        ],
    }  # fmt: skip


def outer_through_writes(setting: Setting) -> Row:
    """The per-layer path: the outer gradient through online writes, reduced over ranks."""
    x, v, _ = streams(setting)
    row: Row = {}
    for mode in ("through", "straight_through"):
        grads = {}
        for who in ("one", "ranks"):
            torch.manual_seed(0)
            module = LinearMemory(D, rule="dgd", chunk=3, eta=0.05, write_grad=mode)
            module = module.to(setting.device, setting.dtype)
            rows = (x, v) if who == "one" else (own(setting, x), own(setting, v))
            loss = (module(rows[0])[0] - rows[1]).square().sum() / x.numel()
            loss.backward()
            named = [param.grad for param in module.parameters() if param.grad is not None]
            grads[who] = named if who == "one" else [sum_over(g, setting.ranks) for g in named]
        kept = [pair for pair in zip(grads["ranks"], grads["one"], strict=True) if pair[1].any()]
        row[mode] = [max(error(a, b) for a, b in kept), 1e-11]
        # The projections of keys and values act through writes alone.
        exist = {"through": 4, "straight_through": 2}[mode]
        row[f"{mode}: gradients that exist"] = [float(len(kept) != exist), 0]
    dist.barrier()
    return row


SCENARIOS = [per_sequence, shared, outer_through_writes]
