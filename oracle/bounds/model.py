"""What the rows of an array mean: the base of sampled rounding and of the worst case."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError, Oversized, Unsupported
from trueup.oracle.bounds.formats import Format, format_of
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.bounds.rows import Rows
from trueup.oracle.bounds.tape import Tape

Array = NDArray[Any]

# Elements an array may have: a gibibyte for its value, two samples and four witnesses.
LARGEST = 2**30 // (8 * 7)


def value_dtype(precision: Precision) -> Any:
    """The dtype values are kept in: wide enough that the value is exact next to the kernel."""
    if precision.elementwise.name != "f64":
        return np.float64
    if np.finfo(np.longdouble).nmant < 63:
        raise BoundsError(
            "a float64 kernel needs a value more exact than float64, and long double is not wider "
            "on this machine; judge it on x86-64, or declare precision.storage = 'f32'"
        )
    return np.longdouble


class Model(ABC):
    """Operations on rows. `height` is the number of rows of a value that carries rounding."""

    plain = True  # row 0 is the plain value, equal bit by bit to running the reference

    def __init__(self, precision: Precision, tape: Tape, height: int) -> None:
        """Take decisions from `tape`; a value with rounding has `height` rows."""
        self.precision = precision
        self.tape = tape
        self.height = height
        self.real = value_dtype(precision)
        self.fmt: Format = precision.elementwise
        self.sums: Format = precision.sums
        self.products: Format = precision.products
        self.approximate = frozenset(precision.approximate)
        self.largest = 0
        self.notes: set[str] = set()
        self._constants: dict[bytes, Rows] = {}

    def room(self, *shapes: tuple[int, ...]) -> None:
        """Refuse an array of the broadcast shape before memory is spent on it."""
        size = math.prod(np.broadcast_shapes(*shapes))
        if size > LARGEST:
            raise Oversized(f"an intermediate of {size} elements is too large to sample")

    def wrap(self, d: Array) -> Rows:
        """Rows of these values."""
        size = d.size // d.shape[0] if d.shape[0] else 0
        if size > self.largest:
            self.largest = size
        return Rows(self, d)

    def exact(self, value: Any) -> Rows:
        """One row: integers, truth values, numbers known exactly."""
        return self.wrap(np.asarray(value)[None])

    def lift(self, value: Any) -> Rows:
        """A plain number or array; a float that is no number of the format is a constant."""
        if isinstance(value, Rows):
            return value
        array = _plain(value, self)
        if isinstance(array, Rows):
            return array
        if array.dtype.kind in "biu":
            return self.exact(array)
        if array.dtype.kind == "c":
            raise Unsupported("complex numbers are not followed")
        if array.dtype.kind != "f":
            raise Unsupported(f"an array of dtype {array.dtype} takes part in the arithmetic")
        return self._float(array.astype(self.real))

    def _float(self, array: Array) -> Rows:
        if bool(((self.fmt.round(array) == array) | (array != array)).all()):
            return self.exact(array.copy())
        key = array.tobytes() + repr(array.shape).encode()
        if key not in self._constants:
            self._constants[key] = self.constant(array)
        kept = self._constants[key]
        return Rows(self, kept.d.copy()) if kept.ndim else Rows(self, kept.d)

    def floats(self, value: Any) -> Rows:
        """As `lift`, with integers and truth values turned into numbers."""
        rows = self.lift(value)
        if rows.floating:
            return rows
        return self._float(rows.v.astype(self.real))

    def integers(self, value: Any) -> Array:
        """A plain integer or boolean array; floats are truncated, which is a decision."""
        from trueup.oracle.bounds.decisions import step

        rows = self.lift(value)
        if rows.floating:
            rows = step(self, np.trunc, rows)
            return np.asarray(rows.v.astype(np.float64).astype(np.int64))
        return rows.v

    def cast(self, x: Rows, dtype: Any) -> Rows:
        """`astype`."""
        kind = as_dtype(dtype)
        if kind.kind == "b":
            from trueup.oracle.bounds.decisions import truth

            return truth(x)
        if kind.kind in "iu":
            return self.exact(self.integers(x).astype(kind))
        if kind.kind != "f":
            raise Unsupported(f"astype({kind}) is not followed")
        rows = self.floats(x)
        if kind.itemsize < 8:
            return self.narrowed(rows, format_of({2: "f16", 4: "f32"}[kind.itemsize]))
        return rows if rows is not x else x.copy()

    def full(self, d: Array) -> Array:
        """All rows of a value of which one is given (a view where possible)."""
        return self.match(d, self.height)

    @abstractmethod
    def match(self, d: Array, height: int) -> Array:
        """`d` ready to stand beside a value of `height` rows."""

    def assignable(self, d: Array, height: int) -> Array:
        """As `match`, where NumPy's own broadcasting may do the rest."""
        return self.match(d, height)

    @abstractmethod
    def constant(self, value: Array) -> Rows:
        """A number the format does not hold: one rounding, the same at every use."""

    @abstractmethod
    def error(self, x: Rows) -> Array | float:
        """The known error of a value, for sums in loops (0 where samples carry it)."""

    @abstractmethod
    def spread(self, x: Rows) -> Array | float:
        """How far a value may lie from where it is, for decisions."""

    def apart(self, a: Array, b: Array) -> Array | float:
        """How far the difference of two values' rows may lie from where it is."""
        return self.spread(Rows(self, a - b))

    @abstractmethod
    def elementwise(self, ufunc: np.ufunc, operands: list[Rows]) -> Rows:
        """A continuous ufunc on floats."""

    @abstractmethod
    def total(self, x: Rows, axis: int) -> Rows:
        """The sum over one axis."""

    @abstractmethod
    def running(self, x: Rows, axis: int) -> Rows:
        """The cumulative sum over one axis."""

    @abstractmethod
    def matmul(self, a: Rows, b: Rows) -> Rows:
        """The matrix product of operands of at least two dimensions."""

    @abstractmethod
    def rowwise(self, func: Any, x: Rows, axis: int, **kwargs: Any) -> Rows:
        """A selection along an axis that moves no further than its operands: max, min, sort."""

    @abstractmethod
    def stored(self, x: Rows, fmt: str) -> Rows:
        """One more rounding, to a named format."""

    @abstractmethod
    def narrowed(self, x: Rows, fmt: Format) -> Rows:
        """The reference itself rounds to a narrower format, the plain value as well."""

    @abstractmethod
    def solver(self, func: Any, operands: list[Rows], **kwargs: Any) -> Any:
        """A function of linear algebra, by perturbed operands."""

    def anchor(self, rows: Rows, native: Any) -> Rows:
        """The rows with the plain value replaced by NumPy's own, bit by bit."""
        if self.plain:
            native = np.asarray(native)
            if rows.d.shape[0] == 1:
                return rows if np.array_equal(rows.v, native) else self.exact(native)
            rows.d[0] = native
        return rows


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """The dtype of anything a reference may pass as one."""
    if getattr(dtype, "stands_for", None) is not None:
        return np.dtype(str(dtype.stands_for))
    own = getattr(dtype, "dtype", None)
    kind: np.dtype[Any] = own if isinstance(own, np.dtype) else np.dtype(dtype)
    return kind


def _plain(value: Any, model: Model) -> Any:
    if isinstance(value, (list, tuple)) and _holds_rows(value):
        return np.stack([model.floats(v) if _any_float(value) else model.lift(v) for v in value])
    if isinstance(value, (list, tuple, int, float, np.ndarray, np.generic)):
        return np.asarray(value)
    raise Unsupported(f"a {type(value).__name__} takes part in the arithmetic")


def _holds_rows(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_rows(v) for v in value)
    return isinstance(value, Rows)


def _any_float(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_any_float(v) for v in value)
    return isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "i") == "f"
