"""Functions that put elements in order, and those built on order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from trueup.oracle.bounds import decisions
from trueup.oracle.bounds.dispatch import handles
from trueup.oracle.bounds.errors import Unsupported

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

np: Any = numpy  # NumPy's stubs know arrays only, not rows


@handles(np.argmax)
def _argmax(model: Model, a: Any, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
    return _arg(model, a, axis, keepdims, 1)


@handles(np.argmin)
def _argmin(model: Model, a: Any, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
    return _arg(model, a, axis, keepdims, -1)


def _arg(model: Model, a: Any, axis: Any, keepdims: Any, sign: int) -> Any:
    x = model.floats(a)
    if axis is None:
        out = decisions.arg_extreme(model, x.reshape(-1), 0, sign)
        return out.reshape((1,) * x.ndim) if keepdims is True else out
    out = decisions.arg_extreme(model, x, axis, sign)
    return np.expand_dims(out, axis) if keepdims is True else out


@handles(np.sort)
def _sort(model: Model, a: Any, *args: Any, axis: Any = -1, **_: Any) -> Any:
    x = model.floats(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    return model.rowwise(np.sort, x, axis)


@handles(np.argsort)
def _argsort(model: Model, a: Any, axis: Any = -1, kind: Any = None, **more: Any) -> Any:
    x = model.floats(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    return decisions.argsort(model, x, axis, kind=kind, stable=more.get("stable"))


def _partial(function: Any) -> Any:
    def handler(model: Model, a: Any, kth: Any, axis: Any = -1, **more: Any) -> Any:
        x = model.floats(a)
        if x.d.shape[0] > 1:
            raise Unsupported(
                f"numpy.{function.__name__} of numbers that carry rounding; sort them instead"
            )
        return model.exact(function(x.v, kth, axis, **more))

    return handler


for _function in (np.partition, np.argpartition):
    handles(_function)(_partial(_function))


@handles(np.searchsorted, floats=True)
def _searchsorted(model: Model, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    grid = model.floats(a)
    if sorter is not None:
        grid = grid[sorter]
    return decisions.searchsorted(model, grid, model.floats(v), side)


@handles(np.digitize, floats=True)
def _digitize(model: Model, x: Any, bins: Any, right: bool = False) -> Any:
    edges = model.floats(bins)
    side = "left" if right else "right"
    if edges.shape[0] > 1 and edges.v[0] > edges.v[-1]:
        other = "right" if right else "left"
        return len(edges) - decisions.searchsorted(model, edges[::-1], model.floats(x), other)
    return decisions.searchsorted(model, edges, model.floats(x), side)


@handles(np.quantile, floats=True)
def _quantile(
    model: Model, a: Any, q: Any, axis: Any = None, keepdims: Any = False, **more: Any
) -> Any:
    if more.get("method", "linear") != "linear" or more.get("weights") is not None:
        raise Unsupported("numpy.quantile with weights or a method other than 'linear'")
    x = model.floats(a)
    level = model.floats(q)
    lines = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    lines = model.rowwise(np.sort, lines, -1)
    place = level * (lines.shape[-1] - 1)
    below = np.floor(place)
    low = model.integers(below)
    high = np.minimum(low + 1, lines.shape[-1] - 1)
    share = place - below
    picked = []
    for i in np.ndindex(level.shape):
        left, right = lines[..., int(low[i])], lines[..., int(high[i])]
        picked.append(left + (right - left) * share[i])
    out = picked[0] if not level.ndim else np.stack(picked)
    if model.tape.outcome == 0:
        out = model.anchor(out, np.quantile(x.v, level.v, axis=axis))
    return np.expand_dims(out, axis or 0) if keepdims is True else out


@handles(np.percentile, floats=True)
def _percentile(model: Model, a: Any, q: Any, **kwargs: Any) -> Any:
    return _quantile(model, a, np.asarray(q) / 100.0, **kwargs)


@handles(np.median, floats=True)
def _median(model: Model, a: Any, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
    x = model.floats(a)
    lines = x.reshape(-1) if axis is None else np.moveaxis(x, axis, -1)
    lines = model.rowwise(np.sort, lines, -1)
    n = lines.shape[-1]
    middle = lines[..., n // 2]
    out = middle if n % 2 else (lines[..., n // 2 - 1] + middle) / 2.0
    out = model.anchor(out, np.median(x.v, axis=axis))
    return np.expand_dims(out, axis or 0) if keepdims is True else out


@handles(np.unique)
def _unique(model: Model, *args: Any, **kwargs: Any) -> Any:
    raise Unsupported("numpy.unique of numbers that carry rounding")


@handles(np.bincount)
def _bincount(model: Model, x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    places = np.asarray(x)
    values = model.floats(weights)
    bins = max(int(places.max(initial=-1)) + 1, minlength)
    sums = [np.sum(values[np.flatnonzero(places == j)]) for j in range(bins)]
    return model.anchor(np.stack(sums), np.bincount(places, values.v, minlength))


@handles(np.interp, floats=True)
def _interp(model: Model, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    x, xp, fp = (model.floats(v) for v in (x, xp, fp))
    last = len(xp) - 1
    at = np.clip(decisions.searchsorted(model, xp, x, "right").v - 1, 0, max(last - 1, 0))
    slope = (fp[at + 1] - fp[at]) / (xp[at + 1] - xp[at])
    out = slope * (x - xp[at]) + fp[at]
    out = np.where(x <= xp[0], fp[0] if left is None else np.where(x == xp[0], fp[0], left), out)
    out = np.where(x >= xp[last], fp[last], out)
    return out if right is None else np.where(x > xp[last], right, out)
