"""MuonNS: Eq. 24 with a linear momentum and the Newton-Schulz non-linearity."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.muon import (
    SHAPE_FACTORS,
    muon_,
    muon_library_,
    orthogonal,
    rho,
)
from trueup.kernels.torch.ops.orthogonal import EPS, EPS_RULES, polynomial
from trueup.kernels.torch.ops.registry import one_of, wide
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

FORMS = ("equation", "library")


class MuonNS(MatrixOptimizer):
    """Orthogonalised momentum: Nested Learning, Eq. 24, the rate outside (form `equation`).

        m <- alpha m - g,    W <- W + eta NS(m)
    Form `library` is the rule of `torch.optim.Muon` (`MuonNS.library` makes it):
        m <- mu m + (1 - mu) g;   z = (1 - mu) g + mu m if nesterov, else m
        W <- (1 - lr wd) W - lr rho NS(z)
    Args: params, matrices; lr; momentum in [0, 1); poly `quintic5` or `cubicN`, eps and eps_rule
    of the iteration; narrow, iterate in bfloat16 as the library does; of the library form alone
    nesterov, weight_decay and shape_factor: `one`, `original`, sqrt(max(1, d_out / d_in)), or
    `match_rms_adamw`, 0.2 sqrt(max(d_out, d_in)); maximize; foreach, matrices of one shape
    orthogonalised as a stack.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        momentum: float = 0.95,
        *,
        form: str = "equation",
        nesterov: bool = False,
        weight_decay: float = 0.0,
        shape_factor: str = "one",
        poly: str = "quintic5",
        eps: float = EPS,
        eps_rule: str = "clamp",
        narrow: bool = True,
        maximize: bool = False,
        foreach: bool = False,
    ) -> None:
        """Make the state of all parameters; ValueError for what cannot be trained."""
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "form": form,
            "nesterov": nesterov,
            "weight_decay": weight_decay,
            "shape_factor": shape_factor,
            "poly": poly,
            "eps": eps,
            "eps_rule": eps_rule,
            "narrow": narrow,
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
            form="library",
            nesterov=nesterov,
            weight_decay=weight_decay,
            shape_factor=adjust_lr_fn or "original",
            **options,
        )

    def _check(self, group: Group) -> None:
        in_range(group, "lr", 0.0)
        in_range(group, "momentum", 0.0, 1.0)
        if group["momentum"] == 1.0:
            raise ValueError("momentum: got 1.0, expected less than 1")
        in_range(group, "weight_decay", 0.0)
        in_range(group, "eps", 0.0)
        polynomial(group["poly"])
        one_of("form", group["form"], FORMS)
        one_of("eps_rule", group["eps_rule"], EPS_RULES)
        one_of("shape_factor", group["shape_factor"], SHAPE_FACTORS)
        extra = group["nesterov"] or group["weight_decay"] or group["shape_factor"] != "one"
        if group["form"] == "equation" and extra:
            raise ValueError(
                "Eq. 24 has no nesterov, weight_decay or shape_factor: got one of them, which "
                "form='library' takes"
            )

    def _start(self, param: Tensor, group: Group) -> State:
        return {"m": zeros(param)}

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        m, lr, mu = state["m"], rate(group), group["momentum"]
        if isinstance(lr, Tensor):
            self._move(param, self._orthogonal(self._read(m, grad, group), group), group)
            return
        options = {name: group[name] for name in ("poly", "eps", "eps_rule", "narrow")}
        if group["form"] == "equation":
            muon_(m, param, grad, mu, lr, **options)
        else:
            options |= {"nesterov": group["nesterov"], "shape_factor": group["shape_factor"]}
            muon_library_(m, param, grad, mu, lr, group["weight_decay"], **options)

    def _update_many(
        self, params: list[Tensor], grads: list[Tensor], states: list[State], group: Group
    ) -> None:
        if not params:
            return
        momenta = [state["m"] for state in states]
        read = self._read_many(momenta, grads, group)
        steps = in_stacks(lambda stack: [self._orthogonal(stack, group)], read)
        for param, (step,) in zip(params, steps, strict=True):
            self._move(param, step, group)

    def _read(self, m: Tensor, grad: Tensor, group: Group) -> Tensor:
        """Move the momentum in place, and give what NS is taken of."""
        return self._read_many([m], [grad], group)[0]

    def _read_many(self, momenta: list[Tensor], grads: list[Tensor], group: Group) -> list[Tensor]:
        mu = group["momentum"]
        grads = [grad.to(m.dtype) for grad, m in zip(grads, momenta, strict=True)]
        if group["form"] == "equation":
            torch._foreach_mul_(momenta, mu)
            torch._foreach_sub_(momenta, grads)
            return momenta
        torch._foreach_lerp_(momenta, grads, 1 - mu)
        read: list[Tensor] = torch._foreach_lerp(grads, momenta, mu)
        return read if group["nesterov"] else momenta

    def _orthogonal(self, z: Tensor, group: Group) -> Tensor:
        return orthogonal(z, group["poly"], group["eps"], group["eps_rule"], group["narrow"])

    def _move(self, param: Tensor, step: Tensor, group: Group) -> None:
        step = step.to(wide(param).dtype)
        lr = rate(group)
        if group["form"] == "equation":
            add_(param, lr * step)
            return
        if group["weight_decay"]:
            param.mul_(1 - lr * group["weight_decay"])
        add_(param, -lr * rho(group["shape_factor"], param) * step)
