"""Slices of the parameter vector: half-open ranges that stand for branches."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trueup.reference.symbols import F64, Scalar

Places: TypeAlias = NDArray[Any]
"""Whole numbers or truth values."""


def inside(size: int, bounds: F64) -> Places:
    """Tell which of ``size`` places lie in a range [start, end); bounds (2,), whole numbers."""
    place = np.arange(size)
    held: Places = (place >= bounds[0]) & (place < bounds[1])
    return held


def length(bounds: F64) -> Scalar:
    """Give the number of places of a range."""
    count: Scalar = bounds[1] - bounds[0]
    return count


def disjoint(fractions: F64, size: int) -> F64:
    """Turn ordinary draws in [0, 1] into disjoint ranges of a vector, in order; (k, 2) to (k, 2).

    Whole numbers beyond 1 are ranges already, and stay.
    """
    if not fractions.size or float(np.max(fractions)) > 1.0:
        return fractions
    edges = np.floor(np.sort(fractions.reshape(-1)) * (size + 1))
    return np.minimum(edges, size).reshape(fractions.shape)
