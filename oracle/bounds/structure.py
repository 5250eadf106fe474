"""Functions that only move elements: views where NumPy gives views, gathers everywhere else.

Where a function moves elements about, it is asked once, on an array of element numbers, where
they go; the rows are then gathered by the answer. So every such function has one definition,
NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.align import broadcast_rows
from trueup.oracle.bounds.dispatch import handles
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

Array = NDArray[Any]


def _view(x: Rows, view: Callable[[Array], Array]) -> Rows:
    out = Rows(x.model, view(x.d))
    out._parent, out._view = x, view
    return out


@handles(np.transpose)
def _transpose(model: Model, a: Any, axes: Any = None) -> Rows:
    x = model.lift(a)
    order = tuple(range(x.ndim))[::-1] if axes is None else tuple(i % x.ndim for i in axes)
    return _view(x, lambda d: d.transpose(0, *(i + 1 for i in order)))


@handles(np.swapaxes)
def _swapaxes(model: Model, a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return _transpose(model, a, order)


@handles(np.moveaxis)
def _moveaxis(model: Model, a: Any, source: Any, destination: Any) -> Any:
    dummy = np.moveaxis(np.empty(tuple(range(2, a.ndim + 2))), source, destination)
    return _transpose(model, a, [n - 2 for n in dummy.shape])


@handles(np.reshape)
def _reshape(model: Model, a: Any, /, shape: Any = None, order: str = "C", **_: Any) -> Rows:
    return model.lift(a).reshape(shape, order=order)


@handles(np.ravel)
def _ravel(model: Model, a: Any, order: str = "C") -> Rows:
    return model.lift(a).reshape(-1, order=order)


@handles(np.squeeze)
def _squeeze(model: Model, a: Any, axis: Any = None) -> Rows:
    shape = np.squeeze(np.broadcast_to(np.int8(0), a.shape), axis=axis).shape
    return _view(a, lambda d: d.reshape((d.shape[0], *shape)))


@handles(np.expand_dims)
def _expand_dims(model: Model, a: Any, axis: Any) -> Rows:
    shape = np.expand_dims(np.broadcast_to(np.int8(0), a.shape), axis).shape
    return _view(a, lambda d: d.reshape((d.shape[0], *shape)))


@handles(np.broadcast_to)
def _broadcast_to(model: Model, array: Any, shape: Any, **_: Any) -> Rows:
    sizes = tuple(int(n) for n in np.atleast_1d(np.asarray(shape)))
    return model.wrap(broadcast_rows(model.lift(array).d, sizes))


@handles(np.broadcast_arrays)
def _broadcast_arrays(model: Model, *args: Any, **_: Any) -> Any:
    rows = [model.lift(x) for x in args]
    shape = np.broadcast_shapes(*(x.shape for x in rows))
    return tuple(_broadcast_to(model, x, shape) for x in rows)


def _atleast(dimensions: int) -> Callable[..., Any]:
    function = (np.atleast_1d, np.atleast_2d, np.atleast_3d)[dimensions - 1]

    def handler(model: Model, *arrays: Any) -> Any:
        rows = [model.lift(a) for a in arrays]
        out = [x.reshape(function(np.broadcast_to(np.int8(0), x.shape)).shape) for x in rows]
        return out[0] if len(out) == 1 else tuple(out)

    return handler


handles(np.atleast_1d)(_atleast(1))
handles(np.atleast_2d)(_atleast(2))
handles(np.atleast_3d)(_atleast(3))


@handles(np.copy)
def _copy(model: Model, a: Any, **_: Any) -> Rows:
    return model.lift(a).copy()


class _Gather:
    """Element numbers handed to a function, and the rows gathered by what comes back.

    Number 0 is a zero that the function may put in (padding, triangles); elements count from 1.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.parts: list[Rows] = []
        self.next = 1

    def ids(self, value: Any) -> Any:
        """The numbers that stand for an array, or for each array of a list."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.ids(v) for v in value)
        rows = self.model.floats(value)
        start, self.next = self.next, self.next + rows.size
        self.parts.append(rows)
        return np.arange(start, self.next).reshape(rows.shape)

    def take(self, numbers: Any) -> Any:
        """The rows of the elements a function has put in place."""
        if isinstance(numbers, (list, tuple)):
            return type(numbers)(self.take(n) for n in numbers)
        height = max((p.d.shape[0] for p in self.parts), default=1)
        flat = [np.zeros((height, 1), dtype=self.model.real)]
        flat += [self.model.match(p.d, height).reshape(height, p.size) for p in self.parts]
        return self.model.wrap(np.concatenate(flat, axis=1)[:, np.asarray(numbers, dtype=np.intp)])


def _plain(value: Any) -> Any:
    if isinstance(value, Rows):
        return np.asarray(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(v) for v in value)
    return value


def _moved(function: Any, places: tuple[int, ...]) -> Callable[..., Any]:
    """A handler that moves the elements of the arguments at `places`."""

    def handler(model: Model, *args: Any, **kwargs: Any) -> Any:
        gather = _Gather(model)
        args = tuple(gather.ids(a) if i in places else _plain(a) for i, a in enumerate(args))
        return gather.take(function(*args, **{k: _plain(v) for k, v in kwargs.items()}))

    return handler


for _function in (
    np.roll,
    np.flip,
    np.fliplr,
    np.flipud,
    np.rot90,
    np.rollaxis,
    np.tile,
    np.repeat,
    np.take,
    np.take_along_axis,
    np.delete,
    np.diag,
    np.diagflat,
    np.diagonal,
    np.tril,
    np.triu,
    np.split,
    np.array_split,
    np.hsplit,
    np.vsplit,
    np.dsplit,
    np.vstack,
    np.hstack,
    np.dstack,
    np.column_stack,
    np.concatenate,
    np.block,
    np.trim_zeros,
    np.resize,
):
    handles(_function)(_moved(_function, (0,)))
handles(np.append)(_moved(np.append, (0, 1)))
handles(np.insert)(_moved(np.insert, (0, 2)))
handles(np.choose)(_moved(np.choose, (1,)))
handles(np.compress)(_moved(np.compress, (1,)))
handles(np.extract)(_moved(np.extract, (1,)))
handles(np.meshgrid)(_moved(np.meshgrid, tuple(range(32))))


@handles(np.concatenate)
def _concatenate(model: Model, arrays: Any, axis: Any = 0, **_: Any) -> Rows:
    rows = [model.floats(a) for a in arrays]
    if axis is None:
        rows, axis = [x.ravel() for x in rows], 0
    height = max(x.d.shape[0] for x in rows)
    axis = axis % rows[0].ndim + 1
    return model.wrap(np.concatenate([model.match(x.d, height) for x in rows], axis=axis))


@handles(np.stack)
def _stack(model: Model, arrays: Any, axis: Any = 0, **_: Any) -> Rows:
    rows = [model.floats(a) for a in arrays]
    height = max(x.d.shape[0] for x in rows)
    axis = axis % (rows[0].ndim + 1) + 1
    return model.wrap(np.stack([model.match(x.d, height) for x in rows], axis=axis))


@handles(np.pad)
def _pad(model: Model, array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    gather = _Gather(model)
    numbers = gather.ids(array)
    if mode != "constant":
        pad: Any = np.pad
        return gather.take(pad(numbers, _plain(pad_width), mode=mode, **kwargs))
    value = gather.ids(kwargs.get("constant_values", 0.0))
    return gather.take(np.pad(numbers, _plain(pad_width), constant_values=value))


@handles(np.where)
def _where(model: Model, condition: Any, /, *branches: Any) -> Any:
    from trueup.oracle.bounds.decisions import truth

    mask = truth(model.lift(condition)).v
    if not branches:
        return tuple(model.exact(i) for i in np.nonzero(mask))
    rows = [model.floats(x) for x in branches]
    height = max(x.d.shape[0] for x in rows)
    shape = np.broadcast_shapes(mask.shape, *(x.shape for x in rows))
    a, b = (broadcast_rows(model.match(x.d, height), shape) for x in rows)
    return model.wrap(np.where(mask, a, b))


@handles(np.select)
def _select(model: Model, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    out = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        out = np.where(model.lift(condition), choice, out)
    return out


@handles(np.piecewise)
def _piecewise(model: Model, x: Rows, condlist: Any, funclist: Any, *args: Any) -> Any:
    conditions = [np.asarray(c) for c in condlist]
    if len(funclist) > len(conditions):
        conditions.append(~np.any(conditions, axis=0))
    out = np.zeros_like(x)
    for condition, func in zip(conditions, funclist, strict=True):
        out[condition] = func(x[condition], *args) if callable(func) else func
    return out


@handles(np.copyto)
def _copyto(model: Model, dst: Rows, src: Any, casting: str = "", where: Any = True) -> None:
    dst[...] = src if where is True else np.where(model.lift(where), src, dst)


@handles(np.fill_diagonal)
def _fill_diagonal(model: Model, a: Rows, val: Any, wrap: bool = False) -> None:
    at = np.zeros(a.shape, dtype=bool)
    np.fill_diagonal(at, True, wrap)
    a[at] = val


@handles(np.put_along_axis)
def _put_along_axis(model: Model, arr: Rows, indices: Any, values: Any, axis: int = -1) -> None:
    numbers = np.arange(arr.size).reshape(arr.shape)
    places = np.take_along_axis(numbers, np.asarray(indices), axis=axis)
    arr[np.unravel_index(places, arr.shape)] = values


@handles(np.shape)
def _shape(model: Model, a: Any) -> tuple[int, ...]:
    return model.lift(a).shape


@handles(np.ndim)
def _ndim(model: Model, a: Any) -> int:
    return model.lift(a).ndim


@handles(np.size)
def _size(model: Model, a: Any, axis: Any = None) -> int:
    rows = model.lift(a)
    return rows.size if axis is None else int(np.prod(np.atleast_1d(rows.shape)[axis]))
