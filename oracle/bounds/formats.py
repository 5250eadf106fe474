"""Number formats: rounding to them, and the bits of a number.

Values live in float64 (long double for float64 kernels); a format says which of them a kernel
could hold, and how one that it cannot hold is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.errors import BoundsError

Array = NDArray[Any]


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: `bits` of significand, exponents `emin` to `emax`."""

    name: str
    bits: int
    emin: int
    emax: int
    native: Any = None

    @property
    def u(self) -> float:
        """The unit round-off: the largest relative error of one rounding to nearest."""
        return float(2.0**-self.bits)

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return float(2.0**self.emin)

    @property
    def least(self) -> float:
        """The smallest subnormal number."""
        return float(2.0 ** max(self.emin - self.bits + 1, -1074))

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return float((2.0 - 2.0 ** (1 - self.bits)) * 2.0**self.emax)

    @property
    def overflow(self) -> float:
        """Magnitudes from here on round to infinity."""
        if self.name == "f64":
            return float("inf")
        return float((2.0 - 2.0**-self.bits) * 2.0**self.emax)

    def round(self, x: Array) -> Array:
        """`x` rounded to nearest, ties to even, widened again."""
        x = np.asarray(x)
        if self.native is not None:
            if x.dtype == self.native:
                return x
            return x.astype(self.native).astype(x.dtype)
        return _round_bits(x, self, truncate=False)

    def truncate(self, x: Array) -> Array:
        """`x` with its surplus bits dropped, as tensor cores read float32 operands."""
        return _round_bits(np.asarray(x), self, truncate=True)

    def represents(self, x: Array) -> Array:
        """True where `x` is a number of this format (false for NaN)."""
        return np.asarray(self.round(x) == x)


def _round_bits(x: Array, fmt: Format, *, truncate: bool) -> Array:
    wide = x.dtype
    x = np.ascontiguousarray(x, dtype=np.float64)
    drop = 53 - fmt.bits
    bits = x.view(np.int64).copy().reshape(x.shape)
    if not truncate:
        bits += ((bits >> drop) & 1) + ((1 << (drop - 1)) - 1)
    bits &= -(1 << drop)
    out = bits.view(np.float64)
    small = np.abs(x) < fmt.tiny
    if small.any():
        steps = x[small] / fmt.least
        out[small] = (np.trunc(steps) if truncate else np.rint(steps)) * fmt.least
    big = np.abs(out) > fmt.largest
    if big.any():
        out[big] = np.copysign(fmt.largest if truncate else np.inf, x[big])
    odd = ~np.isfinite(x)
    if odd.any():
        out[odd] = x[odd]
    return out.astype(wide, copy=False)


_FORMATS = {
    "f64": Format("f64", 53, -1022, 1023, np.float64),
    "f32": Format("f32", 24, -126, 127, np.float32),
    "tf32": Format("tf32", 11, -126, 127),
    "tf32x3": Format("tf32x3", 22, -126, 127),  # two tf32 numbers, their lesser product left out
    "bf16": Format("bf16", 8, -126, 127),
    "f16": Format("f16", 11, -14, 15, np.float16),
}
_ALIASES = {
    "float64": "f64",
    "double": "f64",
    "float32": "f32",
    "float": "f32",
    "float16": "f16",
    "half": "f16",
    "bfloat16": "bf16",
}


def format_of(name: str) -> Format:
    """The format called `name` (f64, f32, tf32, bf16, f16)."""
    fmt = _FORMATS.get(_ALIASES.get(name, name))
    if fmt is None:
        known = ", ".join(_FORMATS)
        raise BoundsError(f"number format {name!r} is not known; use one of {known}")
    return fmt


def output_format(dtype: str) -> Format | None:
    """The format of an output's dtype; None for integers and booleans, which are never rounded."""
    name = _ALIASES.get(dtype, dtype)
    if name in _FORMATS:
        return _FORMATS[name]
    if name[:1] in ("i", "u", "b") or name.startswith(("int", "uint", "bool")):
        return None
    raise BoundsError(
        f"output dtype {dtype!r} is not known; use f64, f32, bf16, f16, an integer or bool"
    )


def lowest_bit(x: Array) -> Array:
    """The value of the lowest set bit of each number; inf for 0 and for what is not finite."""
    if x.dtype == np.longdouble and np.longdouble is not np.float64:
        high = x.astype(np.float64)
        low = (x - high).astype(np.float64)
        return np.where(low == 0, lowest_bit(high), lowest_bit(low))
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    bit = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(whole == 0, np.inf, bit)
