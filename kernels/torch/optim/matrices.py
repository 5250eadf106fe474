"""What the optimizers share: matrices only, state from the start, sharded parameters re-formed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from trueup.kernels.torch.ops.registry import wide
from trueup.kernels.torch.parallel.shards import is_sharded, reshard_, whole

Group = dict[str, Any]
State = dict[str, Any]


class MatrixOptimizer(torch.optim.Optimizer):
    """An optimizer of 2-D parameters (d_out, d_in).

    A parameter that is no floating matrix is rejected when its group is added (ValueError), a
    sparse gradient at the step (RuntimeError). State is made when a group is added, in float32
    where the parameter is stored in 16 bits, and a state dict brings it back bit by bit. Sharded
    parameters (DTensor, as `fully_shard` makes them) are re-formed to whole matrices, updated and
    sharded again: the equations are not shard-wise.
    """

    def add_param_group(self, param_group: Group) -> None:
        """Add a group; ValueError for a bad hyper-parameter or a parameter that is no matrix."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            for param in group["params"]:
                _check_matrix(type(self).__name__, param)
            self._check(group)
        except ValueError:
            self.param_groups.pop()
            raise
        for param in group["params"]:
            self.state[param] = self._start(param, group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step; a closure re-evaluates the model and returns the loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state; tensors keep the dtype they were saved with, wider than 16-bit weights."""
        super().load_state_dict(state_dict)
        places = [place for group in state_dict["param_groups"] for place in group["params"]]
        params = [param for group in self.param_groups for param in group["params"]]
        for place, param in zip(places, params, strict=True):
            for key, saved in state_dict["state"].get(place, {}).items():
                if isinstance(saved, Tensor) and self.state[param][key].dtype != saved.dtype:
                    self.state[param][key] = saved.to(device=param.device, copy=True)

    @abstractmethod
    def _check(self, group: Group) -> None:
        """Raise ValueError for a hyper-parameter that makes no sense."""

    @abstractmethod
    def _start(self, param: Tensor, group: Group) -> State:
        """Make the state of a parameter."""

    @abstractmethod
    def _update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """Update one whole matrix and its state in place."""

    def _update_many(
        self, params: list[Tensor], grads: list[Tensor], states: list[State], group: Group
    ) -> None:
        """Update several whole matrices: one after the other, unless a class does it together."""
        for param, grad, state in zip(params, grads, states, strict=True):
            self._update(param, grad, state, group)

    def _state_of(self, param: Tensor) -> State:
        """Give what `_update` is handed for a parameter."""
        state: State = self.state[param]
        return state

    def _step_group(self, group: Group) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        grads = [_dense(type(self).__name__, param.grad) for param in params]
        if group.get("maximize"):
            grads = [-grad for grad in grads]
        states = [self._state_of(param) for param in params]
        if any(is_sharded(param) for param in params):
            for param, grad, state in zip(params, grads, states, strict=True):
                self._update_whole(param, grad, state, group)
        elif group.get("foreach"):
            self._update_many(params, grads, states, group)
        else:
            for param, grad, state in zip(params, grads, states, strict=True):
                self._update(param, grad, state, group)

    def _update_whole(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """Re-form a sharded matrix and its state, update them, and keep this rank's shards."""
        matrix = whole(param)
        full = {
            key: whole(value) if isinstance(value, Tensor) else value
            for key, value in state.items()
        }
        self._update(matrix, whole(grad), full, group)
        reshard_(param, matrix)
        for key, value in full.items():
            if isinstance(value, Tensor):
                reshard_(state[key], value)
            else:
                state[key] = value


def split_parameters(
    module: nn.Module, *, but: Iterable[Tensor] = ()
) -> tuple[list[Tensor], list[Tensor]]:
    """Split a module's parameters into matrices and all others (biases, norms, convolutions).

    `but` are matrices that belong to the others, such as embeddings. The optimizers here take the
    first list; a library optimizer such as AdamW the second.
    """
    excluded = {id(param) for param in but}
    matrices: list[Tensor] = []
    others: list[Tensor] = []
    for param in module.parameters():
        matrix = param.ndim == 2 and id(param) not in excluded
        (matrices if matrix else others).append(param)
    return matrices, others


def zeros(param: Tensor) -> Tensor:
    """Make a state of a parameter's shape: zero, in float32 where it is stored in 16 bits."""
    return torch.zeros_like(param, dtype=_state_dtype(param), memory_format=torch.preserve_format)


def _state_dtype(param: Tensor) -> torch.dtype:
    return torch.float32 if param.dtype in (torch.float16, torch.bfloat16) else param.dtype


def in_range(group: Group, name: str, low: float, high: float | None = None) -> None:
    """Raise ValueError unless low <= group[name] <= high; NaN is never in range."""
    value = group[name]
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"{name}: got a tensor of {value.numel()} elements, expected one")
        return
    if not (value >= low and (high is None or value <= high)) or value == float("inf"):
        limits = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
        raise ValueError(f"{name}: got {value!r}, expected {limits}")


def add_(param: Tensor, step: Tensor) -> None:
    """Add a step to a parameter, in float32 where it is stored in 16 bits."""
    if param.dtype == step.dtype:
        param.add_(step)
    else:
        param.copy_(wide(param) + step)


def _check_matrix(name: str, param: Tensor) -> None:
    if param.ndim != 2:
        raise ValueError(
            f"{name} takes matrices (d_out, d_in): got a parameter of shape {tuple(param.shape)}; "
            "give it to another optimizer (split_parameters tells them apart)"
        )
    if not param.is_floating_point():
        raise ValueError(f"{name} takes real floating parameters: got {param.dtype}")


def _dense(name: str, grad: Tensor) -> Tensor:
    if grad.layout is not torch.strided:
        raise RuntimeError(
            f"{name} does not take sparse gradients (got {grad.layout}): "
            "make the embedding with sparse=False, or give it to another optimizer"
        )
    return grad
