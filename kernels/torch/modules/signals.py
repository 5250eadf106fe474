"""Error signals dL/dy of a stream, and the keys under which a level's telemetry is told."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from trueup.kernels.torch.modules.levels import Counters, MemoryLevel

ErrorSignal = Callable[[Tensor, int, int], Tensor]


def error_of(loss: Callable[[Tensor, int, int], Tensor]) -> ErrorSignal:
    """Make the error signal dL/dy of a loss that is a function of (y, start, stop)."""

    def signal(y: Tensor, start: int, stop: int) -> Tensor:
        with torch.enable_grad():
            leaf = y.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(loss(leaf, start, stop), leaf)
        return gradient

    return signal


def signal_of(
    error: Tensor | ErrorSignal, start: int, stop: int, ndim: int
) -> Tensor | Callable[[Tensor], Tensor]:
    """Give the error signal of a segment (N, n, d), or the function of its y that gives it."""
    if isinstance(error, Tensor):
        batched = error if ndim == 3 else error.unsqueeze(0)
        return batched[:, start:stop]

    def at(y: Tensor) -> Tensor:
        seen = y if ndim == 3 else y.squeeze(0)
        delta = error(seen, start, stop)
        if not isinstance(delta, Tensor) or delta.shape != seen.shape:
            got = tuple(delta.shape) if isinstance(delta, Tensor) else type(delta).__name__
            raise ValueError(f"error signal: got {got}, expected {tuple(seen.shape)}")
        return delta if ndim == 3 else delta.unsqueeze(0)

    return at


def keys_of(prefix: str, level: MemoryLevel, new: Counters) -> dict[str, float | int]:
    """Give a level's keys of a telemetry row: its signals, and what it newly counted."""
    row: dict[str, float | int] = {
        f"{prefix}.grad_norm": float(level.grad_norm),
        f"{prefix}.chunk_tokens": new.consumed,
        f"{prefix}.gate_hit": new.updates,
        f"{prefix}.gate_hits": new.updates,
        f"{prefix}.updates_applied": new.updates,
        f"{prefix}.tokens_flushed": new.flushed,
        f"{prefix}.pending_tokens": level.kept.count,
        f"{prefix}.tokens_dropped": new.dropped,
        f"{prefix}.tokens_gated": new.gated,
        f"{prefix}.tokens_masked": new.masked,
    }
    surprise = level.blocked if level.surprise is None else level.surprise
    if surprise is not None:
        row[f"{prefix}.surprise_value"] = float(surprise)
    return row
