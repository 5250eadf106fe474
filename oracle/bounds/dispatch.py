"""Where NumPy's calls on rows arrive: ufuncs, and every other function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds import decisions
from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

Array = NDArray[Any]
Handler = Callable[..., Any]

HANDLERS: dict[Any, Handler] = {}
FLOAT_RESULT: set[Any] = set()

_COMPARE = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_STEP = {np.floor, np.ceil, np.rint, np.trunc, np.sign}
_TEST = {np.isnan, np.isfinite, np.isinf, np.signbit}
_LOGICAL = {np.logical_and, np.logical_or, np.logical_xor, np.logical_not}


def handles(*functions: Any, floats: bool = False) -> Callable[[Handler], Handler]:
    """Register a handler `f(model, *args, **kwargs)`; `floats`: also for integer arguments."""

    def register(handler: Handler) -> Handler:
        for function in functions:
            HANDLERS[function] = handler
            if floats:
                FLOAT_RESULT.add(function)
        return handler

    return register


def call_ufunc(
    model: Model, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """One call of a ufunc or of one of its methods."""
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    kwargs = {k: v for k, v in kwargs.items() if k not in ("casting", "order", "dtype", "subok")}
    if method == "__call__":
        result = _call(model, ufunc, inputs)
    else:
        if where is not True:
            raise Unsupported(f"numpy.{ufunc.__name__}.{method} with where=")
        result = _method(model, ufunc, method, inputs, kwargs)
    if where is not True:
        if out is None:
            raise Unsupported(f"numpy.{ufunc.__name__} with where= and no out=")
        result = np.where(model.lift(where), result, out[0])
    return _written(result, out)


def _written(result: Any, out: Any) -> Any:
    if out is None or out[0] is None:
        return result
    target = out[0] if isinstance(out, tuple) else out
    if not isinstance(target, Rows):
        raise Unsupported("a plain array is written in place")
    return target.replace(result)


def _call(model: Model, ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    operands = [model.lift(x) for x in inputs]
    if not any(x.floating for x in operands):
        native = ufunc(*(x.v for x in operands))
        if isinstance(native, tuple):
            return tuple(model.exact(part) for part in native)
        if native.dtype.kind in "biu":
            return model.exact(native)
    if ufunc in _LOGICAL:
        return model.exact(ufunc(*(decisions.truth(x).v for x in operands)))
    if ufunc is np.ldexp:
        return model.floats(operands[0]) * 2.0 ** operands[1].v.astype(float)
    operands = [model.floats(x) for x in operands]
    if ufunc in _TEST:
        return model.exact(ufunc(operands[0].v))
    if ufunc in _STEP:
        return decisions.step(model, ufunc, operands[0])
    if ufunc in _COMPARE:
        return decisions.compare(model, ufunc, *operands)
    if ufunc is not np.matmul and ufunc is not np.vecdot:
        model.room(*(x.shape for x in operands))
    special = _SPECIAL.get(ufunc)
    return special(model, *operands) if special else model.elementwise(ufunc, operands)


def _quotient(model: Model, a: Rows, b: Rows) -> Rows:
    return decisions.step(model, np.floor, a / b)


def _remainder(model: Model, a: Rows, b: Rows) -> Rows:
    return model.anchor(a - _quotient(model, a, b) * b, np.remainder(a.v, b.v))


def _fmod(model: Model, a: Rows, b: Rows) -> Rows:
    return model.anchor(a - decisions.step(model, np.trunc, a / b) * b, np.fmod(a.v, b.v))


def _heaviside(model: Model, x: Any, middle: Any) -> Any:
    return np.where(x > 0, 1.0, np.where(x < 0, 0.0, middle))


def _divmod(model: Model, a: Rows, b: Rows) -> tuple[Rows, Rows]:
    return _quotient(model, a, b), _remainder(model, a, b)


def _modf(model: Model, x: Rows) -> tuple[Rows, Rows]:
    whole = decisions.step(model, np.trunc, x)
    return x - whole, whole


def matmul(model: Model, a: Rows, b: Rows) -> Rows:
    """`a @ b`, with NumPy's rules for vectors."""
    left, right = (a[None, :] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    model.room((*left.shape[:-2], 1, 1), (*right.shape[:-2], left.shape[-2], right.shape[-1]))
    out = model.matmul(left, right)
    if a.ndim == 1:
        out = model.wrap(out.d[..., 0, :])
    if b.ndim == 1:
        out = model.wrap(out.d[..., 0])
    return model.anchor(out, np.matmul(a.v, b.v))


def _vecdot(model: Model, a: Rows, b: Rows) -> Rows:
    out = model.matmul(a[..., None, :], b[..., :, None])
    return model.anchor(model.wrap(out.d[..., 0, 0]), np.vecdot(a.v, b.v))


_SPECIAL: dict[np.ufunc, Handler] = {
    np.floor_divide: _quotient,
    np.remainder: _remainder,
    np.fmod: _fmod,
    np.divmod: _divmod,
    np.modf: _modf,
    np.heaviside: _heaviside,
    np.matmul: matmul,
    np.vecdot: _vecdot,
}


def _method(
    model: Model, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if method == "reduce":
        function = _REDUCE.get(ufunc)
        kwargs = {"axis": inputs[1] if len(inputs) > 1 else 0, **kwargs}
        if function is not None:
            return function(inputs[0], **kwargs)
    if method == "accumulate":
        axis = kwargs.get("axis", inputs[1] if len(inputs) > 1 else 0)
        x = model.lift(inputs[0])
        if ufunc in _ACCUMULATE and x.floating:
            return model.rowwise(ufunc.accumulate, x, axis)
        if not x.floating:
            return model.exact(ufunc.accumulate(x.v, axis=axis))
        if ufunc in (np.add, np.multiply):
            return (np.cumsum if ufunc is np.add else np.cumprod)(x, axis=axis)
    if method == "outer":
        a, b = (model.lift(x) for x in inputs)
        return ufunc(a.reshape(a.shape + (1,) * b.ndim), b)
    if method == "at":
        return _at(ufunc, *inputs)
    raise Unsupported(f"numpy.{ufunc.__name__}.{method} is not followed")


def _at(ufunc: np.ufunc, x: Rows, index: Any, *operands: Any) -> None:
    """An unbuffered scatter: one element after the other, as NumPy does it."""
    index = index if isinstance(index, tuple) else (index,)
    places = np.broadcast_arrays(*(np.asarray(i) for i in index))
    flat = list(zip(*(p.ravel().tolist() for p in places), strict=True))
    values = [
        np.broadcast_to(x.model.lift(v), places[0].shape + x.shape[len(index) :]) for v in operands
    ]
    values = [v.reshape((len(flat), *x.shape[len(index) :])) for v in values]
    for i, place in enumerate(flat):
        x[place] = ufunc(x[place], *(v[i] for v in values))


_REDUCE: dict[np.ufunc, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
_ACCUMULATE = {np.maximum, np.minimum, np.fmax, np.fmin}


def call_function(model: Model, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call of a NumPy function that is no ufunc."""
    out = kwargs.pop("out", None)
    if func not in FLOAT_RESULT and not _any_floating((args, kwargs)):
        return _written(_wrap(model, func(*_native(args), **_native(kwargs))), out)
    handler = HANDLERS.get(func)
    if handler is None:
        name = f"{getattr(func, '__module__', 'numpy')}.{getattr(func, '__name__', func)}"
        raise Unsupported(f"{name} is not followed")
    return _written(handler(model, *args, **kwargs), out)


def _any_floating(value: Any) -> bool:
    if isinstance(value, Rows):
        return value.floating
    if isinstance(value, (list, tuple)):
        return any(_any_floating(v) for v in value)
    if isinstance(value, dict):
        return any(_any_floating(v) for v in value.values())
    return False


def _native(value: Any) -> Any:
    if isinstance(value, Rows):
        return value.v
    if isinstance(value, (list, tuple)):
        return type(value)(_native(v) for v in value)
    if isinstance(value, dict):
        return {k: _native(v) for k, v in value.items()}
    return value


def _wrap(model: Model, value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return model.lift(value)
    if isinstance(value, (list, tuple)):
        parts = [_wrap(model, v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value
