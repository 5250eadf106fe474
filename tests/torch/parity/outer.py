"""The outer loop: gradient, loss, perplexity, clipping, linear momentum (rows 1 to 5)."""

from __future__ import annotations

import dataclasses
import math

import torch
import torch.distributed as dist
from setting import Row, Setting, error, loss_of, net
from torch import Tensor, nn

from trueup.kernels.torch.parallel import mean_weight, sum_over, token_weighted, whole


def gradients(setting: Setting, wrap: str, weighted: bool = True, step: int = 0) -> list[Tensor]:
    model, inner = net(setting, wrap)
    loss_of(setting, model, step, wrap, weighted).backward()
    return [whole(param.grad) for param in inner.parameters() if param.grad is not None]


def outer_gradient(setting: Setting) -> Row:
    row: Row = {}
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        at = dataclasses.replace(setting, dtype=dtype)
        want = gradients(at, "one")
        for wrap in ("ddp", "fsdp"):
            row[f"{wrap} {dtype}"] = [error(gradients(at, wrap), want), tolerance]
    want = gradients(setting, "one")
    local = [
        grad * float(mean_weight(setting.counts[setting.rank], setting.ranks)) / setting.world
        for grad in local_gradients(setting)
    ]
    reduced = [sum_over(grad.bfloat16(), setting.ranks) for grad in local]
    row["bfloat16 reduction"] = [error(reduced, want), 1e-2]
    row["MUTANT plain mean of unequal ranks"] = [
        error(gradients(setting, "ddp", weighted=False), want),
        1e-5,
    ]
    summed = [grad * setting.world for grad in gradients(setting, "ddp")]
    row["MUTANT sum for mean"] = [error(summed, want), 1e-5]
    return row


def local_gradients(setting: Setting, step: int = 0) -> list[Tensor]:
    """Of the local mean, not reduced."""
    model, inner = net(setting, "one")
    loss_of(setting, model, step, "local", weighted=False).backward()
    return [param.grad for param in inner.parameters() if param.grad is not None]


def reported_loss(setting: Setting) -> Row:
    model, _ = net(setting, "one")
    with torch.no_grad():
        want = loss_of(setting, model, 0, "one")
        local = loss_of(setting, model, 0, "local", weighted=False)
        got = token_weighted(local, setting.counts[setting.rank], setting.ranks)
        ppl = sum_over(torch.exp(local), setting.ranks) / setting.world
    relative = abs(float(got - want) / float(want))
    perplexity = abs(math.exp(float(got)) / math.exp(float(want)) - 1)
    empty = token_weighted(
        torch.tensor(float("nan") if setting.rank else 2.0, device=setting.device),
        0 if setting.rank else 3,
        setting.ranks,
    )
    return {
        "loss": [relative, 1e-12],
        "ppl is exp of the global loss": [perplexity, 1e-11],
        "a rank without tokens counts nothing": [abs(float(empty) - 2), 0],
        "MUTANT a rank's local loss": [
            abs(float(sum_over(local * (setting.rank == 0), setting.ranks) - want) / float(want)),
            1e-6,
        ],
        "MUTANT mean of perplexities": [abs(float(ppl) / math.exp(float(want)) - 1), 1e-6],
    }


def clip_coefficient(setting: Setting) -> Row:
    """Max norm 0.1: the coefficient is that of the reduced, un-sharded gradient."""
    norms = {}
    for wrap in ("one", "ddp", "fsdp"):
        model, inner = net(setting, wrap)
        loss_of(setting, model, 0, wrap).backward()
        norms[wrap] = whole(nn.utils.clip_grad_norm_(inner.parameters(), 0.1))
    row: Row = {wrap: [error(norms[wrap], norms["one"]), 1e-6] for wrap in ("ddp", "fsdp")}
    local = torch.cat([grad.flatten() for grad in local_gradients(setting)])
    clipped = local * (0.1 / local.norm().clamp(min=0.1))
    mean = sum_over(clipped, setting.ranks) / setting.world
    want = torch.cat([grad.flatten() for grad in gradients(setting, "one")])
    want = want * (0.1 / want.norm())
    row["MUTANT clip, then mean"] = [error(mean, want), 1e-6]
    return row


def linear_momentum(setting: Setting) -> Row:
    """Eq. 17: accumulating weighted local gradients and reducing later is the same."""
    total = [0.0 * grad for grad in gradients(setting, "one")]
    late, plain = [0 * item for item in total], [0 * item for item in total]
    for step in range(3):
        # The counts change from step to step: the weights are those of the step.
        count = setting.counts[(setting.rank + step) % setting.world]
        share = float(mean_weight(count, setting.ranks)) / setting.world
        local = local_gradients(setting, step)
        reduced = [sum_over(share * grad, setting.ranks) for grad in local]
        total = [0.9 * m - 0.1 * grad for m, grad in zip(total, reduced, strict=True)]
        late = [0.9 * m - 0.1 * share * grad for m, grad in zip(late, local, strict=True)]
        plain = [0.9 * m - 0.1 * grad / setting.world for m, grad in zip(plain, local, strict=True)]
    return {
        "accumulate, then reduce": [
            error([sum_over(item, setting.ranks) for item in late], total),
            1e-12,
        ],
        "MUTANT un-weighted buffers": [
            error([sum_over(item, setting.ranks) for item in plain], total),
            1e-5,
        ],
    }


def same_seed_everywhere(setting: Setting) -> Row:
    """The harness itself: models start equal on all ranks."""
    _, inner = net(setting, "one")
    flat = torch.cat([param.detach().flatten() for param in inner.parameters()])
    low, high = flat.clone(), flat.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return {"spread": [float((high - low).abs().max()), 0]}


SCENARIOS = [outer_gradient, reported_loss, clip_coefficient, linear_momentum, same_seed_everywhere]
