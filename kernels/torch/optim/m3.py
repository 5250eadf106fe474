"""M3: two momenta of different frequency, orthogonalised, over a sum of squares."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.m3 import m3_, m3_direction, m3_slow_
from trueup.kernels.torch.ops.orthogonal import EPS, newton_schulz, polynomial
from trueup.kernels.torch.optim.matrices import (
    Group,
    MatrixOptimizer,
    State,
    add_,
    in_range,
    in_stacks,
    rate,
    zeros,
)


class M3(MatrixOptimizer):
    """Multi-scale momentum with orthogonalisation: preprint Algorithm 1, in two transcriptions.

        M1 += beta1 g;  V += beta2 g*g;  S += g
        W -= lr (NS(M1) + alpha O2) / (sqrt(V) + eps)
        every `frequency` steps:  M2 += beta3 S;  S = 0;  O2 = NS(M2), used from the next step
    Sums, not moving averages: nothing is forgotten, and V only grows. Args: params, matrices; lr;
    betas (beta1, beta2, beta3); alpha, weight of the slow momentum; frequency, in steps; eps; poly
    of the orthogonalisation, or `none` for the identity; ns_eps of its norm; maximize, ascend
    instead; foreach, matrices of one shape orthogonalised as a stack. Steps are counted on the
    host: a CUDA graph, which would repeat one of them, cannot capture them (RuntimeError).
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float, float] = (1.0, 1.0, 1.0),
        *,
        alpha: float = 1.0,
        frequency: int = 10,
        eps: float = 1e-8,
        poly: str = "quintic5",
        ns_eps: float = EPS,
        maximize: bool = False,
        foreach: bool = False,
    ) -> None:
        """Make the state of all parameters; ValueError for what cannot be trained."""
        defaults = {
            "lr": lr,
            "betas": betas,
            "alpha": alpha,
            "frequency": frequency,
            "eps": eps,
            "poly": poly,
            "ns_eps": ns_eps,
            "maximize": maximize,
            "foreach": foreach,
        }
        super().__init__(params, defaults)

    def _check(self, group: Group) -> None:
        in_range(group, "lr", 0.0)
        in_range(group, "alpha", 0.0)
        in_range(group, "eps", 0.0)
        if len(group["betas"]) != 3 or not all(
            0.0 <= beta < float("inf") for beta in group["betas"]
        ):
            raise ValueError(f"betas: got {group['betas']}, expected three numbers of 0 or more")
        if not isinstance(group["frequency"], int) or group["frequency"] < 1:
            raise ValueError(f"frequency: got {group['frequency']!r}, expected a whole number >= 1")
        if group["poly"] != "none":
            polynomial(group["poly"])

    def _start(self, param: Tensor, group: Group) -> State:
        return {"step": 0, **{key: zeros(param) for key in ("M1", "M2", "V", "S", "O2")}}

    def _step_group(self, group: Group) -> None:
        if group["frequency"] > 1 and _capturing():
            raise RuntimeError(
                "M3 counts its steps on the host, and a CUDA graph would repeat one of them: "
                "step outside the graph, or with frequency=1"
            )
        super()._step_group(group)

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        sums = state["M1"], state["V"], state["S"], state["O2"]
        betas, lr, alpha, eps = group["betas"], rate(group), group["alpha"], group["eps"]
        poly, ns_eps = group["poly"], group["ns_eps"]
        if isinstance(lr, Tensor):
            step = m3_direction(*sums, grad, betas[:2], alpha, eps, poly, ns_eps)
            add_(param, -lr * step)
        else:
            m3_(param, *sums, grad, betas[:2], alpha, lr, eps, poly=poly, ns_eps=ns_eps)
        self._count(state, group)

    def _update_many(
        self, params: list[Tensor], grads: list[Tensor], states: list[State], group: Group
    ) -> None:
        if not params:
            return
        M1, V, S, O2 = ([state[key] for state in states] for key in ("M1", "V", "S", "O2"))
        beta1, beta2, _ = group["betas"]
        grads = [grad.to(m.dtype) for grad, m in zip(grads, M1, strict=True)]
        torch._foreach_add_(M1, grads, alpha=beta1)
        torch._foreach_addcmul_(V, grads, grads, value=beta2)
        torch._foreach_add_(S, grads)
        steps = torch._foreach_mul(O2, group["alpha"])
        stacked = in_stacks(lambda m: [self._orthogonal(m, group)], M1)
        torch._foreach_add_(steps, [step for (step,) in stacked])
        below = torch._foreach_sqrt(V)
        torch._foreach_add_(below, group["eps"])
        torch._foreach_div_(steps, below)
        torch._foreach_mul_(steps, rate(group))
        for param, step, state in zip(params, steps, states, strict=True):
            add_(param, -step)
            self._count(state, group)

    def _orthogonal(self, m: Tensor, group: Group) -> Tensor:
        if group["poly"] == "none":
            return m
        return newton_schulz(m, poly=group["poly"], eps=group["ns_eps"])

    def _count(self, state: State, group: Group) -> None:
        """Count a step, and move the slow momentum when it is due."""
        state["step"] += 1
        if state["step"] % group["frequency"] == 0:
            poly, ns_eps = group["poly"], group["ns_eps"]
            m3_slow_(
                state["M2"], state["S"], state["O2"], group["betas"][2], poly=poly, ns_eps=ns_eps
            )


def _capturing() -> bool:
    return (
        not torch.compiler.is_compiling()
        and torch.cuda.is_available()
        and torch.cuda.is_current_stream_capturing()
    )
