"""Functions that make arrays, for the namespace a reference sees instead of NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.oracle.bounds.dispatch import handles
from trueup.oracle.bounds.model import as_dtype
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model


def _sizes(shape: Any) -> tuple[int, ...]:
    parts = shape if isinstance(shape, (tuple, list)) else np.atleast_1d(np.asarray(shape)).tolist()
    return tuple(int(n) for n in parts)


def _filled(model: Model, shape: Any, value: Any, dtype: Any) -> Rows:
    kind = as_dtype(dtype)
    if kind.kind == "f":
        rows = model.floats(value)
        full = np.broadcast_to(
            rows.d.reshape(rows.d.shape[:1] + (1,) * (len(_sizes(shape)) - rows.ndim) + rows.shape),
            (rows.d.shape[0], *_sizes(shape)),
        )
        return model.wrap(np.array(full))
    if kind.kind not in "biu":
        return model.lift(np.full(_sizes(shape), value, dtype=kind))
    return model.exact(np.full(_sizes(shape), model.integers(value), dtype=kind))


class Makers:
    """`zeros`, `ones`, `full`, `array`, …: floats become rows, integers exact rows."""

    def __init__(self, model: Model) -> None:
        """Make arrays of one model."""
        self._model = model

    def zeros(self, shape: Any, dtype: Any = float, *_: Any, **__: Any) -> Rows:
        """As `numpy.zeros`."""
        return _filled(self._model, shape, 0, dtype)

    def ones(self, shape: Any, dtype: Any = float, *_: Any, **__: Any) -> Rows:
        """As `numpy.ones`."""
        return _filled(self._model, shape, 1, dtype)

    def empty(self, shape: Any, dtype: Any = float, *_: Any, **__: Any) -> Rows:
        """As `numpy.empty`, filled with NaN so that an element never written shows."""
        fill = float("nan") if as_dtype(dtype).kind == "f" else 0
        return _filled(self._model, shape, fill, dtype)

    def full(self, shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Rows:
        """As `numpy.full`."""
        dtype = self._model.lift(fill_value).dtype if dtype is None else dtype
        return _filled(self._model, shape, fill_value, dtype)

    def eye(self, N: int, M: int | None = None, k: int = 0, dtype: Any = float, **_: Any) -> Rows:
        """As `numpy.eye`."""
        return self._model.lift(np.eye(int(N), M if M is None else int(M), int(k), as_dtype(dtype)))

    def identity(self, n: int, dtype: Any = float, **_: Any) -> Rows:
        """As `numpy.identity`."""
        return self.eye(n, dtype=dtype)

    def array(self, value: Any, dtype: Any = None, copy: Any = True, **more: Any) -> Rows:
        """As `numpy.array`."""
        rows = self._model.lift(value)
        if dtype is not None:
            rows = rows.astype(dtype)
        elif copy is True and rows is value:
            rows = rows.copy()
        missing = int(more.get("ndmin", 0)) - rows.ndim
        return rows.reshape((1,) * missing + rows.shape) if missing > 0 else rows

    def asarray(self, value: Any, dtype: Any = None, *_: Any, **__: Any) -> Rows:
        """As `numpy.asarray`."""
        rows = self._model.lift(value)
        same = dtype is None or as_dtype(dtype) == rows.dtype
        return rows if same else rows.astype(dtype)

    asanyarray = asarray
    ascontiguousarray = asarray
    asfortranarray = asarray

    def asarray_chkfinite(self, value: Any, dtype: Any = None, **_: Any) -> Rows:
        """As `numpy.asarray_chkfinite`."""
        rows = self.asarray(value, dtype)
        if not np.isfinite(rows.v).all():
            raise ValueError("array must not contain infs or NaNs")
        return rows

    def zeros_like(self, a: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Rows:
        """As `numpy.zeros_like`."""
        return self._like(a, 0, dtype, shape)

    def ones_like(self, a: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Rows:
        """As `numpy.ones_like`."""
        return self._like(a, 1, dtype, shape)

    def empty_like(self, a: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Rows:
        """As `numpy.empty_like`, filled with NaN."""
        rows = self._model.lift(a)
        return self.empty(rows.shape if shape is None else shape, dtype or rows.dtype)

    def full_like(
        self, a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, **_: Any
    ) -> Rows:
        """As `numpy.full_like`."""
        return self._like(a, fill_value, dtype, shape)

    def _like(self, a: Any, value: Any, dtype: Any, shape: Any) -> Rows:
        rows = self._model.lift(a)
        shape = rows.shape if shape is None else shape
        return _filled(self._model, shape, value, rows.dtype if dtype is None else dtype)

    def arange(self, *args: Any, dtype: Any = None, **_: Any) -> Rows:
        """As `numpy.arange`; a step that is no integer gives start + i·step."""
        bounds = [self._model.lift(a) for a in args]
        if not any(b.floating for b in bounds):
            return self._model.lift(
                np.arange(*(int(b) for b in bounds), dtype=dtype and as_dtype(dtype))
            )
        start, step = _bounds(self._model, bounds)
        count = np.arange(*(float(b.v) for b in bounds)).shape[0]
        out = start + self._model.exact(np.arange(count)) * step
        return self._model.anchor(out, np.arange(*(float(b.v) for b in bounds)))

    def linspace(
        self, start: Any, stop: Any, num: Any = 50, endpoint: bool = True, **more: Any
    ) -> Any:
        """As `numpy.linspace` of numbers."""
        model, count = self._model, int(num)
        a, b = model.floats(start), model.floats(stop)
        gaps = max(count - 1 if endpoint else count, 1)
        step = (b - a) / gaps
        out = a + model.exact(np.arange(count)) * step
        out = model.anchor(out, np.linspace(a.v, b.v, count, endpoint))
        return (out, step) if more.get("retstep") else out

    def fromiter(self, values: Any, dtype: Any = None, *_: Any, **__: Any) -> Rows:
        """As `numpy.fromiter`."""
        return self.array(list(values), dtype)

    def tri(self, N: int, M: int | None = None, k: int = 0, dtype: Any = float, **_: Any) -> Rows:
        """As `numpy.tri`."""
        return self._model.lift(np.tri(int(N), M, int(k), as_dtype(dtype)))

    def isscalar(self, value: Any) -> bool:
        """As `numpy.isscalar`."""
        return value.ndim == 0 if isinstance(value, Rows) else bool(np.isscalar(value))

    def vectorize(self, pyfunc: Any, *_: Any, **__: Any) -> Any:
        """As `numpy.vectorize`: the function is called element by element."""

        def call(*args: Any) -> Any:
            rows = np.broadcast_arrays(*(self._model.lift(a) for a in args))
            shape = rows[0].shape
            out = [pyfunc(*(x[i] for x in rows)) for i in np.ndindex(shape)]
            return self.array(out).reshape(shape)

        return call


def _bounds(model: Model, bounds: list[Rows]) -> tuple[Rows, Rows]:
    zero, one = model.exact(np.zeros((), dtype=model.real)), model.exact(np.ones((), model.real))
    if len(bounds) == 1:
        return zero, one
    parts = [model.floats(b) for b in bounds]
    return parts[0], parts[2] if len(parts) > 2 else one


def _like(name: str) -> Any:
    def handler(model: Model, a: Any, *args: Any, **kwargs: Any) -> Rows:
        made: Rows = getattr(Makers(model), name)(a, *args, **kwargs)
        return made

    return handler


handles(np.zeros_like, floats=True)(_like("zeros_like"))
handles(np.ones_like, floats=True)(_like("ones_like"))
handles(np.empty_like, floats=True)(_like("empty_like"))
handles(np.full_like, floats=True)(_like("full_like"))
