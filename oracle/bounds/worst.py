"""The worst case: a value and the largest error any order of float operations can give it.

Higham's running error analysis on two rows, the value and its error. It holds for every right
kernel that evaluates the reference's formula, and is far too wide for iterated maps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.align import aligned
from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.formats import Format, format_of, lowest_bit
from trueup.oracle.bounds.intrinsics import EXACT_AT, FAST, ULP
from trueup.oracle.bounds.model import Model
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.bounds.propagate import EXACT_MOVES, RULES
from trueup.oracle.bounds.rows import Rows
from trueup.oracle.bounds.sampled import SELECTION, joined
from trueup.oracle.bounds.sums import exact_in_any_order
from trueup.oracle.bounds.tape import Tape

Array = NDArray[Any]


class Worst(Model):
    """Row 0 the value, row 1 its largest error; one row where there is none."""

    def __init__(self, precision: Precision, tape: Tape) -> None:
        """Take decisions from `tape`."""
        super().__init__(precision, tape, 2)

    def match(self, d: Array, height: int) -> Array:
        """A value without error has the error 0."""
        if d.shape[0] == height:
            return d
        return np.concatenate([d, np.zeros_like(d)])

    def _error(self, x: Rows) -> Array:
        d = x.d
        return d[1] if d.shape[0] == 2 else np.zeros_like(d[0])

    def error(self, x: Rows) -> Array | float:
        """The error of one term of a sum."""
        return self._error(x).copy()

    def spread(self, x: Rows) -> Array | float:
        """Decisions are those of the sampled evaluation, or the natural ones."""
        return 0.0

    def made(self, value: Any, error: Any) -> Rows:
        """Rows of a value and an error; one row where there is no error."""
        value = np.asarray(value)
        error = np.broadcast_to(np.asarray(error, dtype=value.dtype), value.shape)
        if not error.any():
            return self.wrap(value[None])
        return self.wrap(np.stack([value, error]))

    def rounding(self, value: Array, error: Array, fmt: Format, ulps: float | Array) -> Array:
        """What one rounding adds: `ulps` units of the largest value there may be."""
        reach = np.abs(value) + error
        extra = ulps * fmt.u * reach + fmt.least / 2
        return np.asarray(np.where(reach >= fmt.overflow, np.inf, extra))

    def constant(self, value: Array) -> Rows:
        """A number the format does not hold: its rounding."""
        return self.stored(self.exact(value), self.fmt.name)

    def stored(self, x: Rows, fmt: str) -> Rows:
        """One more rounding."""
        to = format_of(fmt)
        error = self._error(x)
        exact = (error == 0) & to.represents(x.v)
        return self.made(x.v, np.where(exact, 0.0, error + self.rounding(x.v, error, to, 1.0)))

    def narrowed(self, x: Rows, fmt: Format) -> Rows:
        """The rounded value, and the error grown by what another value may round to."""
        error = self._error(x)
        grown = np.where(error == 0, 0.0, error + self.rounding(x.v, error, fmt, 2.0))
        return self.made(fmt.round(x.v), grown)

    def elementwise(self, ufunc: np.ufunc, operands: list[Rows]) -> Rows:
        """A continuous ufunc on floats."""
        full = aligned([self.match(x.d, 2) for x in operands])
        values, errors = [d[0] for d in full], [d[1] for d in full]
        out = np.asarray(ufunc(*values))
        if ufunc in EXACT_MOVES:
            return self.made(out, EXACT_MOVES[ufunc](errors))
        rule = RULES.get(ufunc)
        if rule is None or ufunc in SELECTION:
            raise Unsupported(f"no worst case for numpy.{ufunc.__name__}")
        moved = rule(ufunc, values, errors, out)
        ulps, absolute, exact = self._own(ufunc, values, errors, out)
        total = moved + self.rounding(out, moved, self.fmt, ulps) + absolute
        total = np.where(exact, 0.0, total)
        return self._sum_of_two(operands, out, total, exact, ufunc)

    def _own(
        self, ufunc: np.ufunc, values: list[Array], errors: list[Array], out: Array
    ) -> tuple[float | Array, float, Array]:
        clean = np.all([np.broadcast_to(e == 0, out.shape) for e in errors], axis=0)
        name = ufunc.__name__
        if name in self.approximate:
            ulp, absolute = FAST[name](values[-1])
            return 2 * ulp + 1.0, absolute, np.zeros(out.shape, dtype=bool)
        if name in EXACT_AT:
            return 2.0 * ULP[name], 0.0, clean & (values[0] == EXACT_AT[name])
        if name in ("power", "float_power"):
            whole = values[1] == np.rint(values[1])
            ulps = np.where(whole, np.maximum(2.0 * ULP[name], np.abs(values[1])), 2.0 * ULP[name])
            return ulps, 0.0, clean & whole & self.fmt.represents(out)
        if name in ULP:
            return 2.0 * ULP[name], 0.0, np.zeros(out.shape, dtype=bool)
        return 1.0, 0.0, clean & self.fmt.represents(out)

    def _sum_of_two(
        self, operands: list[Rows], out: Array, total: Array, exact: Array, ufunc: np.ufunc
    ) -> Rows:
        if ufunc is not np.add and ufunc is not np.subtract:
            return self.made(out, total)
        a, b = operands
        lazy = joined(a, b)
        if a.chain is not None or b.chain is not None:
            chain = lazy.get()
            n = chain.count - 1
            any_order = chain.errors + _gamma(n, self.fmt.u) * (chain.sizes + chain.errors)
            lucky = exact & ~(chain.sizes <= chain.low * 2.0**self.fmt.bits)
            worse = (chain.count > 2) & (~exact | lucky)
            total = np.where(worse, np.maximum(total, any_order), total)
        result = self.made(out, total)
        result.chain = lazy
        return result

    def total(self, x: Rows, axis: int) -> Rows:
        """γ of the sum of magnitudes: any order."""
        axis = axis % x.ndim
        v, e = x.v, self._error(x)
        n = x.shape[axis]
        out = np.add.reduce(v, axis=axis)
        moved = e.sum(axis=axis)
        sizes = np.abs(v).sum(axis=axis) + moved
        if n == 0:
            return self.made(out, 0.0)
        exact = (e == 0).all(axis=axis) & exact_in_any_order(
            np.moveaxis(v, axis, -1), self.sums.bits
        )
        error = np.where(exact, 0.0, moved + _gamma(n - 1, self.sums.u) * sizes)
        return self._kept(out, error)

    def running(self, x: Rows, axis: int) -> Rows:
        """As `total`, for every partial sum."""
        axis = axis % x.ndim
        v, e = x.v, self._error(x)
        out = np.add.accumulate(v, axis=axis)
        moved = np.cumsum(e, axis=axis)
        sizes = np.cumsum(np.abs(v), axis=axis) + moved
        shape = [1] * v.ndim
        shape[axis] = -1
        gamma = _gamma(np.arange(v.shape[axis]), self.sums.u).reshape(shape)
        low = np.minimum.accumulate(lowest_bit(v), axis=axis)
        exact = (moved == 0) & (sizes <= low * 2.0**self.sums.bits)
        return self._kept(out, np.where(exact, 0.0, moved + gamma * sizes))

    def matmul(self, a: Rows, b: Rows) -> Rows:
        """|A|·e_B + e_A·|B| + e_A·e_B + γ_n of the product of magnitudes."""
        a, b = self._read(a), self._read(b)
        va, ea, vb, eb = a.v, self._error(a), b.v, self._error(b)
        out = np.matmul(va, vb)
        k = va.shape[-1]
        if k == 0:
            return self.made(out, 0.0)
        reach = np.matmul(np.abs(va) + ea, np.abs(vb) + eb)
        sizes = np.matmul(np.abs(va), np.abs(vb))
        moved = np.zeros(out.shape, dtype=out.dtype)
        if ea.any() or eb.any():
            moved = np.matmul(np.abs(va) + ea, eb) + np.matmul(ea, np.abs(vb))
        low = lowest_bit(va).min(axis=-1)[..., :, None] * lowest_bit(vb).min(axis=-2)[..., None, :]
        exact = (moved == 0) & (sizes <= low * 2.0**self.sums.bits)
        error = moved + _gamma(k, self.sums.u) * reach + k * self.sums.least / 2
        return self._kept(out, np.where(exact, 0.0, error))

    def _read(self, x: Rows) -> Rows:
        if self.products.bits >= self.fmt.bits:
            return x
        rounds = 2.0 if self.precision.rounding == "truncate" else 1.0
        e = self._error(x)
        exact = (e == 0) & self.products.represents(x.v)
        grown = e + self.rounding(x.v, e, self.products, rounds)
        return self.made(x.v, np.where(exact, 0.0, grown))

    def _kept(self, out: Array, error: Array) -> Rows:
        rows = self.made(out, error)
        return self.stored(rows, self.fmt.name) if self.fmt.bits < self.sums.bits else rows

    def rowwise(self, func: Any, x: Rows, axis: int, **kwargs: Any) -> Rows:
        """Maxima and sorted values move no further than the largest error on the axis."""
        axis = axis % x.ndim
        out = np.asarray(func(x.v, axis=axis, **kwargs))
        largest = self._error(x).max(axis=axis, keepdims=True)
        if out.ndim < x.ndim:
            largest = largest.squeeze(axis)
        return self.made(out, largest)

    def solver(self, func: Any, operands: list[Rows], **kwargs: Any) -> Any:
        """Linear algebra has no running bound here."""
        raise Unsupported(f"no worst case for numpy.linalg.{func.__name__}")


def _gamma(n: Any, u: float) -> Any:
    """n·u / (1 - n·u), Higham's bound on n roundings; infinite where n·u reaches 1."""
    part = np.asarray(n, dtype=np.float64) * u
    return np.where(part < 1, part / np.where(part < 1, 1 - part, 1.0), np.inf)
