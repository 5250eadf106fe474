"""ProjectedDescent: Eq. 28, which needs a layer's inputs beside its gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from trueup.kernels.torch.ops.descent import (
    BATCH_READINGS,
    READINGS,
    coefficients,
    gradient_scale,
    projected_descent_chunk_,
)
from trueup.kernels.torch.ops.registry import one_of, wide
from trueup.kernels.torch.optim.capture import LayerCapture
from trueup.kernels.torch.optim.matrices import Group, MatrixOptimizer, State, in_range, rate
from trueup.kernels.torch.parallel.reduce import Ranks, gather_rows, ranks_of, sum_over

ORDERS = ("batch", "tokens")
REDUCTIONS = ("sum", "mean")


class ProjectedDescent(MatrixOptimizer):
    """Descent on 1/2 |W x + u|^2 with u held fixed: Nested Learning, Eq. 27-29, corrected.

        W <- W (I - eta sum_b x_b x_b^T) - eta G         (`derived`, order `batch`)
    G is the parameter's gradient as it is at the step: reduced over ranks, unscaled by a
    GradScaler, clipped. The inputs come from `capture`. Not plain descent: a zero gradient still
    makes W smaller along x, and repeating one sample does not converge to its target.

    Args: params, weights of captured layers (`capture.weights()`); capture; lr, eta; reading, one
    of `trueup equations nl.projected_descent` (order `batch`: derived, prox and the two printed
    objectives); order, `batch`, or `tokens` for one step after the other in the order of the rows;
    batch, `sum`, or `mean` over the B rows: the decay is divided by B (the gradient of a mean loss
    is already); group, the process group whose ranks share the weights, or "local" where every
    rank trains its own. With several processes and no group the step raises RuntimeError.
    """

    def __init__(
        self,
        params: Any,
        capture: LayerCapture,
        lr: float | Tensor = 1e-2,
        *,
        reading: str = "derived",
        order: str = "batch",
        batch: str = "sum",
        group: Any = None,
    ) -> None:
        """Keep the capture; ValueError for an option or a weight that does not fit."""
        self.capture = capture
        self._ranks = group
        captured = {id(weight) for weight in capture.weights()}
        defaults = {"lr": lr, "reading": reading, "order": order, "batch": batch}
        super().__init__(params, defaults)
        for param in (param for item in self.param_groups for param in item["params"]):
            if id(param) not in captured:
                raise ValueError(
                    f"a parameter of shape {tuple(param.shape)} is no weight of a captured layer"
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step, and forget the captured calls."""
        loss = super().step(closure)
        self.capture.clear()
        return loss

    def __getstate__(self) -> dict[str, Any]:
        """Give what a copy or a pickle needs: the base class knows no capture.

        A copy of the model and the optimizer in one (`copy.deepcopy((model, optimizer))`) belongs
        together: the copy's capture is hooked to the copied layers.
        """
        return {**super().__getstate__(), "capture": self.capture, "_ranks": self._ranks}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients, and forget the captured calls."""
        super().zero_grad(set_to_none)
        self.capture.clear()

    def _check(self, group: Group) -> None:
        in_range(group, "lr", 0.0)
        one_of("order", group["order"], ORDERS)
        one_of("batch", group["batch"], REDUCTIONS)
        one_of("reading", group["reading"], READINGS)
        if group["order"] == "batch" and group["reading"] not in BATCH_READINGS:
            raise ValueError(
                f"reading {group['reading']} is defined for one sample: use order='tokens', or one "
                f"of {', '.join(BATCH_READINGS)}"
            )
        if group["order"] == "tokens" and group["batch"] == "mean":
            raise ValueError("batch='mean' is of the batch form: tokens in turn have no mean")

    def _start(self, param: Tensor, group: Group) -> State:
        return {}

    def _state_of(self, param: Tensor) -> State:
        X, U = (rows.to(wide(param).dtype) for rows in self.capture.rows(param))
        return {"rows": (X, U), "ranks": ranks_of(self._ranks, "ProjectedDescent")}

    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        (X, U), ranks = state["rows"], state["ranks"]
        W = wide(param)
        grad = grad.to(W.dtype)
        if group["order"] == "tokens":
            X, U = gather_rows(X, ranks), gather_rows(U, ranks)
            U = U * gradient_scale(grad, U.mT @ X)
            projected_descent_chunk_(param, X, U, rate(group), reading=group["reading"])
        else:
            param.copy_(_together(W, grad, X, ranks, group))


def _together(W: Tensor, grad: Tensor, X: Tensor, ranks: Ranks, group: Group) -> Tensor:
    eta, count = rate(group), float(X.shape[0])
    single = ranks.size == 1
    if group["batch"] == "mean" and not single:
        count = float(sum_over(X.new_tensor(count), ranks))
    share = 1 / count if group["batch"] == "mean" else 1.0
    if group["reading"] == "prox":
        gram = eta * share * sum_over(X.mT @ X, ranks)
        gram.diagonal().add_(1)
        # (W - eta G) (I + eta X^T X)^{-1}; the matrix is symmetric.
        return torch.linalg.solve(gram, (W - eta * grad).mT).mT
    c, b = coefficients(eta, X.new_zeros(()), group["reading"])
    read = (X @ W.mT).mT @ X if single else W @ sum_over(X.mT @ X, ranks)
    return W - c * share * read - b * grad
