"""Functions made of the basic operations: means, norms, products along an axis, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from trueup.oracle.bounds import decisions
from trueup.oracle.bounds.dispatch import handles
from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

np: Any = numpy  # NumPy's stubs know arrays only, not rows


def axes_of(x: Rows, axis: Any) -> tuple[int, ...]:
    """The axes a reduction goes over, counted from the front."""
    if axis is None:
        return tuple(range(x.ndim))
    parts = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(int(a) % x.ndim for a in parts))


def flat_last(x: Rows, axis: Any) -> Any:
    """The axes of a reduction moved to the end and joined."""
    axes = axes_of(x, axis)
    if len(axes) == 1 and axes[0] == x.ndim - 1:
        return x
    kept = [i for i in range(x.ndim) if i not in axes]
    turned = np.transpose(x, (*kept, *axes))
    return turned.reshape([x.shape[i] for i in kept] + [-1 if x.size else 0])


def kept_shape(x: Rows, axis: Any, keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction's result."""
    axes = axes_of(x, axis)
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return tuple(n for i, n in enumerate(x.shape) if i not in axes)


@handles(np.sum)
def _sum(
    model: Model, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, **more: Any
) -> Any:
    x = model.floats(a)
    where, initial = more.get("where", True), more.get("initial", 0)
    if where is not True:
        x = np.where(model.lift(where), x, 0.0)
    if x.ndim == 0:
        return x + initial if isinstance(initial, Rows) or initial else x
    keepdims = keepdims is True
    axes = axes_of(x, axis)
    out = model.total(x, axes[0]) if len(axes) == 1 else model.total(flat_last(x, axis), -1)
    out = model.wrap(out.d.reshape((out.d.shape[0], *kept_shape(x, axis, keepdims))))
    out = model.anchor(out, np.sum(x.v, axis=axis, keepdims=keepdims))
    return out + initial if isinstance(initial, Rows) or initial else out


def _count(x: Rows, axis: Any) -> int:
    return int(np.prod([x.shape[i] for i in axes_of(x, axis)], dtype=np.int64))


@handles(np.mean, floats=True)
def _mean(
    model: Model, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, **more: Any
) -> Any:
    x = model.floats(a)
    if "where" in more:
        mask = np.broadcast_to(np.asarray(more["where"]), x.shape)
        count: Any = mask.sum(axis=axis, keepdims=keepdims is True)
        return np.sum(x, axis=axis, keepdims=keepdims, where=mask) / count
    out = np.sum(x, axis=axis, keepdims=keepdims) / _count(x, axis)
    return model.anchor(out, np.mean(x.v, axis=axis, keepdims=keepdims is True))


@handles(np.var, floats=True)
def _var(
    model: Model,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    **_: Any,
) -> Any:
    x = model.floats(a)
    off = x - np.mean(x, axis=axis, keepdims=True)
    var = np.sum(off * off, axis=axis, keepdims=keepdims) / (_count(x, axis) - ddof)
    return model.anchor(var, np.var(x.v, axis=axis, ddof=ddof, keepdims=keepdims is True))


