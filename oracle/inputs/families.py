"""Families of inputs: each breaks a lucky default that lets a wrong kernel look right.

A family changes the ordinary draw of the real-valued arrays; scalars, indices, masks and
probabilities stay as drawn. An equation adds families of its own where it has its own traps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
Change = Callable[[np.random.Generator, F64], F64]


@dataclass(frozen=True)
class GenericFamily:
    """One kind of input; `right_kernel_only` ones cannot tell a wrong kernel and need not."""

    name: str
    why: str
    change: Change
    right_kernel_only: bool = False


def _unit(rng: np.random.Generator, x: F64) -> F64:
    return x


def _offset(rng: np.random.Generator, x: F64) -> F64:
    return x + 100.0


def _small(rng: np.random.Generator, x: F64) -> F64:
    return x * 3e-4


def _large(rng: np.random.Generator, x: F64) -> F64:
    return x * 700.0


def _ill_conditioned(rng: np.random.Generator, x: F64) -> F64:
    if x.ndim == 0:
        return x
    scale = np.logspace(0.0, -4.0, x.shape[-1]) if x.shape[-1] else np.ones(0)
    out: F64 = x * rng.permutation(scale)
    return out


def _peaked(rng: np.random.Generator, x: F64) -> F64:
    out = 0.01 * x
    if out.size:
        out.reshape(-1)[rng.integers(out.size)] = 50.0
    return out


def _sparse(rng: np.random.Generator, x: F64) -> F64:
    out: F64 = np.where(rng.random(x.shape) < 0.6, 0.0, x)
    return out


def _ties(rng: np.random.Generator, x: F64) -> F64:
    return np.rint(2.0 * x) / 2.0 + 1e-4 * rng.integers(0, 2, x.shape)


def _integers(rng: np.random.Generator, x: F64) -> F64:
    return rng.integers(-4, 5, x.shape).astype(np.float64)


def _tail(rng: np.random.Generator, x: F64) -> F64:
    out = x.copy()
    if out.ndim and out.shape[-1]:
        out[..., -1] = 20.0 + out[..., -1]
    return out


def _duplicate_rows(rng: np.random.Generator, x: F64) -> F64:
    return np.broadcast_to(x[:1], x.shape).copy() if x.ndim else x


def _constant(rng: np.random.Generator, x: F64) -> F64:
    return np.full(x.shape, 0.7)


def _ramp(rng: np.random.Generator, x: F64) -> F64:
    return np.sort(x, axis=-1) if x.ndim else x


GENERIC: tuple[GenericFamily, ...] = (
    GenericFamily("unit", "ordinary values of order one", _unit),
    GenericFamily("offset", "a mean far above the spread: cancellation shows", _offset),
    GenericFamily("small", "scale far below one: an epsilon in the wrong place shows", _small),
    GenericFamily("large", "scale far above one: a term of another degree shows", _large),
    GenericFamily("ill_conditioned", "four decades between columns", _ill_conditioned),
    GenericFamily("peaked", "one element dominates", _peaked),
    GenericFamily("sparse", "many exact zeros", _sparse),
    GenericFamily("ties", "exact ties beside gaps of 1e-4", _ties),
    GenericFamily("tail", "a large last element: a lost tail shows", _tail),
    GenericFamily("integers", "small integers: exact arithmetic demands equal bits", _integers),
    GenericFamily(
        "duplicate_rows", "equal rows: rounding that does not average out", _duplicate_rows, True
    ),
    GenericFamily("constant", "all elements equal: systematic rounding", _constant, True),
    GenericFamily("ramp", "sorted values: every partial sum grows", _ramp, True),
)
