"""Continuum memory systems as found in the wild: each is not Eq. 30-31, and says in what.

The letters are those of the table of unfaithful implementations; a test of `test_cms_mutants.py`
kills each one, with the faithful computation beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup.reference.nl.cms_stream import CmsStream


def u8_clock_updates(tokens: int, period: int) -> list[int]:
    """Cadence by a clock gate whose first call always updates; a call is a token, from 0."""
    last, updated = None, []
    for call in range(tokens):
        if last is None or call - last >= period:
            last = call
            updated.append(call)
    return updated


def u12_differentiable_write(W: Any, momentum: Any, G: Any, eta: float, beta: float) -> Any:
    """The differentiable mode steps plainly where the ordinary mode has an EMA of gradients."""
    return W - eta * G


def u13_outer_gradient(means: Sequence[Any], lengths: Sequence[int]) -> Any:
    """Chunked training adds the gradients of per-chunk *mean* losses, unweighted."""
    return sum(means)


def u14_pairs(tokens: int, chunk: int) -> list[tuple[int, int]]:
    """Next-token pairs of chunks that do not overlap and know no target beyond their end."""
    pairs = []
    for start in range(0, tokens, chunk):
        stop = min(start + chunk, tokens)
        pairs += [(t, t + 1) for t in range(start, stop - 1)]
    return pairs


def u15_shared_fast_state(theta: float, X: Any, V: Any, eta: float) -> list[float]:
    """One fast state for the batch: every sequence writes into it. X, V are (batch, tokens)."""
    for x, v in zip(X, V, strict=True):
        for a, b in zip(x, v, strict=True):
            theta -= eta * (theta * a - b) * a
    return [theta] * len(X)


def u16_shaped_step(W: Any, x: Any, delta: Any, eta: float) -> Any:
    """Eq. 28 claimed; only the gradient, by a surrogate that leaves a factor 2 in."""
    return W - eta * 2.0 * np.outer(delta, x)


class U23Stream(CmsStream):
    """A fully masked full chunk still calls the inner optimiser, with a zero gradient."""

    def _update(self, place: int, *, flushed: bool) -> None:
        level = self.levels[place]
        if any(level.active) or flushed:
            super()._update(place, flushed=flushed)
            return
        level.counters.masked += len(level.pop()[2])
        level.momentum = level.beta * level.momentum
        level.theta = level.theta - level.eta * level.momentum


def u24_shared_momentum(
    thetas: Sequence[float], gradients: Sequence[Sequence[float]], eta: float, beta: float
) -> list[float]:
    """The inner optimiser keys its momentum by parameter name: all samples share it.

    ``gradients`` holds each update's gradients, one for each sample.
    """
    buffers: dict[str, float] = {}
    state = list(thetas)
    for update in gradients:
        for sample, g in enumerate(update):
            buffers["weight"] = beta * buffers.get("weight", 0.0) + g
            state[sample] -= eta * buffers["weight"]
    return state


def u26_errors_seen(periods: Sequence[int], calls: Sequence[Sequence[int]]) -> list[list[int]]:
    """The loop over levels reuses the name of the call's error signal for what it has popped.

    Every later level stores the previous level's popped errors, as many as it has inputs. Returns
    the errors that each level used in its updates; a call is a list of error signals, at most as
    long as the shortest period.
    """
    kept: list[list[int]] = [[] for _ in periods]
    counts = [0] * len(periods)
    used: list[list[int]] = [[] for _ in periods]
    for call in calls:
        errors = list(call)
        for place, period in enumerate(periods):
            counts[place] += len(call)
            kept[place] += errors[: len(call)]
            while counts[place] >= period:
                counts[place] -= period
                errors, kept[place] = kept[place][:period], kept[place][period:]
                used[place] += errors
    return used


def u27_steps(terms: Any, active: Any) -> Any:
    """Each sample's own step from (batch, tokens, width), by a denominator of the whole batch.

    With an active token in every sample: batch x tokens x width. Otherwise: the active tokens.
    """
    total = np.where(active[..., None], terms, 0.0).sum(axis=1)
    if active.any(axis=1).all():
        return total / terms.size
    return total / max(int(active.sum()), 1)


def u28_forked_momentum(
    thetas: Sequence[float],
    gradients: Sequence[Sequence[float | None]],
    eta: float,
    beta: float,
) -> list[float]:
    """Momentum under one flat key when all samples are active, under names otherwise.

    A change of the mask pattern (a gradient of None) forks the history.
    """
    flat = [0.0] * len(thetas)
    named = [0.0] * len(thetas)
    state = list(thetas)
    for update in gradients:
        buffers = flat if all(g is not None for g in update) else named
        for sample, g in enumerate(update):
            if g is not None:
                buffers[sample] = beta * buffers[sample] + g
                state[sample] -= eta * buffers[sample]
    return state
