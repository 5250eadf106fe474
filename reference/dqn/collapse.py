"""Minimal checks on a trained policy and its start: collapse, mixes of actions, initial weights.

Source: DQN programme, action factoring and the minimal checks. Each gives words for what is wrong,
none where nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trueup.reference.errors import BadInputs

Counts = NDArray[np.int64]
BRANCHES = {"direction": 4, "magnitude": 3, "order": 3, "urgency": 3}


def histogram(actions: NDArray[np.int64], size: int) -> Counts:
    """Count the actions of one branch; actions (B,). Raises `BadInputs` for one that is not."""
    if actions.size and not (int(actions.min()) >= 0 and int(actions.max()) < size):
        raise BadInputs(
            "no such action", where="histogram", got=f"{int(actions.min())}..{int(actions.max())}",
            expected=f"0..{size - 1}",
        )  # fmt: skip
    return np.bincount(actions, minlength=size)


def collapsed(counts: Counts, least: float = 0.5, most: float = 0.95) -> list[str]:
    """Find a branch whose entropy is below least ln b, or an action with a share above most."""
    total = int(counts.sum())
    if total == 0:
        return ["no action was counted"]
    share = counts / total
    entropy = -float(np.sum(share * np.log(np.where(share > 0, share, 1.0))))
    found = []
    if entropy < least * np.log(counts.size):
        found.append(f"entropy {entropy:.3f} is below {least} ln {counts.size}")
    if float(share.max()) > most:
        found.append(f"action {int(share.argmax())} has a share of {share.max():.3f}")
    return found


def mix_adds_up(percent: Sequence[float], rounding: float = 0.5) -> bool:
    """Tell whether printed percentages sum to 100, within the rounding of each class."""
    return abs(sum(percent) - 100.0) <= rounding * len(percent)


def producers_told(metrics: Sequence[tuple[str, str, str]]) -> list[str]:
    """Find metrics (name, producer, unit) with several producers, or without a unit."""
    by_name: dict[str, set[str]] = {}
    for name, producer, _ in metrics:
        by_name.setdefault(name, set()).add(producer)
    several = [f"{n}: produced by {', '.join(sorted(p))}" for n, p in by_name.items() if len(p) > 1]
    return several + [f"{name}: no unit" for name, _, unit in metrics if not unit.strip()]


def seed_fraction(seeded: int, stored: int) -> float:
    """Give the share of seeded transitions in the replay; 1 right after seeding, before step 0.

    Raises `BadInputs` for an empty replay, which was not seeded, and for more seeds than entries.
    """
    if not 0 <= seeded <= stored or stored == 0:
        raise BadInputs(
            "not a seeded replay", where="seed fraction", got=f"{seeded} of {stored}",
            expected="0 <= seeded <= stored, stored > 0",
        )  # fmt: skip
    return seeded / stored


def windows_in_order(train: NDArray[np.int64], validation: NDArray[np.int64]) -> bool:
    """Tell whether both windows are contiguous, and training ends before validation begins."""
    whole = all(bool(np.all(np.diff(part) == 1)) for part in (train, validation))
    both = bool(train.size and validation.size)
    return both and whole and bool(train[-1] < validation[0])


def is_xavier(weights: NDArray[np.float64], within: float = 0.05) -> bool:
    """Tell whether (out, in) weights have the variance 2 / (in + out), within 5 %.

    Raises `BadInputs` below 10^4 weights, where the variance itself scatters more.
    """
    if weights.ndim != 2 or weights.size < 10_000:
        raise BadInputs(
            "too few weights to judge", where="is_xavier", got=f"shape {weights.shape}",
            expected="two axes and 10000 weights or more",
        )  # fmt: skip
    want = 2.0 / (weights.shape[0] + weights.shape[1])
    return bool(abs(float(np.var(weights)) / want - 1.0) <= within)
