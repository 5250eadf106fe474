"""How far a function moves when its arguments do: the worst case, ufunc by ufunc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rule = Callable[[np.ufunc, list[Array], list[Array], Array], Array]
_INF = float("inf")


def _sum(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    return e[0] + e[1]


def _product(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    return np.asarray(_times(v[0], e[1]) + _times(v[1], e[0]) + _times(e[0], e[1]))


def _times(size: Array, error: Array) -> Array:
    """A magnitude times an error, where infinity times no error is none."""
    return np.where(error == 0, 0.0, np.where(size == 0, 0.0, np.abs(size) * error))


def _quotient(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    below = np.abs(v[1]) - e[1]
    moved = (e[0] + _times(out, e[1])) / np.where(below > 0, below, 1.0)
    still = (e[0] == 0) & (e[1] == 0)
    return np.where(still, 0.0, np.where(below > 0, moved, _INF))


def _reciprocal(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    one = np.ones_like(v[0])
    return _quotient(f, [one, v[0]], [np.zeros_like(one), e[0]], out)


def _square(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    return np.asarray(2.0 * _times(v[0], e[0]) + e[0] * e[0])


def _monotone(low: float = -_INF, high: float = _INF) -> Rule:
    def rule(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
        above = np.abs(f(np.minimum(v[0] + e[0], high)) - out)
        below = np.abs(out - f(np.maximum(v[0] - e[0], low)))
        moved = np.fmax(above, below)
        return np.where(e[0] == 0, 0.0, np.where(np.isnan(moved), _INF, moved))

    return rule


def _lipschitz(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    total: Array = sum(e[1:], e[0])
    return total


def _bounded(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    return np.minimum(e[0], 2.0)


def _even(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    return np.asarray(np.abs(f(np.abs(v[0]) + e[0]) - out) * (e[0] > 0))


def _corners(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    """The power: monotone in each argument while the base stays positive."""
    ends = [f(v[0] + s * e[0], v[1] + t * e[1]) - out for s in (-1, 1) for t in (-1, 1)]
    moved = np.max(np.abs(ends), axis=0)
    whole = (v[1] == np.rint(v[1])) & (e[1] == 0) & (v[1] >= 0)
    reach = np.abs(f(np.abs(v[0]) + e[0], v[1]) - np.abs(out))
    wide = np.where(whole, np.maximum(moved, reach + 2.0 * np.abs(out) * (e[0] > np.abs(v[0]))), 0)
    still = (e[0] == 0) & (e[1] == 0)
    inside = v[0] - e[0] > 0
    return np.where(still, 0.0, np.where(inside, moved, np.where(whole, wide, _INF)))


def _angle(f: np.ufunc, v: list[Array], e: list[Array], out: Array) -> Array:
    radius = np.hypot(v[0], v[1]) - np.hypot(e[0], e[1])
    shift = np.hypot(e[0], e[1]) / np.where(radius > 0, radius, 1.0)
    still = (e[0] == 0) & (e[1] == 0)
    return np.where(still, 0.0, np.where(radius > 0, np.minimum(1.6 * shift, 6.3), 6.3))


RULES: dict[np.ufunc, Rule] = {
    np.add: _sum,
    np.subtract: _sum,
    np.multiply: _product,
    np.divide: _quotient,
    np.reciprocal: _reciprocal,
    np.square: _square,
    np.sqrt: _monotone(low=0.0),
    np.cbrt: _monotone(),
    np.exp: _monotone(),
    np.exp2: _monotone(),
    np.expm1: _monotone(),
    np.log: _monotone(low=0.0),
    np.log2: _monotone(low=0.0),
    np.log10: _monotone(low=0.0),
    np.log1p: _monotone(low=-1.0),
    np.tanh: _monotone(),
    np.sinh: _monotone(),
    np.arctan: _monotone(),
    np.arcsinh: _monotone(),
    np.arcsin: _monotone(low=-1.0, high=1.0),
    np.arccos: _monotone(low=-1.0, high=1.0),
    np.arccosh: _monotone(low=1.0),
    np.arctanh: _monotone(low=-1.0, high=1.0),
    np.deg2rad: _monotone(),
    np.rad2deg: _monotone(),
    np.sin: _bounded,
    np.cos: _bounded,
    np.cosh: _even,
    np.hypot: _lipschitz,
    np.logaddexp: _lipschitz,
    np.logaddexp2: _lipschitz,
    np.power: _corners,
    np.float_power: _corners,
    np.arctan2: _angle,
}

Move = Callable[[list[Array]], Array]


def _largest(errors: list[Array]) -> Array:
    return np.maximum(errors[0], errors[1])


def _own(errors: list[Array]) -> Array:
    return errors[0]


EXACT_MOVES: dict[np.ufunc, Move] = {
    np.negative: _own,
    np.positive: _own,
    np.conjugate: _own,
    np.absolute: _own,
    np.fabs: _own,
    np.copysign: _own,
    np.maximum: _largest,
    np.minimum: _largest,
    np.fmax: _largest,
    np.fmin: _largest,
}
