"""Sums written as loops: what `a + b + c + …` has added so far, element by element.

One addition knows only its two operands. A sum kept in a loop may be taken in another order by
the kernel, and partial sums that are exact in the reference's order need not be in the kernel's.
So each result of an addition remembers how many terms it holds, their squares, their magnitudes
and their lowest bit. Any other operation starts again at one term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.formats import lowest_bit

Array = NDArray[Any]


@dataclass(frozen=True)
class Chain:
    """Terms added so far: their number, sum of squares, sum of magnitudes, lowest bit, errors.

    `low` is 0 where the terms are not known to be exact.
    """

    count: Array
    squares: Array
    sizes: Array
    low: Array
    errors: Array

    def join(self, other: Chain) -> Chain:
        """The chain of the sum of two chains."""
        return Chain(
            self.count + other.count,
            self.squares + other.squares,
            self.sizes + other.sizes,
            np.minimum(self.low, other.low),
            self.errors + other.errors,
        )

    def map(self, view: Callable[[Array], Array]) -> Chain:
        """The chain with every field taken through `view`."""
        return Chain(
            view(self.count),
            view(self.squares),
            view(self.sizes),
            view(self.low),
            view(self.errors),
        )

    def expanded(self, shape: tuple[int, ...]) -> Chain:
        """The chain with every field of this shape, to be read."""
        fields = (self.count, self.squares, self.sizes, self.low, self.errors)
        if all(field.shape == shape for field in fields):
            return self
        return self.map(lambda field: np.broadcast_to(field, shape))

    def broadcast(self, shape: tuple[int, ...]) -> Chain:
        """The chain with every field of this shape, writable."""
        return self.map(lambda field: np.broadcast_to(field, shape).copy())

    def write(self, key: Any, value: Chain) -> None:
        """Replace the elements under `key`."""
        self.count[key] = value.count
        self.squares[key] = value.squares
        self.sizes[key] = value.sizes
        self.low[key] = value.low
        self.errors[key] = value.errors


class Lazy:
    """A chain worked out only when another addition asks for it."""

    __slots__ = ("_chain", "_make")

    def __init__(self, make: Callable[[], Chain]) -> None:
        """Put `make` off."""
        self._make: Callable[[], Chain] | None = make
        self._chain: Chain | None = None

    def get(self) -> Chain:
        """The chain, worked out once."""
        if self._chain is None:
            make = self._make
            if make is None:
                raise RuntimeError("a lazy chain lost its maker")
            self._chain, self._make = make(), None
        return self._chain


class Written:
    """The chain of an array written part by part; the parts are put off like lazy chains."""

    __slots__ = ("_chain", "_parts", "_shape", "_start")

    def __init__(self, start: Lazy, shape: tuple[int, ...]) -> None:
        """Start from a chain spread over `shape`."""
        self._start = start
        self._shape = shape
        self._chain: Chain | None = None
        self._parts: list[tuple[Any, Lazy]] = []

    def write(self, key: Any, value: Lazy) -> None:
        """Note that the elements under `key` now hold this chain."""
        self._parts.append((key, value))

    def get(self) -> Chain:
        """The chain, with all parts written so far."""
        if self._chain is None:
            self._chain = self._start.get().broadcast(self._shape)
        for key, value in self._parts:
            self._chain.write(key, value.get())
        self._parts.clear()
        return self._chain


def single(value: Array, exact: bool, error: Array | float) -> Chain:
    """One term. A zero is no term; `exact` says that it carries no error."""
    return Chain(
        (value != 0).astype(np.int64),
        value * value,
        np.abs(value),
        lowest_bit(value) if exact else np.zeros(value.shape),
        np.asarray(error, dtype=value.dtype),
    )
