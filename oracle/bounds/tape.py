"""Decisions: which way each close comparison, rounding or choice is taken.

An evaluation takes one set of decisions, an *outcome*. Outcome 0 takes each the natural way;
where few are close the others go through every combination, else they flip all or a random half.
A tape can be replayed, so that more samples of the same outcome take the same decisions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import Unsupported

Array = NDArray[Any]


class Tape:
    """The decisions of one evaluation, in the order they came up."""

    def __init__(self, outcome: int = 0, *, every: bool = False, seed: int = 0) -> None:
        """Record `outcome`; `every`: it is one of all combinations."""
        self.outcome = outcome
        self.close = 0
        self.made = 0
        self.alternatives = 1.0
        self._digits = outcome if every else None
        self._rng = np.random.default_rng((seed, outcome))
        self._record: list[Array | None] = []
        self._next: int | None = None

    def replay(self) -> Tape:
        """The same tape, wound back, to be followed instead of written."""
        self._next = 0
        return self

    def choose(self, options: Array) -> Array | None:
        """The alternative taken per element (None: the natural one everywhere).

        `options` counts the alternatives; 1 means that the decision is clear.
        """
        if self._next is not None:
            return self._follow(options.shape)
        self.made += 1
        choice = self._choose(options)
        self._record.append(choice)
        return choice

    def _follow(self, shape: tuple[int, ...]) -> Array | None:
        at = self._next or 0
        if at >= len(self._record):
            raise Unsupported("the reference took another path when its decisions were repeated")
        self._next = at + 1
        choice = self._record[at]
        if choice is not None and choice.shape != shape:
            raise Unsupported("the reference took another path when its decisions were repeated")
        return choice

    def _choose(self, options: Array) -> Array | None:
        close = options > 1
        count = int(np.count_nonzero(close))
        if count == 0:
            return None
        self.close += count
        some = options[close]
        self.alternatives = min(self.alternatives * float(np.prod(some.astype(float))), 1e300)
        choice = np.zeros(options.shape, dtype=np.int64)
        if self.outcome:
            choice[close] = self._pick(some.astype(np.int64))
        return choice if choice.any() else None

    def _pick(self, options: Array) -> Array:
        if self._digits is not None:
            picked = np.zeros(options.shape, dtype=np.int64)
            for i, radix in enumerate(options.tolist()):
                self._digits, picked[i] = divmod(self._digits, radix)
                if not self._digits:
                    break
            return picked
        if self.outcome == 1:
            return np.ones(options.shape, dtype=np.int64)
        other = self._rng.integers(1, options)
        half: Array = np.where(self._rng.random(options.shape) < 0.5, 0, other)
        return half
