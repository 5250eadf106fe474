"""What a linear layer saw and was told: inputs x, and gradients u = dL/dy of its outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass
class _Call:
    """One forward call of a layer; the backward pass brings the second half."""

    layer: nn.Linear
    inputs: Tensor
    surprise: Tensor | None = None


class LayerCapture:
    """Keeps x and u of every call of some `nn.Linear` layers between two steps.

    Make it before the first forward pass, and after `fully_shard` where that is used. Calls that
    autograd does not record (evaluation) are not kept; calls that a backward pass did not reach
    are left out. Holds what autograd holds anyway, until `clear`. Register hooks only: the layers
    compute as before.
    """

    def __init__(self, module: nn.Module, only: Iterable[nn.Linear] | None = None) -> None:
        """Hook the linear layers of a module, or some of them; ValueError where there are none."""
        layers = [item for item in module.modules() if isinstance(item, nn.Linear)]
        if only is not None:
            wanted = {id(item) for item in only}
            layers = [item for item in layers if id(item) in wanted]
        if not layers:
            raise ValueError("LayerCapture: the module has no nn.Linear among those asked for")
        self._layers = layers
        self._calls: list[_Call] = []  # in the order of the forward passes
        self._hooks = [
            layer.register_forward_hook(self._seen, with_kwargs=True) for layer in layers
        ]

    def weights(self) -> list[Tensor]:
        """Return the layers' weights, each once; biases are another optimizer's."""
        return list({id(layer.weight): layer.weight for layer in self._layers}.values())

    def rows(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return X (B, d_in) and U (B, d_out) of a weight, in the order of the forward calls.

        All leading dimensions of a call are rows. Raises KeyError for a weight that is not
        captured, RuntimeError where no call of it was differentiated.
        """
        if all(layer.weight is not weight for layer in self._layers):
            raise KeyError("the weight is not one of the captured layers'")
        pairs = [
            (call.inputs.flatten(0, -2), call.surprise.flatten(0, -2))
            for call in self._calls
            if call.layer.weight is weight and call.surprise is not None
        ]
        if not pairs:
            raise RuntimeError(
                f"no call of the layer with weight {tuple(weight.shape)} was differentiated since "
                "the last step: make the LayerCapture before the forward pass, and leave out "
                "layers whose weight is used without a call, as by nn.MultiheadAttention"
            )
        return torch.cat([x for x, _ in pairs]), torch.cat([u for _, u in pairs])

    def clear(self) -> None:
        """Forget all calls."""
        self._calls.clear()

    def remove(self) -> None:
        """Take the hooks off the layers again."""
        for hook in self._hooks:
            hook.remove()
        self.clear()

    def _seen(
        self, layer: nn.Linear, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor
    ) -> None:
        if not output.requires_grad:
            return
        inputs = (args[0] if args else kwargs["input"]).detach()
        call = _Call(layer, inputs.unsqueeze(0) if inputs.ndim == 1 else inputs)
        self._calls.append(call)

        def keep(gradient: Tensor) -> None:
            surprise = gradient.detach()
            call.surprise = surprise.unsqueeze(0) if surprise.ndim == 1 else surprise

        output.register_hook(keep)
