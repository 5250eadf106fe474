"""DTensor parameters, as `fully_shard` makes them, re-formed to whole matrices and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is a DTensor, sharded or replicated over a mesh of ranks."""
    return type(tensor) not in (Tensor, torch.nn.Parameter) and isinstance(tensor, _dtensor())


def whole(tensor: Tensor) -> Tensor:
    """Return all of a tensor: a DTensor is gathered (and reduced), others come as they are."""
    if not is_sharded(tensor):
        return tensor
    full: Tensor = tensor.full_tensor()
    return full


def reshard_(target: Tensor, full: Tensor) -> None:
    """Write this rank's part of a whole tensor into `target`, without communication."""
    if not is_sharded(target):
        if target is not full:
            target.copy_(full)
        return
    mesh, placements = target.device_mesh, target.placements
    replicated = _dtensor().from_local(full, mesh, [_replicate()] * mesh.ndim, run_check=False)
    target.to_local().copy_(replicated.redistribute(mesh, placements).to_local())


def _dtensor() -> Any:
    from torch.distributed.tensor import DTensor

    return DTensor


def _replicate() -> Any:
    from torch.distributed.tensor import Replicate

    return Replicate()