@handles(np.std, floats=True)
def _std(model: Model, a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
    x = model.floats(a)
    out = np.sqrt(_var(model, x, axis, *args, **kwargs))
    return model.anchor(out, np.std(x.v, axis, *args, **kwargs))


@handles(np.average, floats=True)
def _average(
    model: Model, a: Any, axis: Any = None, weights: Any = None, keepdims: Any = False, **_: Any
) -> Any:
    x = model.floats(a)
    if weights is None:
        return np.mean(x, axis=axis, keepdims=keepdims)
    w = model.floats(weights)
    if w.shape != x.shape:
        shape = [1] * x.ndim
        shape[axis] = -1
        w = w.reshape(shape)
    total = np.sum(np.broadcast_to(w, x.shape), axis=axis, keepdims=keepdims)
    out = np.sum(x * w, axis=axis, keepdims=keepdims) / total
    native = np.average(x.v, axis=axis, weights=w.v.reshape(np.shape(model.lift(weights).v)))
    return model.anchor(out, native if keepdims is not True else np.expand_dims(native, axis))


@handles(np.prod)
def _prod(
    model: Model, a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, **_: Any
) -> Any:
    x = model.floats(a)
    rows = flat_last(x, axis)
    if not rows.shape[-1]:
        return model.exact(np.prod(x.v, axis=axis, keepdims=keepdims is True))
    while rows.shape[-1] > 1:
        half = rows.shape[-1] // 2
        rest = rows[..., 2 * half :]
        rows = rows[..., :half] * rows[..., half : 2 * half]
        if rest.shape[-1]:
            rows = np.concatenate([rows, rest], axis=-1)
    out = model.wrap(rows.d.reshape((rows.d.shape[0], *kept_shape(x, axis, keepdims is True))))
    return model.anchor(out, np.prod(x.v, axis=axis, keepdims=keepdims is True))


@handles(np.cumsum)
def _cumsum(model: Model, a: Any, axis: Any = None, **_: Any) -> Any:
    x = model.floats(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    return model.anchor(model.running(x, axis), np.cumsum(x.v, axis=axis))


@handles(np.cumprod)
def _cumprod(model: Model, a: Any, axis: Any = None, **_: Any) -> Any:
    x = model.floats(a)
    if axis is None:
        x, axis = x.reshape(-1), 0
    lines = np.moveaxis(x, axis, 0)
    parts = [lines[0]]
    for i in range(1, lines.shape[0]):
        parts.append(parts[-1] * lines[i])
    out = np.stack(parts, axis=axis)
    return model.anchor(out, np.cumprod(x.v, axis=axis))


def _extreme(function: Any) -> Any:
    def handler(model: Model, a: Any, axis: Any = None, keepdims: Any = False, **more: Any) -> Any:
        x = model.floats(a)
        where, initial = more.get("where", True), more.get("initial")
        if where is not True:
            x = np.where(model.lift(where), x, initial)
        shape = kept_shape(x, axis, keepdims is True)
        out = model.rowwise(function, flat_last(x, axis), -1) if x.ndim else x
        out = model.wrap(out.d.reshape((out.d.shape[0], *shape)))
        if initial is not None:
            out = (np.maximum if function is np.max else np.minimum)(out, initial)
        return out

    return handler


handles(np.max, np.amax)(_extreme(np.max))
handles(np.min, np.amin)(_extreme(np.min))
handles(np.nanmax)(_extreme(np.nanmax))
handles(np.nanmin)(_extreme(np.nanmin))


@handles(np.ptp)
def _ptp(model: Model, a: Any, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


@handles(np.nansum)
def _nansum(model: Model, a: Any, axis: Any = None, **kwargs: Any) -> Any:
    x = model.floats(a)
    return np.sum(np.where(np.isnan(x.v), 0.0, x), axis=axis, **kwargs)


@handles(np.nanmean, floats=True)
def _nanmean(model: Model, a: Any, axis: Any = None, keepdims: Any = False, **_: Any) -> Any:
    x = model.floats(a)
    count = np.sum(~np.isnan(x.v), axis=axis, keepdims=keepdims is True)
    return np.nansum(x, axis=axis, keepdims=keepdims) / count


def _logical(function: Any) -> Any:
    def handler(model: Model, a: Any, *args: Any, **kwargs: Any) -> Any:
        return model.exact(function(decisions.truth(model.lift(a)).v, *args, **kwargs))

    return handler


handles(np.all)(_logical(np.all))
handles(np.any)(_logical(np.any))
handles(np.count_nonzero)(_logical(np.count_nonzero))
handles(np.flatnonzero)(_logical(np.flatnonzero))
handles(np.argwhere)(_logical(np.argwhere))


@handles(np.nonzero)
def _nonzero(model: Model, a: Any) -> Any:
    return tuple(model.exact(i) for i in np.nonzero(decisions.truth(a).v))


@handles(np.clip)
def _clip(
    model: Model, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    out = model.floats(a)
    out = out if low is None else np.maximum(out, low)
    return out if high is None else np.minimum(out, high)


@handles(np.round, np.around)
def _round(model: Model, a: Any, decimals: int = 0, **_: Any) -> Any:
    x = model.floats(a)
    if not decimals:
        return np.rint(x)
    out = np.rint(x * 10.0**decimals) / 10.0**decimals
    return model.anchor(out, np.round(x.v, decimals)) if model.tape.outcome == 0 else out


@handles(np.fix)
def _fix(model: Model, x: Any, **_: Any) -> Any:
    return np.trunc(model.floats(x))


@handles(np.nan_to_num)
def _nan_to_num(
    model: Model, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    big = float(np.finfo(np.float64).max)
    v = x.v
    x = np.where(np.isnan(v), nan, x)
    x = np.where(v == np.inf, big if posinf is None else posinf, x)
    return np.where(v == -np.inf, -big if neginf is None else neginf, x)


@handles(np.diff)
def _diff(model: Model, a: Any, n: int = 1, axis: int = -1, **more: Any) -> Any:
    x = model.floats(a)
    ends = [more[k] for k in ("prepend", "append") if k in more]
    if ends:
        raise Unsupported("numpy.diff with prepend or append")
    lines = np.moveaxis(x, axis, -1)
    for _ in range(n):
        lines = lines[..., 1:] - lines[..., :-1]
    return np.moveaxis(lines, -1, axis)


@handles(np.trapezoid)
def _trapezoid(model: Model, y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = np.moveaxis(model.floats(y), axis, -1)
    width = dx if x is None else np.diff(model.floats(x), axis=-1)
    return np.sum(width * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


@handles(np.isclose)
def _isclose(
    model: Model, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False
) -> Any:
    a, b = model.floats(a), model.floats(b)
    return (abs(a - b) <= atol + rtol * abs(b)) | (a == b)


@handles(np.allclose)
def _allclose(model: Model, *args: Any, **kwargs: Any) -> bool:
    return bool(np.all(_isclose(model, *args, **kwargs)))


@handles(np.array_equal)
def _array_equal(model: Model, a1: Any, a2: Any, **_: Any) -> bool:
    a, b = model.lift(a1), model.lift(a2)
    return a.shape == b.shape and bool(np.all(a == b))
