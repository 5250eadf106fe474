"""DeepMomentum: Eq. 23, each matrix's momentum is a small network over its gradient's rows."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.deep import INNERS, deep_momentum_, next_network, read_network
from trueup.kernels.torch.ops.registry import one_of
from trueup.kernels.torch.optim.matrices import (
    Group,
    MatrixOptimizer,
    State,
    add_,
    in_range,
    zeros,
)


class DeepMomentum(MatrixOptimizer):
    """Deep momentum (DMGD): Nested Learning, Eq. 23; the network is this library's choice.

        theta <- alpha theta - eta grad L2(F_theta(g)),   W <- W + scale F_theta(g)
    with F(g) = tanh(g A2^T) A1^T on every row of the gradient and the *new* theta in the read.
    Args: params, matrices; lr, the inner eta; momentum, alpha in [0, 1]; hidden, the width h (d_in
    if None); inner, `dot_self` (so that F approaches -g), `l2_neg` or `dot_ones` (the print's
    example, blind to the gradient's sign); scale, the outer rate of Eq. 24; seed of the initial
    networks, the same on every rank.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        momentum: float = 1.0,
        *,
        hidden: int | None = None,
        inner: str = "dot_self",
        scale: float = 1.0,
        seed: int = 0,
        maximize: bool = False,
    ) -> None:
        """Make every matrix's network; ValueError for what cannot be trained."""
        self._networks = 0
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "hidden": hidden,
            "inner": inner,
            "scale": scale,
            "seed": seed,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        in_range(group, "lr", 0.0)
        in_range(group, "momentum", 0.0, 1.0)
        in_range(group, "scale", 0.0)
        one_of("inner", group["inner"], INNERS)
        if group["hidden"] is not None and group["hidden"] < 1:
            raise ValueError(f"hidden: got {group['hidden']}, expected 1 or more")

    def _start(self, param: Tensor, group: Group) -> State:
        d_in = int(param.shape[1])
        h = group["hidden"] or d_in
        generator = torch.Generator().manual_seed(int(group["seed"]) + self._networks)
        self._networks += 1
        A1 = torch.randn(d_in, h, generator=generator, dtype=torch.float64) / math.sqrt(h)
        A2 = torch.randn(h, d_in, generator=generator, dtype=torch.float64) / math.sqrt(d_in)
        kind = zeros(param).dtype
        return {"A1": A1.to(param.device, kind), "A2": A2.to(param.device, kind)}

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        A1, A2, eta = state["A1"], state["A2"], group["lr"]
        if not isinstance(eta, Tensor):
            options = {"inner": group["inner"], "scale": group["scale"]}
            deep_momentum_(A1, A2, param, grad, group["momentum"], eta, **options)
            return
        grad = grad.to(A1.dtype)
        new_A1, new_A2 = next_network(A1, A2, grad, group["momentum"], eta, group["inner"])
        A1.copy_(new_A1)
        A2.copy_(new_A2)
        add_(param, group["scale"] * read_network(A1, A2, grad))
