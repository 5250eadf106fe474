"""What the parity scenarios share: ranks, a small model in three wrappings, data, and errors."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from trueup.kernels.torch.parallel import Ranks, mean_weight, whole

D_IN, D_HIDDEN, D_OUT, STEPS = 5, 7, 3, 3
Row = dict[str, list[float]]
"""Quantity to [error, tolerance]: the error of N ranks against one process."""


@dataclass(frozen=True)
class Setting:
    """One rank of a run."""

    rank: int
    world: int
    device: torch.device
    dtype: torch.dtype = torch.float64

    @property
    def ranks(self) -> Ranks:
        return Ranks(dist.group.WORLD, self.world, self.rank)

    @property
    def counts(self) -> list[int]:
        """Tokens of each rank: all different, so that a plain mean is wrong."""
        return [2 + rank for rank in range(self.world)]

    def mine(self, rows: Tensor) -> Tensor:
        """This rank's rows of all tokens."""
        start = sum(self.counts[: self.rank])
        return rows[start : start + self.counts[self.rank]]

    def data(self, step: int) -> tuple[Tensor, Tensor]:
        """All tokens' inputs and targets of a step."""
        generator = torch.Generator().manual_seed(100 + step)
        total = sum(self.counts)
        shapes = (total, D_IN), (total, D_OUT)
        x, v = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
        return x.to(self.device, self.dtype), v.to(self.device, self.dtype)


def net(setting: Setting, wrap: str) -> tuple[nn.Module, nn.Module]:
    """The model as it is called, and as it holds the layers; `one`, `ddp` or `fsdp`."""
    torch.manual_seed(0)
    layers = OrderedDict(
        first=nn.Linear(D_IN, D_HIDDEN, bias=False),
        bend=nn.Tanh(),
        second=nn.Linear(D_HIDDEN, D_OUT, bias=False),
    )
    inner: nn.Sequential = nn.Sequential(layers).to(setting.device, setting.dtype)
    if wrap == "ddp":
        return DistributedDataParallel(inner), inner
    if wrap == "fsdp":
        mesh = init_device_mesh(setting.device.type, (setting.world,))
        for layer in (inner[0], inner[2], inner):
            fully_shard(layer, mesh=mesh)
    return inner, inner


def loss_of(
    setting: Setting, model: nn.Module, step: int, wrap: str, weighted: bool = True
) -> Tensor:
    """The mean loss over all tokens; in a wrapping, this rank's share of it."""
    x, v = setting.data(step)
    if wrap == "one":
        return (model(x) - v).square().sum(-1).mean() / 2
    loss = (model(setting.mine(x)) - setting.mine(v)).square().sum(-1).mean() / 2
    if weighted:
        loss = loss * float(mean_weight(setting.counts[setting.rank], setting.ranks))
    return loss


def train(
    setting: Setting,
    wrap: str,
    make: Callable[[nn.Module], torch.optim.Optimizer],
    *,
    weighted: bool = True,
    steps: int = STEPS,
) -> dict[str, Tensor]:
    """Train some steps; all weights and states as whole tensors."""
    model, inner = net(setting, wrap)
    optimizer = make(inner)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(setting, model, step, wrap, weighted).backward()
        optimizer.step()
    found = {}
    for name, param in inner.named_parameters():
        found[name] = whole(param.detach())
        for key, value in optimizer.state[param].items():
            if isinstance(value, Tensor):
                found[f"{name}.{key}"] = whole(value)
    return found


def error(got: Iterable[Tensor] | Tensor, want: Iterable[Tensor] | Tensor) -> float:
    """The largest relative error, in the Frobenius norm, of some tensors."""
    pairs = [(got, want)] if isinstance(got, Tensor) else zip(got, want, strict=True)
    worst = 0.0
    for one, two in pairs:
        assert isinstance(two, Tensor)
        want = two.detach().double()
        difference = (one.detach().double() - want).norm()
        worst = max(worst, float(difference / want.norm().clamp(min=1e-30)))
    return worst


def largest(setting: Setting, value: float) -> float:
    """The largest over all ranks."""
    tensor = torch.tensor(value, dtype=torch.float64, device=setting.device)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return float(tensor)


def raises(call: Callable[[], Any]) -> float:
    """0 where a call raises RuntimeError, else 1."""
    try:
        call()
    except RuntimeError:
        return 0.0
    return 1.0
