"""Discrete steps: comparisons, rounding to integers, choices along an axis.

A decision is close where the spread of its operands reaches it; the tape says which way it goes.
Exact ties have no spread, and keep the rule of NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.align import aligned
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

Array = NDArray[Any]

# How many spreads away a decision still counts as close; above the factor of the allowed error.
CLOSE = 8.0


def _reach(model: Model, x: Rows) -> Array:
    return _finite(CLOSE * np.asarray(model.spread(x)))


def _reach_between(model: Model, a: Array, b: Array) -> Array:
    """The reach of a difference, of rows that lie alike."""
    return _finite(CLOSE * np.asarray(model.apart(a, b)))


def _finite(reach: Array) -> Array:
    return np.where(np.isfinite(reach), reach, 0.0)


def compare(model: Model, ufunc: np.ufunc, a: Rows, b: Rows) -> Rows:
    """A comparison, taken the other way where the tape says so."""
    da, db = aligned([a.d, b.d])
    natural = np.asarray(ufunc(da[0], db[0]))
    if da.shape[0] == db.shape[0] == 1:
        reach = np.zeros(natural.shape)
    else:
        reach = _reach_between(model, da, db)
    close = (np.abs(da[0] - db[0]) <= reach) & (reach > 0)
    choice = model.tape.choose(np.where(np.broadcast_to(close, natural.shape), 2, 1))
    return model.exact(natural if choice is None else natural ^ (choice == 1))


def truth(x: Rows) -> Rows:
    """`x != 0`, for `if`, masks and the logical functions."""
    if not x.floating:
        return x.model.exact(x.v.astype(bool))
    return compare(x.model, np.not_equal, x, x.model.exact(np.zeros((), dtype=x.d.dtype)))


def step(model: Model, func: Any, x: Rows) -> Rows:
    """floor, ceil, rint, trunc, sign: the other value where it lies within reach."""
    v = x.v
    reach = _reach(model, x)
    natural, above, below = func(v), func(v + reach), func(v - reach)
    up, down = above != natural, below != natural
    known = np.isfinite(v)
    options = np.where(known, 1 + up.astype(int) + down.astype(int), 1)
    choice = model.tape.choose(options)
    if choice is None:
        return model.exact(natural)
    first = np.where(up, above, below)
    return model.exact(np.where(choice == 0, natural, np.where(choice == 1, first, below)))


def arg_extreme(model: Model, x: Rows, axis: int, sign: int) -> Rows:
    """argmax (sign 1) or argmin (sign -1): one of the candidates within reach of the best."""
    axis = axis % x.ndim
    v = sign * x.v
    natural = np.argmax(v, axis=axis)
    at = np.expand_dims(natural, axis)
    best = np.take_along_axis(x.d, at[None], axis=axis + 1)
    reach = _reach_between(model, x.d, best) if x.d.shape[0] > 1 else np.zeros(v.shape)
    gap = np.abs(best[0] - x.v)
    others = (gap <= reach) & (reach > 0)
    np.put_along_axis(others, at, False, axis=axis)
    choice = model.tape.choose(1 + np.count_nonzero(others, axis=axis))
    if choice is None:
        return model.exact(natural)
    rank = np.cumsum(others, axis=axis) * others
    picked = np.argmax(rank == np.expand_dims(choice, axis), axis=axis)
    return model.exact(np.where(choice == 0, natural, picked))


def argsort(model: Model, x: Rows, axis: int, *, kind: Any = None, stable: Any = None) -> Rows:
    """argsort: neighbours within reach of each other may change places."""
    axis = axis % x.ndim
    order = np.argsort(x.v, axis=axis, kind=kind, stable=stable)
    if x.shape[axis] < 2:
        return model.exact(order)
    rows = np.moveaxis(np.take_along_axis(x.d, order[None], axis=axis + 1), axis + 1, -1)
    right, left = rows[..., 1:], rows[..., :-1]
    step = right[0] - left[0]
    reach = _reach_between(model, right, left) if x.d.shape[0] > 1 else np.zeros(step.shape)
    close = (step <= reach) & (reach > 0)
    choice = model.tape.choose(np.where(close, 2, 1))
    if choice is None:
        return model.exact(order)
    turned = np.moveaxis(order, axis, -1).copy()
    for j in range(choice.shape[-1]):
        swap = choice[..., j] == 1
        left, right = turned[..., j].copy(), turned[..., j + 1].copy()
        turned[..., j] = np.where(swap, right, left)
        turned[..., j + 1] = np.where(swap, left, right)
    return model.exact(np.moveaxis(turned, -1, axis))


def searchsorted(model: Model, a: Rows, x: Rows, side: str) -> Rows:
    """The place of a number in a sorted array: any place within reach."""
    values, wanted = a.v, x.v
    natural = np.asarray(np.searchsorted(values, wanted, side=side))  # type: ignore[call-overload]
    own = np.broadcast_to(_reach(model, x), wanted.shape)
    grid = np.broadcast_to(_reach(model, a), values.shape)
    if grid.size:
        last = grid.size - 1
        near = np.maximum(grid[np.clip(natural - 1, 0, last)], grid[np.clip(natural, 0, last)])
        own = np.hypot(own, near)
    low = np.searchsorted(values, wanted - own, side="left")
    high = np.searchsorted(values, wanted + own, side="right")
    low, high = np.where(own > 0, low, natural), np.where(own > 0, high, natural)
    choice = model.tape.choose(np.asarray(high - low + 1))
    if choice is None:
        return model.exact(natural)
    other = low + choice - 1
    other = np.where(other >= natural, other + 1, other)
    return model.exact(np.where(choice == 0, natural, other))
