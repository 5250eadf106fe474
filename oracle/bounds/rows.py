"""The array a reference is evaluated on instead of `numpy.ndarray`.

`Rows.d` has a hidden leading axis. For sampled rounding its rows are the plain value, the samples
and the witnesses; for the worst case they are the value and its largest error. A leading axis of
one means that nothing is known to differ: an exact number, an integer, a truth value.
What the rows mean is the model's business; this class only makes them behave like an array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from trueup.oracle.bounds.chains import Lazy, Written, single
from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.keys import is_basic, native_key, positions
from trueup.oracle.bounds.protocols import Protocols, unpack

if TYPE_CHECKING:
    from trueup.oracle.bounds.model import Model

Array = NDArray[Any]

# Methods that are the NumPy function of the same name with the array first.
_METHODS = frozenset(
    [
        "sum",
        "mean",
        "var",
        "std",
        "max",
        "min",
        "any",
        "all",
        "argmax",
        "argmin",
        "argsort",
        "cumsum",
        "cumprod",
        "dot",
        "clip",
        "ravel",
        "swapaxes",
        "squeeze",
        "take",
        "repeat",
        "prod",
        "trace",
        "nonzero",
        "diagonal",
        "round",
        "searchsorted",
        "ptp",
        "choose",
        "compress",
        "partition",
        "argpartition",
        "conj",
    ]
)


class Rows(Protocols, NDArrayOperatorsMixin):
    """An array with rows on a hidden leading axis; everything else as `numpy.ndarray`."""

    __slots__ = ("_d", "_parent", "_view", "chain", "fused", "model")
    __array_priority__ = 1000.0
    model: Model

    def __init__(
        self,
        model: Model,
        d: Array,
        parent: Rows | None = None,
        view: Callable[[Array], Array] | None = None,
    ) -> None:
        """Rows `d`, which may be the `view` of a parent's rows."""
        self.model = model
        self._d = d
        self._parent = parent
        self._view = view
        self.chain: Lazy | Written | None = None
        self.fused: Array | None = None

    @property
    def d(self) -> Array:
        """All rows. A view follows its base when that grew from one row to all."""
        parent = self._parent
        if parent is not None and self._view is not None:
            base = parent.d
            if base.shape[0] != self._d.shape[0]:
                self._d = self._view(base)
        return self._d

    @property
    def v(self) -> Array:
        """The plain value: row 0."""
        first: Array = self.d[0]
        return first

    @property
    def shape(self) -> tuple[int, ...]:
        """As `ndarray.shape`."""
        return self._d.shape[1:]

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._d = self.reshape(shape).d
        self._parent = self._view = self.chain = None

    @property
    def ndim(self) -> int:
        """As `ndarray.ndim`."""
        return self._d.ndim - 1

    @property
    def size(self) -> int:
        """As `ndarray.size`."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype the reference sees; long double is shown as float64."""
        kind = self._d.dtype
        return np.dtype(np.float64) if kind.kind == "f" else kind

    @property
    def floating(self) -> bool:
        """True for floating-point rows, which carry rounding."""
        return self._d.dtype.kind == "f"

    @property
    def T(self) -> Any:
        """As `ndarray.T`."""
        return self.transpose()

    real = property(lambda self: self)
    imag = property(lambda self: self * 0.0)
    flat = property(lambda self: self.ravel())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Every ufunc goes to the model."""
        from trueup.oracle.bounds.dispatch import call_ufunc

        return call_ufunc(self.model, ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Every other NumPy function goes through the table of handlers."""
        from trueup.oracle.bounds.dispatch import call_function

        return call_function(self.model, func, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        """Integers and truth values are exact and may leave; floats never leave silently."""
        if self.floating:
            raise Unsupported("a value left the array type: numpy asked for a plain array")
        return np.array(self.v, dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        """A method that is the NumPy function of the same name."""
        if name in _METHODS:
            return functools.partial(getattr(np, name), self)
        raise AttributeError(f"the bounds array type has no attribute {name!r}")

    def __getitem__(self, key: Any) -> Rows:
        """As `ndarray[key]`: a view where NumPy gives one."""
        key = native_key(key)
        basic = is_basic(key)
        full = (slice(None), *(key if basic else positions(key, self.shape)))
        part = self.d[full]
        out = Rows(self.model, part)
        if basic and part.ndim > 1:
            out._parent, out._view = self, lambda base: base[full]
        if self.chain is not None:
            chain, inner, shape = self.chain, full[1:], self.shape
            out.chain = Lazy(lambda: chain.get().expanded(shape).map(lambda f: f[inner]))
        return out

    def __setitem__(self, key: Any, value: Any) -> None:
        """As `ndarray[key] = value`; one row grows to all where needed."""
        key = native_key(key)
        if not self.floating:
            self._d[0][key] = self.model.integers(value)
            return
        inner = key if is_basic(key) else positions(key, self.shape)
        rows = self.model.floats(value)
        if rows.d.shape[0] > self.d.shape[0]:
            self.grow()
        self._put((slice(None), *inner), rows.d)
        self._put_chain(inner, rows)

    def _put(self, full: tuple[Any, ...], d: Array) -> None:
        base = self.d
        if not base.flags.writeable:
            raise ValueError("assignment destination is read-only")
        d = self.model.assignable(d, base.shape[0])
        room = base[full].ndim
        while d.ndim > room and d.shape[1] == 1:
            d = d[:, 0]
        if d.ndim < room:
            d = d.reshape((d.shape[0],) + (1,) * (room - d.ndim) + d.shape[1:])
        base[full] = d

    def _put_chain(self, inner: tuple[Any, ...], rows: Rows) -> None:
        parent = self._parent
        while parent is not None:
            parent.chain = None
            parent = parent._parent
        if self.chain is None and rows.chain is None:
            return
        if rows.ndim == self.ndim and rows.shape == self.shape and rows.chain is None:
            self.chain = None
            return
        if not isinstance(self.chain, Written):
            self.chain = Written(self.terms(), self.shape)
        self.chain.write(inner, rows.terms())

    def grow(self) -> None:
        """Give a single row all of them, so that it can hold values with rounding."""
        if self._parent is not None and self._parent.d.shape[0] != self.model.height:
            self._parent.grow()
        if self.d.shape[0] != self.model.height:
            self._d = np.array(self.model.full(self.d))
            self._parent = self._view = None

    def terms(self) -> Lazy:
        """What this value has added up so far; by itself it is one term."""
        if isinstance(self.chain, Written):
            so_far = self.chain.get().broadcast(self.shape)  # parts may be written over later
            return Lazy(lambda: so_far)
        if self.chain is not None:
            return self.chain
        v, exact, error = self.v.copy(), self.d.shape[0] == 1, self.model.error(self)
        return Lazy(lambda: single(v, exact, error))

    def replace(self, other: Rows) -> Rows:
        """In-place assignment of a result: `x += y`."""
        if self.ndim == 0:
            return other  # a NumPy scalar is not changed in place, its name is bound anew
        self[...] = other
        self.chain = other.chain
        return self

    def reshape(self, *shape: Any, order: str = "C", **_: Any) -> Rows:
        """As `ndarray.reshape`."""
        return _reshape(self, shape, order)

    def transpose(self, *axes: Any) -> Any:
        """As `ndarray.transpose`."""
        out: Any = np.transpose(self, unpack(axes) or None)
        return out

    def flatten(self, order: str = "C") -> Rows:
        """As `ndarray.flatten`."""
        flat: Rows = self.reshape(-1, order=order)
        return flat.copy()

    def copy(self, order: str = "C") -> Rows:
        """As `ndarray.copy`."""
        out = Rows(self.model, self.d.copy())
        out.chain = self.terms() if self.chain is not None else None
        return out

    def astype(self, dtype: Any, **_: Any) -> Rows:
        """As `ndarray.astype`; a narrower float rounds every row."""
        return self.model.cast(self, dtype)

    def fill(self, value: Any) -> None:
        """As `ndarray.fill`."""
        self[...] = value


def _reshape(x: Rows, shape: Any, order: str) -> Rows:
    shape = unpack(shape)
    sizes = tuple(int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
    target = np.broadcast_to(np.int8(0), x.shape).reshape(sizes).shape
    if order == "F":
        turned = tuple(range(x.ndim, 0, -1))
        flat = x.d.transpose(0, *turned).reshape((-1, *target[::-1]))
        return Rows(x.model, flat.transpose(0, *range(len(target), 0, -1)))

    def view(d: Array) -> Array:
        return d.reshape((d.shape[0], *target))

    out = Rows(x.model, view(x.d))
    if np.shares_memory(out._d, x.d) if x.size else False:
        out._parent, out._view = x, view
    return out
