"""From samples and witnesses to the allowed error of every element: one rule for everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.formats import Format, output_format

Array = NDArray[Any]

# Below 1e-9 false alarms per element with 32 samples, measured on right kernels of 34 equations.
FACTOR = 6.0
# A witness this many spreads away shows rounding that is systematic and not random.
SYSTEMATIC = 3.0
# The share of such elements from which a whole output counts as systematic.
SYSTEMATIC_SHARE = 0.01

INFINITE, NOT_A_NUMBER = 1, 2


@dataclass
class Samples:
    """What the rows of one output of one outcome came to, over all chunks."""

    value: Array
    squares: Array = field(init=False)
    counted: Array = field(init=False)
    witness: Array = field(init=False)
    flags: Array = field(init=False)
    scales: list[float] = field(default_factory=list)
    witness_scale: float = 0.0

    def __post_init__(self) -> None:
        """Start with nothing counted."""
        shape = self.value.shape
        self.squares = np.zeros(shape)
        self.counted = np.zeros(shape, dtype=np.int64)
        self.witness = np.zeros(shape)
        self.flags = np.zeros(shape, dtype=np.uint8)

    def add(self, samples: Array, witnesses: Array) -> None:
        """Take in some samples and witnesses (rows of this output)."""
        self._flag(samples)
        self._flag(witnesses)
        value = numeric(self.value)
        apart = numeric(samples) - value
        off = _finite(apart)
        self.squares += (off * off).sum(axis=0)
        self.counted += np.isfinite(apart).sum(axis=0)
        away = _finite(numeric(witnesses) - value)
        if len(away):
            self.witness = np.maximum(self.witness, np.abs(away).max(axis=0))
        base, power = self._base()
        if power > 0:
            self.scales += [float(s) for s in _scales(off, base, power)]
            self.witness_scale = max(
                [self.witness_scale, *(abs(float(s)) for s in _scales(away, base, power))]
            )

    def _base(self) -> tuple[Array, float]:
        base = _finite(numeric(self.value))
        return base, float((base * base).sum())

    def _flag(self, rows: Array) -> None:
        if len(rows):
            finite = np.isfinite(self.value)
            self.flags |= ((np.isinf(rows).any(axis=0) & finite) * INFINITE).astype(np.uint8)
            self.flags |= ((np.isnan(rows).any(axis=0) & finite) * NOT_A_NUMBER).astype(np.uint8)

    def spread(self) -> Array:
        """Root mean square error of the finite samples; infinite where there is none."""
        with np.errstate(all="ignore"):
            w = np.sqrt(self.squares / np.maximum(self.counted, 1))
        return np.where((self.counted == 0) & (self.flags != 0), np.inf, w)

    def coherent(self, fmt: Format | None, size: Array) -> float:
        """The spread of Σ error·value / Σ value².

        The samples are joint, so theirs is known; but equal elements are rounded equally by a
        kernel, and independently in a sample. So the spread is at least what it would be if
        elements of one magnitude had the same error.
        """
        base, power = self._base()
        if power == 0:
            return 0.0
        spread = float(np.sqrt(np.mean(np.square(self.scales)))) if self.scales else 0.0
        size = _finite(np.asarray(size, dtype=np.float64))
        if fmt is not None and not bool(fmt.represents(base).all()):
            half = np.maximum(fmt.u * np.abs(base).astype(np.float64), fmt.least / 2.0)
            rounding = half / 3.0**0.5
            spread = float(np.hypot(spread, np.sqrt(((rounding * base) ** 2).sum()) / power))
            size = np.hypot(size, rounding)
        reach = np.abs(base).astype(np.float64).ravel()
        _, group = np.unique(reach, return_inverse=True)
        together = np.bincount(group.ravel(), weights=size.ravel() * reach)
        alike = float(np.sqrt((together**2).sum())) / power
        return max(spread, alike, self.witness_scale / 3.0)


def numeric(x: Array) -> Array:
    """Integers and truth values as numbers that can be subtracted."""
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def _finite(x: Array) -> Array:
    return np.where(np.isfinite(x), x, 0.0)


def _scales(off: Array, base: Array, power: float) -> Array:
    flat: Array = off.reshape(len(off), base.size) @ base.reshape(-1)
    return flat / power


def apartness(samples: Samples) -> float:
    """How many spreads the farthest witness is away (0 where there is no spread)."""
    w, e = samples.spread(), samples.witness
    far = e[(w > 0) & np.isfinite(w)] / w[(w > 0) & np.isfinite(w)]
    return float(far.max()) if far.size else 0.0


@dataclass(frozen=True)
class Alternative:
    """What one outcome of one form allows for one output."""

    form: int
    outcome: int
    value: Array
    allowed: Array
    worst: Array
    spread: Array
    flags: Array
    systematic: bool
    coherent: float

    def merged(self, other: Alternative) -> Alternative:
        """Two alternatives of the same value allow what either allows."""
        wider = other.allowed > self.allowed
        return Alternative(
            self.form,
            self.outcome,
            self.value,
            np.where(wider, other.allowed, self.allowed),
            np.maximum(self.worst, other.worst),
            np.where(wider, other.spread, self.spread),
            self.flags | other.flags,
            self.systematic or other.systematic,
            max(self.coherent, other.coherent),
        )


def alternative(
    samples: Samples, worst: Array, dtype: str, *, form: int, outcome: int
) -> Alternative:
    """The rule: 6·(w, or e where e > 3·w) plus the rounding of the output."""
    fmt = output_format(dtype)
    value = samples.value
    w, e = samples.spread(), samples.witness
    apart = e > SYSTEMATIC * w
    s = np.where(apart, e, w)
    rounding = _output_rounding(value, w, e, s, fmt)
    allowed = FACTOR * s + rounding
    systematic = bool(apart.size) and float(np.mean(apart)) > SYSTEMATIC_SHARE
    proof = worst + rounding
    if systematic:
        # Where there is no worst case to go by, what is beyond the sampled error is not judged.
        allowed = np.where(np.isfinite(proof), np.maximum(allowed, proof), allowed)
    flags = samples.flags
    if fmt is not None:
        over = np.isfinite(value) & (np.abs(value) + FACTOR * s >= fmt.overflow)
        flags = flags | (over * INFINITE).astype(np.uint8)
    return Alternative(
        form, outcome, value, allowed, proof, s, flags, systematic, samples.coherent(fmt, s)
    )


def _output_rounding(value: Array, w: Array, e: Array, s: Array, fmt: Format | None) -> Array:
    if fmt is None:
        return np.zeros(value.shape)
    held = (w == 0) & (e == 0) & fmt.represents(value)
    with np.errstate(all="ignore"):
        rounding = np.maximum(fmt.u * (np.abs(value) + FACTOR * s), fmt.least / 2)
    return np.where(held, 0.0, np.where(np.isfinite(value), rounding, 0.0))
