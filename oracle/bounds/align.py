"""Broadcasting behind the hidden axis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def aligned(rows: list[Array]) -> list[Array]:
    """The arrays with ones put in after the hidden axis, so that they broadcast as plain ones."""
    depth = max(d.ndim for d in rows)
    return [
        d if d.ndim == depth else d.reshape(d.shape[:1] + (1,) * (depth - d.ndim) + d.shape[1:])
        for d in rows
    ]


def broadcast_rows(d: Array, shape: tuple[int, ...]) -> Array:
    """Rows broadcast to the shape of their elements."""
    d = d.reshape(d.shape[:1] + (1,) * (len(shape) + 1 - d.ndim) + d.shape[1:])
    return np.broadcast_to(d, (d.shape[0], *shape))
