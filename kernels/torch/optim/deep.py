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
    in_stacks,
    rate,
    state_dtype,
)


class DeepMomentum(MatrixOptimizer):
    """Deep momentum (DMGD): Nested Learning, Eq. 23; the network is this library's choice.

        theta <- alpha theta - eta grad L2(F_theta(g)),   W <- W + scale F_theta(g)
    with F(g) = tanh(g A2^T) A1^T on every row of the gradient and the *new* theta in the read.
    Args: params, matrices; lr, the inner eta; momentum, alpha in [0, 1]; hidden, the width h (d_in
    if None); inner, `dot_self` (so that F approaches -g), `l2_neg` or `dot_ones` (the print's
    example, blind to the gradient's sign); scale, the outer rate of Eq. 24; seed of the initial
    networks, the same on every rank; maximize, ascend instead; foreach, the networks of matrices
    of one shape together.
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
        foreach: bool = False,
    ) -> None:
        """Make every matrix's network; ValueError for what cannot be trained."""
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "hidden": hidden,
            "inner": inner,
            "scale": scale,
            "seed": seed,
            "maximize": maximize,
            "foreach": foreach,
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
        # A seed of its own for each matrix: state is made of one after the other.
        generator = torch.Generator().manual_seed(int(group["seed"]) + len(self.state))
        A1 = torch.randn(d_in, h, generator=generator, dtype=torch.float64) / math.sqrt(h)
        A2 = torch.randn(h, d_in, generator=generator, dtype=torch.float64) / math.sqrt(d_in)
        kind = state_dtype(param)
        return {"A1": A1.to(param.device, kind), "A2": A2.to(param.device, kind)}

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        A1, A2, eta = state["A1"], state["A2"], rate(group)
        if not isinstance(eta, Tensor):
            options = {"inner": group["inner"], "scale": group["scale"]}
            deep_momentum_(A1, A2, param, grad, group["momentum"], eta, **options)
            return
        self._update_many([param], [grad], [state], group)

    def _update_many(
        self, params: list[Tensor], grads: list[Tensor], states: list[State], group: Group
    ) -> None:
        alpha, eta, scale = group["momentum"], rate(group), group["scale"]

        def together(A1: Tensor, A2: Tensor, g: Tensor) -> tuple[Tensor, ...]:
            new = next_network(A1, A2, g, alpha, eta, group["inner"])
            return *new, scale * read_network(*new, g)

        ones, twos = [state["A1"] for state in states], [state["A2"] for state in states]
        grads = [grad.to(A1.dtype) for grad, A1 in zip(grads, ones, strict=True)]
        moved = in_stacks(together, ones, twos, grads)
        for param, A1, A2, new in zip(params, ones, twos, moved, strict=True):
            A1.copy_(new[0])
            A2.copy_(new[1])
            add_(param, new[2])
