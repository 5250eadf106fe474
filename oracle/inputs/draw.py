"""Draws values from domains, and rounds them to the kernel's own formats.

Inputs are born in the kernel's dtype and then widened to float64 for the reference, so that the
rounding of inputs is never billed to the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.reference import Domain

F64 = NDArray[np.float64]

REAL = Domain("real")


def ordinary(
    domain: Domain, shape: tuple[int, ...], rng: np.random.Generator, sizes: Mapping[str, int]
) -> F64:
    """Draw an array of typical values of a domain (float64, not yet rounded)."""
    low, high = domain.low, domain.high
    match domain.kind:
        case "real":
            if low is not None and high is not None:
                return rng.uniform(low, high, shape)
            return rng.standard_normal(shape)
        case "positive":
            return np.exp(rng.uniform(np.log(low or 0.1), np.log(high or 10.0), shape))
        case "nonnegative":
            if high is not None:
                return rng.uniform(low or 0.0, high, shape)
            return np.abs(rng.standard_normal(shape))
        case "unit":
            return rng.uniform(0.0 if low is None else low, 1.0 if high is None else high, shape)
        case "simplex":
            weight = np.exp(rng.standard_normal(shape))
            return np.asarray(weight / weight.sum(axis=-1, keepdims=True))
        case "index":
            assert domain.axis is not None
            return rng.integers(0, max(sizes[domain.axis], 1), shape).astype(np.float64)
        case "mask":
            return rng.integers(0, 2, shape).astype(np.float64)
        case "monotone":
            return np.cumsum(np.abs(rng.standard_normal(shape)), axis=-1)
        case "sentinel":
            value = np.exp(rng.uniform(np.log(low or 0.1), np.log(high or 10.0), shape))
            return np.where(rng.random(shape) < 0.2, 0.0, value)
    raise AssertionError(f"no draw for the domain {domain.kind}")


def in_range(
    legal: tuple[float, float], integer: bool, shape: tuple[int, ...], rng: np.random.Generator
) -> F64:
    """Draw from a contract's `range`: integers half-open, floats closed."""
    low, high = legal
    if integer:
        return rng.integers(int(low), max(int(high), int(low) + 1), shape).astype(np.float64)
    return rng.uniform(low, high, shape)


def rounded(value: Any, dtype: np.dtype[Any], domain: Domain | None) -> NDArray[Any]:
    """Round to the kernel's dtype, staying inside the domain (a positive stays positive)."""
    array = np.asarray(value, dtype=np.float64)
    if dtype.kind in "iub":
        return np.rint(array).astype(dtype)
    with np.errstate(over="ignore"):  # beyond the format is infinity, and says so itself
        out = array.astype(dtype)
    if domain is not None and domain.kind == "positive":
        tiny = np.asarray(smallest(dtype), dtype=dtype)
        out = np.where((out == 0) & (array > 0), tiny, out).astype(dtype)
    return out


def smallest(dtype: np.dtype[Any]) -> float:
    """Return the smallest positive subnormal of a float dtype."""
    return {8: 5e-324, 4: 2.0**-149}.get(
        dtype.itemsize, 2.0**-24 if dtype == np.float16 else 2.0**-133
    )


def widened(array: NDArray[Any]) -> NDArray[Any]:
    """Widen floats to float64 exactly; integers and booleans stay what they are."""
    return array if array.dtype.kind in "iub" else array.astype(np.float64)
