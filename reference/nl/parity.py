"""What N ranks must give that hold parts of a batch, compared with one process."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from trueup.reference.errors import BadInputs
from trueup.reference.symbols import F64


def token_weighted(values: Sequence[F64 | float], tokens: Sequence[int]) -> F64:
    """Reduce local means to the mean over all active tokens: sum_r n_r v_r / sum_r n_r.

    For gradients, losses and momentum increments. A rank without active tokens has weight 0, and
    what its mean holds (NaN, from 0 / 0) does not matter. Raises BadInputs if there is none at all.
    """
    total = sum(tokens)
    if total < 1 or len(values) != len(tokens) or min(tokens) < 0:
        raise BadInputs(
            "a mean over tokens needs tokens",
            where="token_weighted",
            got=f"{len(values)} values, tokens {list(tokens)}",
            expected="one count of 0 or more for each value, not all 0",
        )
    parts = [
        np.asarray(value, dtype=np.float64) * (count / total)
        for value, count in zip(values, tokens, strict=True)
        if count
    ]
    return np.asarray(sum(parts))


def perplexity(losses: Sequence[float], tokens: Sequence[int]) -> float:
    """Give exp of the token-weighted mean loss; a mean of perplexities is another number."""
    return math.exp(float(token_weighted(list(losses), tokens)))


def clip_by_norm(gradient: F64, largest: float) -> F64:
    """Scale a gradient to a Frobenius norm of at most ``largest``.

    The norm is that of the reduced gradient: clipping the ranks' own gradients and then taking
    their mean gives another direction.
    """
    norm = float(np.sqrt(np.sum(gradient * gradient)))
    return gradient * min(1.0, largest / norm) if norm > 0.0 else gradient


def chunk_weights(lengths: Sequence[int]) -> tuple[float, ...]:
    """Weigh per-chunk mean losses so that they sum to the token mean: n_c / sum n."""
    total = sum(lengths)
    return tuple(length / total for length in lengths)


def supervised_pairs(tokens: int, chunk: int, *, boundary_targets: bool = True) -> int:
    """Count next-token pairs of a sequence fed in chunks.

    With boundary targets (or overlapping chunks) all ``tokens - 1`` pairs are supervised. Without,
    every chunk's last position loses its target: ``tokens - ceil(tokens / chunk)`` remain.
    """
    if boundary_targets:
        return max(tokens - 1, 0)
    return tokens - math.ceil(tokens / chunk)
