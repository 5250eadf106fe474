"""MuonNS: Eq. 24 with a linear momentum and the Newton-Schulz non-linearity."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.orthogonal import EPS, EPS_RULES, newton_schulz, polynomial
from trueup.kernels.torch.ops.registry import one_of, wide
from trueup.kernels.torch.optim.matrices import (
    Group,
    MatrixOptimizer,
    State,
    add_,
    in_range,
    zeros,
)

SHAPE_FACTORS = (None, "original", "match_rms_adamw")


class MuonNS(MatrixOptimizer):
    """Orthogonalised momentum: Nested Learning, Eq. 24, the rate outside.

        m <- alpha m - g,    W <- W + eta NS(m)
    With the options of the library's Muon (`MuonNS.library`):
        b <- mu b + (1 - mu) g;  z = (1 - mu) g + mu b if nesterov, else b
        W <- (1 - lr wd) W - lr rho NS(z)
    m is -b up to a positive factor, which NS does not see. Args: params, matrices; lr; momentum in
    [0, 1); nesterov; weight_decay, decoupled; poly `quintic5` or `cubicN`; eps, eps_rule of the
    norm; shape_factor None (rho = 1), `original` sqrt(max(1, d_out / d_in)) or `match_rms_adamw`
    0.2 sqrt(max(d_out, d_in)); dtype of the iteration, bfloat16 as in the library, None for the
    state's own.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.95,
        *,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        poly: str = "quintic5",
        eps: float = EPS,
        eps_rule: str = "clamp",
        shape_factor: str | None = None,
        dtype: torch.dtype | None = torch.bfloat16,
        maximize: bool = False,
        foreach: bool = False,
    ) -> None:
        """Make the state of all parameters; ValueError for what cannot be trained."""
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "nesterov": nesterov,
            "weight_decay": weight_decay,
            "poly": poly,
            "eps": eps,
            "eps_rule": eps_rule,
            "shape_factor": shape_factor,
            "dtype": dtype,
            "maximize": maximize,
            "foreach": foreach,
        }
        super().__init__(params, defaults)

    @classmethod
    def library(
        cls,
        params: Any,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        adjust_lr_fn: str | None = None,
        **options: Any,
    ) -> MuonNS:
        """Make the optimizer that `torch.optim.Muon` of these arguments is."""
        return cls(
            params,
            lr,
            momentum,
            nesterov=nesterov,
            weight_decay=weight_decay,
            shape_factor=adjust_lr_fn or "original",
            **options,
        )

    def _check(self, group: Group) -> None:
        in_range(group, "lr", 0.0)
        in_range(group, "momentum", 0.0, 1.0)
        if group["momentum"] == 1.0:
            raise ValueError("momentum: got 1.0, expected less: the buffer would never change")
        in_range(group, "weight_decay", 0.0)
        in_range(group, "eps", 0.0)
        polynomial(group["poly"])
        one_of("eps_rule", group["eps_rule"], EPS_RULES)
        if group["shape_factor"] not in SHAPE_FACTORS:
            raise ValueError(
                f"shape_factor: got {group['shape_factor']!r}, expected one of {SHAPE_FACTORS}"
            )

    def _start(self, param: Tensor, group: Group) -> State:
        return {"b": zeros(param)}

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        mu, b = group["momentum"], state["b"]
        grad = grad.to(b.dtype)
        b.lerp_(grad, 1 - mu)
        z = grad.lerp(b, mu) if group["nesterov"] else b
        self._move(param, self._orthogonal(z, group), group)

    def _update_many(
        self, params: list[Tensor], grads: list[Tensor], states: list[State], group: Group
    ) -> None:
        mu, buffers = group["momentum"], [state["b"] for state in states]
        grads = [grad.to(b.dtype) for grad, b in zip(grads, buffers, strict=True)]
        if not params:
            return
        torch._foreach_lerp_(buffers, grads, 1 - mu)
        read = torch._foreach_lerp(grads, buffers, mu) if group["nesterov"] else buffers
        # Matrices of one shape are orthogonalised as one stack.
        shapes: dict[tuple[int, ...], list[int]] = {}
        for place, z in enumerate(read):
            shapes.setdefault(tuple(z.shape), []).append(place)
        for places in shapes.values():
            stack = torch.stack([read[place] for place in places])
            for place, step in zip(places, self._orthogonal(stack, group), strict=True):
                self._move(params[place], step, group)

    def _orthogonal(self, z: Tensor, group: Group) -> Tensor:
        options = {"eps": group["eps"], "eps_rule": group["eps_rule"], "dtype": group["dtype"]}
        return newton_schulz(z, poly=group["poly"], **options)

    def _move(self, param: Tensor, step: Tensor, group: Group) -> None:
        rate = group["lr"] * _shape_factor(group["shape_factor"], param)
        if group["weight_decay"]:
            param.mul_(1 - group["lr"] * group["weight_decay"])
        add_(param, -rate * step.to(wide(param).dtype))


def _shape_factor(rule: str | None, param: Tensor) -> float:
    d_out, d_in = int(param.shape[0]), int(param.shape[1])
    if rule == "original":
        return math.sqrt(max(1.0, d_out / d_in))
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(d_out, d_in))
    return 1.0
