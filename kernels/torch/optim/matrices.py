"""What the optimizers share: matrices only, state from the start, sharded parameters re-formed."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trueup.kernels.torch.ops.registry import number, wide
from trueup.kernels.torch.parallel.shards import is_sharded, reshard_, whole

Group = dict[str, Any]
State = dict[str, Any]


class MatrixOptimizer(torch.optim.Optimizer):
    """An optimizer of 2-D parameters (d_out, d_in).

    A parameter that is no floating matrix is rejected when its group is added (ValueError), a
    sparse gradient at the step (RuntimeError). State is made when a group is added, in float32
    where the parameter is stored in 16 bits, and a state dict brings it back bit by bit. Sharded
    parameters (DTensor, as `fully_shard` makes them) are re-formed to whole matrices, updated and
    sharded again: the equations are not shard-wise. Steps are not differentiable.
    """

    _optional: frozenset[str] = frozenset()
    """Keys of a parameter's state that it may lack."""

    def add_param_group(self, param_group: Group) -> None:
        """Add a group; ValueError for a bad hyper-parameter or a parameter that is no matrix."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        try:
            for param in group["params"]:
                _check_matrix(type(self).__name__, param)
            self._check(group)
        except Exception:
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
        """Load a state: on each parameter's device, in the dtype that a fresh state of it has.

        Options that the state dict does not know keep their defaults. Raises ValueError, and
        changes nothing, for another optimizer's state, other shapes and bad hyper-parameters.
        """
        kept = self._fitting(state_dict)
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            for name, value in self.defaults.items():
                group.setdefault(name, value)
        for param, tensors in kept.items():
            for key, saved in tensors.items():
                # The base class has rounded it to the parameter's dtype.
                self.state[param][key] = saved.to(
                    device=param.device, dtype=state_dtype(param), copy=True
                )

    def _fitting(self, state_dict: Mapping[str, Any]) -> dict[Tensor, State]:
        """Give the saved tensors of each parameter, or raise ValueError where they are not its."""
        kept: dict[Tensor, State] = {}
        for group, saved in zip(self.param_groups, state_dict["param_groups"], strict=False):
            pairs = list(zip(saved["params"], group["params"], strict=False))
            states = {param: state_dict["state"].get(place, {}) for place, param in pairs}
            for param, state in states.items():
                self._check_keys(param, state)
            options = {**self.defaults, **saved, "params": group["params"]}
            self._check(options)
            for param, state in states.items():
                self._check_shapes(param, state, options)
                kept[param] = {k: v for k, v in state.items() if isinstance(v, Tensor)}
        return kept

    def _check_keys(self, param: Tensor, state: State) -> None:
        expected, found = (keys.keys() - self._optional for keys in (self.state[param], state))
        if found != expected:
            raise ValueError(
                f"{type(self).__name__}: the state of a parameter {tuple(param.shape)} holds "
                f"{', '.join(sorted(found)) or 'nothing'}, expected "
                f"{', '.join(sorted(expected)) or 'nothing'}: it is another optimizer's"
            )

    def _check_shapes(self, param: Tensor, state: State, group: Group) -> None:
        for key, value in self._start(param, group).items():
            if isinstance(value, Tensor) and state[key].shape != value.shape:
                raise ValueError(
                    f"{type(self).__name__}: {key} of a parameter {tuple(param.shape)} has the "
                    f"shape {tuple(state[key].shape)}, expected {tuple(value.shape)}"
                )

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


def in_stacks(
    function: Callable[..., Sequence[Tensor]], *matrices: list[Tensor]
) -> list[Sequence[Tensor]]:
    """Apply a function to stacks (N, ...) of several lists' tensors, one call for each kind.

    Tensors of one shape, dtype and device are of one kind. Gives what the function returns,
    unstacked, for each place of the lists.
    """
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for place, items in enumerate(zip(*matrices, strict=True)):
        kind = tuple((item.shape, item.dtype, item.device) for item in items)
        kinds.setdefault(kind, []).append(place)
    results: list[Sequence[Tensor]] = [()] * len(matrices[0])
    for places in kinds.values():
        stacks = function(*(torch.stack([item[place] for place in places]) for item in matrices))
        for place, result in zip(places, zip(*stacks, strict=True), strict=True):
            results[place] = result
    return results


def zeros(param: Tensor) -> Tensor:
    """Make a state of a parameter's shape: zero, in float32 where it is stored in 16 bits."""
    return torch.zeros_like(param, dtype=state_dtype(param), memory_format=torch.preserve_format)


def state_dtype(param: Tensor) -> torch.dtype:
    """Give the dtype of a parameter's state: its own, or float32 where it is stored in 16 bits."""
    return torch.float32 if param.dtype in (torch.float16, torch.bfloat16) else param.dtype


def in_range(group: Group, name: str, low: float, high: float | None = None) -> None:
    """Raise ValueError unless group[name] is a number from low to high; NaN is never in range.

    A tensor has one element, which is read where that costs no wait: on the CPU.
    """
    value = group[name]
    limits = f"{low:g} or more" if high is None else f"{low:g} to {high:g}"
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"{name}: got a tensor of {value.numel()} elements, expected one")
        if value.device.type != "cpu" or torch.compiler.is_compiling():
            return
        value = value.item()
    if not low <= number(value) <= (sys.float_info.max if high is None else high):
        raise ValueError(f"{name}: got {value!r}, expected {limits}")


def rate(group: Group) -> float | Tensor:
    """Give the learning rate: a number, or a tensor without dimensions, which promotes nothing."""
    lr = group["lr"]
    return lr.reshape(()) if isinstance(lr, Tensor) else lr


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
