"""Broadcasting behind the hidden axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def aligned(rows: list[Array]) -> list[Array]:
    """The arrays with ones put in after the hidden axis, so that they broadcast as plain ones."""
    depth = max(d.ndim for d in rows)
    return [d if d.ndim == depth else _deepened(d, depth) for d in rows]


def broadcast_rows(d: Array, shape: tuple[int, ...]) -> Array:
    """Rows broadcast to the shape of their elements."""
    return np.broadcast_to(_deepened(d, len(shape) + 1), (d.shape[0], *shape))


def _deepened(d: Array, depth: int) -> Array:
    shape: tuple[int, ...] = d.shape
    return d.reshape(shape[:1] + (1,) * (depth - d.ndim) + shape[1:])
