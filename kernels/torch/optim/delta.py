"""DeltaMomentum: Eq. 22 with the full gradient of each matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.momentum import (
    DELTA_READINGS,
    delta_momentum_,
    next_delta_momentum,
)
from trueup.kernels.torch.ops.registry import one_of, wide
from trueup.kernels.torch.optim.matrices import (
    Group,
    MatrixOptimizer,
    State,
    add_,
    in_range,
    rate,
    zeros,
)


class DeltaMomentum(MatrixOptimizer):
    """Momentum that forgets by the delta rule: Nested Learning, Eq. 21-22, corrected.

        m <- m (alpha I - eta g^T g) - eta P g,    W <- W + m
    Args: params, matrices (d_out, d_in); lr, eta, a number or a one-element tensor; momentum,
    alpha in [0, 1]; reading, one of the catalogue's (`trueup equations nl.delta_momentum`);
    maximize, ascend instead; foreach, element-wise parts for all matrices in one launch.
    Stable while eta sigma_max(g)^2 < 1 + alpha. P is the identity unless `set_preconditioner`
    gives another.
    """

    _optional = frozenset({"P"})

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-2,
        momentum: float = 0.9,
        *,
        reading: str = "derived",
        maximize: bool = False,
        foreach: bool = False,
    ) -> None:
        """Make the state of all parameters; ValueError for what cannot be trained."""
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "reading": reading,
            "maximize": maximize,
            "foreach": foreach,
        }
        super().__init__(params, defaults)

    def set_preconditioner(self, param: Tensor, P: Tensor | None) -> None:
        """Set P (d_out, d_out) of a parameter from now on; None is the identity.

        P is part of the state dict. Raises ValueError for another shape, KeyError for a parameter
        that is not this optimizer's.
        """
        if param not in self.state:
            raise KeyError("the parameter is not one of this optimizer's")
        state = self.state[param]
        if P is None:
            state.pop("P", None)
            return
        if tuple(P.shape) != (param.shape[0], param.shape[0]):
            raise ValueError(
                f"P: got {tuple(P.shape)}, expected {(param.shape[0], param.shape[0])}"
            )
        state["P"] = P.detach().to(device=param.device, dtype=state["m"].dtype, copy=True)

    def _check(self, group: Group) -> None:
        in_range(group, "lr", 0.0)
        in_range(group, "momentum", 0.0, 1.0)
        one_of("reading", group["reading"], DELTA_READINGS)
        for param in group["params"]:
            if group["reading"] == "literal_left" and param.shape[0] != param.shape[-1]:
                raise ValueError(f"literal_left needs square matrices, got {tuple(param.shape)}")

    def _start(self, param: Tensor, group: Group) -> State:
        return {"m": zeros(param)}

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        m, P, eta = state["m"], state.get("P"), rate(group)
        if isinstance(eta, Tensor):  # stays on its device: no synchronisation, capturable
            grad = grad.to(m.dtype)
            m.copy_(next_delta_momentum(m, grad, P, group["momentum"], eta, group["reading"]))
            add_(param, m)
        else:
            alpha = group["momentum"]
            delta_momentum_(m, param, grad, alpha, eta, P, reading=group["reading"])

    def _update_many(
        self, params: list[Tensor], grads: list[Tensor], states: list[State], group: Group
    ) -> None:
        if group["reading"] != "derived" or not params:
            super()._update_many(params, grads, states, group)
            return
        steps = []
        for grad, state in zip(grads, states, strict=True):
            m, P = state["m"], state.get("P")
            grad = grad.to(m.dtype)
            residual = m @ grad.mT
            if P is None:
                residual.diagonal().add_(1)
            else:
                residual.add_(P)
            steps.append(residual @ grad)
        momenta = [state["m"] for state in states]
        torch._foreach_mul_(momenta, group["momentum"])
        torch._foreach_mul_(steps, rate(group))
        torch._foreach_sub_(momenta, steps)
        if all(wide(param) is param for param in params):
            torch._foreach_add_(params, momenta)
        else:
            for param, m in zip(params, momenta, strict=True):
                add_(param, m)
