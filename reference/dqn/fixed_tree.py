"""The programme's fixed order of a sum of squares, bit for bit in float32.

Source: DQN programme, fixed-order reduction. T = 256 strided sums: thread t rounds x_i x_i and then
its running sum, for i = t, t + T, ...; then for s = 128, 64, ..., 1 thread t < s adds the sum of
thread t + s. No product is fused into a sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
THREADS = 256


def fixed_tree_sum(x: F32, threads: int = THREADS) -> np.float32:
    """Sum float32 numbers as they are in the fixed order; threads is a power of two."""
    rows = -(-x.size // threads)
    padded = np.zeros(rows * threads, dtype=np.float32)
    padded[: x.size] = x
    partial = np.zeros(threads, dtype=np.float32)
    with np.errstate(over="ignore"):  # an infinite norm is reported, and flagged elsewhere
        for row in range(rows):
            partial = partial + padded[row * threads : (row + 1) * threads]
        half = threads // 2
        while half:
            partial[:half] = partial[:half] + partial[half : 2 * half]
            half //= 2
    return np.float32(partial[0])


def fixed_tree_sum_of_squares(x: F32, threads: int = THREADS) -> np.float32:
    """Sum the rounded squares of float32 numbers in the fixed order."""
    with np.errstate(over="ignore", under="ignore"):
        return fixed_tree_sum(x * x, threads)


def fixed_tree_norm(x: F32, threads: int = THREADS) -> np.float32:
    """Give the root of the sum of squares, correctly rounded."""
    return np.float32(np.sqrt(fixed_tree_sum_of_squares(x, threads)))


def sequential_sum_of_squares(x: F32) -> np.float32:
    """Sum the rounded squares one after another: the witness that an order was not kept."""
    with np.errstate(over="ignore", under="ignore"):
        return np.float32(np.cumsum(x * x, dtype=np.float32)[-1]) if x.size else np.float32(0)
