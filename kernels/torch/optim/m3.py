"""M3: two momenta of different frequency, orthogonalised, over a sum of squares."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from trueup.kernels.torch.ops.m3 import m3_, m3_direction, m3_slow_
from trueup.kernels.torch.ops.orthogonal import EPS, polynomial
from trueup.kernels.torch.optim.matrices import (
    Group,
    MatrixOptimizer,
    State,
    add_,
    in_range,
    zeros,
)


class M3(MatrixOptimizer):
    """Multi-scale momentum with orthogonalisation: preprint Algorithm 1, in two transcriptions.

        M1 += beta1 g;  V += beta2 g*g;  S += g
        W -= lr (NS(M1) + alpha O2) / (sqrt(V) + eps)
        every `frequency` steps:  M2 += beta3 S;  S = 0;  O2 = NS(M2), used from the next step
    Sums, not moving averages: nothing is forgotten, and V only grows. Args: params, matrices; lr;
    betas (beta1, beta2, beta3); alpha, weight of the slow momentum; frequency, in steps; eps; poly
    of the orthogonalisation, or `none` for the identity; ns_eps of its norm.
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

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        sums = state["M1"], state["V"], state["S"], state["O2"]
        betas, lr, alpha, eps = group["betas"], group["lr"], group["alpha"], group["eps"]
        poly, ns_eps = group["poly"], group["ns_eps"]
        if isinstance(lr, Tensor):
            step = m3_direction(*sums, grad, betas[:2], alpha, eps, poly, ns_eps)
            add_(param, -lr * step)
        else:
            m3_(param, *sums, grad, betas[:2], alpha, lr, eps, poly=poly, ns_eps=ns_eps)
        state["step"] += 1
        if state["step"] % group["frequency"] == 0:
            m3_slow_(state["M2"], state["S"], state["O2"], betas[2], poly=poly, ns_eps=ns_eps)
