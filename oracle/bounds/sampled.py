"""Sampled rounding: the noise of elementwise operations.

Rows: the plain value, then samples in which every operation of the declared precision gets a
random relative rounding, then witnesses that round to nearest after every operation. Where the
arithmetic is exact there is no noise: operands known exactly and a result the format holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds import products, sums
from trueup.oracle.bounds.align import aligned
from trueup.oracle.bounds.chains import Chain, Lazy
from trueup.oracle.bounds.errors import Unsupported
from trueup.oracle.bounds.formats import Format, format_of
from trueup.oracle.bounds.intrinsics import EXACT_AT, FAST, ULP
from trueup.oracle.bounds.model import Model
from trueup.oracle.bounds.orders import WITNESSES
from trueup.oracle.bounds.precision import Precision
from trueup.oracle.bounds.rows import Rows
from trueup.oracle.bounds.tape import Tape

Array = NDArray[Any]

_ARITHMETIC = {np.add, np.subtract, np.multiply, np.divide, np.sqrt, np.square, np.reciprocal}
SELECTION = {
    np.negative,
    np.positive,
    np.absolute,
    np.fabs,
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
    np.copysign,
    np.conjugate,
}


class Sampled(Model):
    """Rows of one value, `samples` noisy evaluations and one witness per order."""

    def __init__(
        self,
        precision: Precision,
        tape: Tape,
        *,
        samples: int,
        seed: tuple[int, ...],
        orders: tuple[str, ...] = WITNESSES,
        plain: bool = True,
    ) -> None:
        """Take `samples` noisy rows and one witness for each of `orders`."""
        first = 1 if plain else 0
        super().__init__(precision, tape, first + samples + len(orders))
        self.plain = plain
        self.samples = samples
        self.orders = orders
        self.fma = "fma" in orders
        self.s = slice(first, first + samples)
        self.w = slice(first + samples, None)
        self.rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))

    def match(self, d: Array, height: int) -> Array:
        """One row stands for all."""
        if d.shape[0] == height:
            return d
        return np.broadcast_to(d, (height, *d.shape[1:]))

    def assignable(self, d: Array, height: int) -> Array:
        """One row is written to all by broadcasting."""
        return d

    def rows(self, out: Array) -> Array:
        """All rows, writable."""
        return out if out.shape[0] == self.height and out.flags.owndata else self.full(out).copy()

    def uniform(self, shape: tuple[int, ...], amplitude: float = 1.0) -> Array:
        """Random numbers between minus and plus the amplitude, one set per sample."""
        xi = self.rng.random((self.samples, *shape), dtype=np.float32)
        xi -= np.float32(0.5)
        xi *= np.float32(2.0 * amplitude)
        return xi

    def clean(self, x: Rows) -> Array | bool:
        """True where a value is known exactly: its samples agree with it."""
        d = x.d
        if d.shape[0] == 1 or not self.samples:
            return True
        first = self.s.start
        agree = d[0] == d[first]
        return np.asarray(agree & (d[0] == d[first + 1]) if self.samples > 1 else agree)

    def finish(
        self,
        out: Array,
        exact: Array | bool,
        amplitude: float | Array,
        *,
        size: Array | None = None,
        fmt: Format | None = None,
        absolute: float = 0.0,
        underflow: bool = True,
    ) -> Rows:
        """Give a raw result its noise, relative to itself or to `size`, and round its witnesses."""
        fmt = fmt or self.fmt
        whole = exact is True or bool(np.all(exact))
        if whole and out.shape[0] == 1:
            return self.wrap(out)
        if not whole or out.shape[0] != 1:
            out = self.rows(out)
        if self.samples and not whole:
            self._perturb(out, exact, amplitude, size, absolute)
        self._edges(out, exact, fmt, underflow)
        out[self.w] = fmt.round(out[self.w])
        return self.wrap(out)

    def _perturb(
        self,
        out: Array,
        exact: Array | bool,
        amplitude: float | Array,
        size: Array | None,
        absolute: float,
    ) -> None:
        noisy = out[self.s]
        scalar = isinstance(amplitude, float)
        xi = self.uniform(out.shape[1:], amplitude if isinstance(amplitude, float) else 1.0)
        if exact is not False and np.any(exact):
            xi *= ~np.asarray(exact)
        step = xi if scalar else xi * amplitude
        if size is None:
            noisy *= np.add(step, 1.0, dtype=self.real)  # not x + x·ξ: infinity stays infinity
        else:
            noisy += step * np.where(np.isfinite(size), size, 0.0)
        if absolute:
            extra = self.uniform(out.shape[1:], 1.0)
            noisy += extra * (absolute * ~np.asarray(exact))

    def _edges(self, out: Array, exact: Array | bool, fmt: Format, underflow: bool) -> None:
        size = np.abs(out[0])
        if not size.size:
            return
        if not float(size.max()) < fmt.largest / 4:  # NaN as well
            noisy = out[self.s]
            over = np.abs(noisy) >= fmt.overflow
            if over.any():
                noisy[over] = np.copysign(np.inf, noisy[over])
        if underflow and self.samples:
            under = (size < fmt.tiny) & (size > 0) & ~np.asarray(exact)
            if under.any():
                out[self.s] += self.uniform(out.shape[1:], fmt.least / 2) * under

    def constant(self, value: Array) -> Rows:
        """One rounding, the same at every use."""
        return self.finish(value[None].copy(), self.fmt.represents(value), self.fmt.u)

    def error(self, x: Rows) -> Array | float:
        """Samples carry the errors themselves."""
        return 0.0

    def spread(self, x: Rows) -> Array | float:
        """Root mean square of the samples, or the largest witness where that is far larger."""
        if x.d.shape[0] == 1 or not self.samples:
            return 0.0
        off = x.d[self.s] - x.v
        w = np.sqrt(np.mean(off * off, axis=0))
        if self.orders:
            e = np.abs(x.d[self.w] - x.v).max(axis=0)
            w = np.where(e > 3 * w, e, w)
        return np.asarray(w)

    def stored(self, x: Rows, fmt: str) -> Rows:
        """One more rounding, to a named format."""
        to = format_of(fmt)
        if to.bits >= self.fmt.bits:
            return x
        exact = to.represents(x.v) & self.clean(x)
        return self.finish(x.d.copy(), exact, to.u, fmt=to)

    def narrowed(self, x: Rows, fmt: Format) -> Rows:
        """Every row rounded, the plain value as well."""
        return self.wrap(fmt.round(x.d))

    def elementwise(self, ufunc: np.ufunc, operands: list[Rows]) -> Rows:
        """A continuous ufunc on floats."""
        raw = aligned([self._operand(x, ufunc) for x in operands])
        out = ufunc(*raw)
        if ufunc in SELECTION:
            return self.wrap(out)
        clean: Array | bool = True
        for x in operands:
            clean = clean & self.clean(x)
        if ufunc in _ARITHMETIC and ufunc.__name__ not in self.approximate:
            return self._arithmetic(ufunc, operands, out, clean)
        exact, amplitude, absolute = self._library(ufunc, operands, out, clean)
        return self.finish(out, exact, amplitude, absolute=absolute)

    def _operand(self, x: Rows, ufunc: np.ufunc) -> Array:
        if self.fma and x.fused is not None and ufunc in (np.add, np.subtract):
            return x.fused
        return x.d

    def _arithmetic(
        self, ufunc: np.ufunc, operands: list[Rows], out: Array, clean: Array | bool
    ) -> Rows:
        exact: Array | bool = self.fmt.represents(out[0]) & clean
        size: Array | None = None
        chain: Lazy | None = None
        if ufunc is np.add or ufunc is np.subtract:
            a, b = operands
            chain = joined(a, b)
            if a.chain is not None or b.chain is not None:
                exact, size = _in_a_chain(chain.get(), exact, out[0], self.fmt)
        fused = out.copy() if self.fma and ufunc is np.multiply else None
        result = self.finish(out, exact, self.fmt.u, size=size, underflow=chain is None)
        result.chain, result.fused = chain, fused
        return result

    def _library(
        self, ufunc: np.ufunc, operands: list[Rows], out: Array, clean: Array | bool
    ) -> tuple[Array | bool, float | Array, float]:
        name = ufunc.__name__
        v = operands[0].v
        if name in self.approximate:
            ulp, absolute = FAST[name](operands[-1].v)
            return np.zeros(out.shape[1:], dtype=bool), 2 * ulp * self.fmt.u + self.fmt.u, absolute
        if name not in ULP:
            raise Unsupported(f"numpy.{name} is not followed")
        amplitude: float | Array = 2.0 * ULP[name] * self.fmt.u
        if name in ("power", "float_power"):
            exact, amplitude = self._power(operands, out, clean)
            return exact, amplitude, 0.0
        if name in EXACT_AT:
            return (v == EXACT_AT[name]) & clean, amplitude, 0.0
        return np.zeros(out.shape[1:], dtype=bool), amplitude, 0.0

    def _power(
        self, operands: list[Rows], out: Array, clean: Array | bool
    ) -> tuple[Array | bool, float | Array]:
        x, y = (operand.v for operand in operands)
        whole = (y == np.rint(y)) & np.isfinite(y)
        plain = (x == 1) | (y == 0) | (y == 1) | (whole & self.fmt.represents(out[0]))
        u = self.fmt.u
        turns = np.where(y == 2, u, np.maximum(2.0 * ULP["power"] * u, np.abs(y) * u))
        amplitude = np.where(whole, turns, 2.0 * ULP["power"] * u)
        return np.broadcast_to(plain, out.shape[1:]) & clean, amplitude

    def total(self, x: Rows, axis: int) -> Rows:
        """The sum over one axis."""
        return sums.total(self, x, axis)

    def running(self, x: Rows, axis: int) -> Rows:
        """The cumulative sum over one axis."""
        return sums.running(self, x, axis)

    def matmul(self, a: Rows, b: Rows) -> Rows:
        """The matrix product."""
        return products.matmul(self, a, b)

    def rowwise(self, func: Any, x: Rows, axis: int, **kwargs: Any) -> Rows:
        """Every row selects by itself: max, min and sort are continuous."""
        return self.wrap(np.asarray(func(x.d, axis=axis % x.ndim + 1, **kwargs)))

    def solver(self, func: Any, operands: list[Rows], **kwargs: Any) -> Any:
        """Linear algebra by perturbed operands."""
        return products.solver(self, func, operands, **kwargs)


def joined(a: Rows, b: Rows) -> Lazy:
    """The chain of `a + b`."""
    left, right = a.terms(), b.terms()
    return Lazy(lambda: left.get().join(right.get()))


def _in_a_chain(
    chain: Chain, exact: Array | bool, v: Array, fmt: Format
) -> tuple[Array | bool, Array]:
    many = chain.count > 2
    in_any_order = chain.sizes <= chain.low * 2.0**fmt.bits
    size = np.where(many, np.maximum(np.abs(v), np.sqrt(chain.squares)), np.abs(v))
    return exact & (~many | in_any_order), size
