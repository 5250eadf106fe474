"""The noise of sums: the larger of random order and natural order, forwards and backwards.

A sum of n terms in random order has the variance (u²/3)·(S²·Σ(k/n)² + (n-1)·Q/6); Q/2 is taken
for Q/6, a margin that makes sequential kernels land near 0.57 of the noise. Data that is sorted
or changes sign halfway has partial sums far above those of a random order, so the natural order
is worked out from block sums as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.formats import lowest_bit
from trueup.oracle.bounds.orders import ordered_sum
from trueup.oracle.bounds.rows import Rows

if TYPE_CHECKING:
    from trueup.oracle.bounds.sampled import Sampled

Array = NDArray[Any]

BLOCKS = 16


def weight(n: int) -> float:
    """Σ (k/n)² for k = 2 … n: what the sum itself contributes, every partial sum being a share."""
    return ((n + 1) * (2 * n + 1) / 6.0 - 1.0 / n) / n if n > 1 else 0.0


def natural_order(partials: Array, widths: Array, total: Array) -> Array:
    """Sum of squared partial sums, forwards or backwards, from block sums on the last axis."""
    before = np.concatenate([np.zeros((*partials.shape[:-1], 1)), partials[..., :-1]], axis=-1)
    end = total[..., None]
    forward = _quadratic(before, partials, widths)
    return np.asarray(np.maximum(forward, _quadratic(end - partials, end - before, widths)))


def _quadratic(a: Array, b: Array, widths: Array) -> Array:
    out: Array = (widths * (a * a + a * b + b * b) / 3.0).sum(axis=-1)
    return out


def block_edges(n: int, blocks: int) -> Array:
    """Where the blocks begin, and the end."""
    return np.linspace(0, n, min(n, blocks) + 1).astype(np.int64)


def variance(terms: Array) -> Array:
    """The variance of a sum over the last axis in units of u²/3."""
    n = terms.shape[-1]
    total = terms.sum(axis=-1)
    squares = np.einsum("...i,...i->...", terms, terms)
    random = weight(n) * total * total + (n - 1) * squares / 2.0
    edges = block_edges(n, BLOCKS)
    partials = np.cumsum(np.add.reduceat(terms, edges[:-1], axis=-1), axis=-1)
    return np.asarray(np.maximum(random, natural_order(partials, np.diff(edges), total)))


def exact_in_any_order(terms: Array, bits: int) -> Array:
    """True where no partial sum of the terms, in any order, needs more than `bits` bits."""
    sizes = np.abs(terms).sum(axis=-1)
    return np.asarray(sizes <= lowest_bit(terms).min(axis=-1) * 2.0**bits)


def draw(model: Sampled, shape: tuple[int, ...], n: int) -> Array:
    """Unit-variance numbers per sample: bounded for few terms, normal for many."""
    if n <= 8:
        return model.uniform(shape, 3.0**0.5)
    return model.rng.standard_normal((model.samples, *shape), dtype=np.float32)


def _terms(x: Rows, axis: int) -> Array:
    return np.moveaxis(x.d, axis % x.ndim + 1, -1)


def total(model: Sampled, x: Rows, axis: int) -> Rows:
    """The sum over one axis."""
    fmt = model.sums
    terms = _terms(x, axis)
    n = terms.shape[-1]
    if n <= 1:
        out = np.add.reduce(x.d, axis=axis % x.ndim + 1)
        return model.finish(out, _kept(model, x, axis, out), model.fmt.u)
    clean = _clean_lines(model, x, axis)
    exact: Array | bool = False
    if clean is True or np.any(clean):
        exact = exact_in_any_order(terms[0], fmt.bits) & clean
    value = np.add.reduce(x.v, axis=axis % x.ndim)
    out = _all_rows(model, terms, value, exact)
    if out.shape[0] > 1 and model.samples:
        sigma = fmt.u / 3.0**0.5 * np.sqrt(variance(terms[0])) * ~np.asarray(exact)
        out[model.s] += draw(model, value.shape, n) * sigma
    for i, order in enumerate(model.orders):
        if out.shape[0] == model.height and not np.all(exact):
            row = terms[model.w][i] if terms.shape[0] > 1 else terms[0]
            out[model.w.start + i] = ordered_sum(row, order, fmt)
    return stored_once(model, out, exact)


def _kept(model: Sampled, x: Rows, axis: int, out: Array) -> Array | bool:
    return _clean_lines(model, x, axis) & model.fmt.represents(out[0])


def _clean_lines(model: Sampled, x: Rows, axis: int) -> Array | bool:
    clean = model.clean(x)
    return clean if isinstance(clean, bool) else np.asarray(clean.all(axis=axis % x.ndim))


def _all_rows(model: Sampled, terms: Array, value: Array, exact: Array | bool) -> Array:
    """Row 0 as NumPy sums it, the samples summed without rounding."""
    if terms.shape[0] == 1 and bool(np.all(exact)):
        return value[None]
    out = np.empty((model.height, *value.shape), dtype=terms.dtype)
    out[...] = value
    if terms.shape[0] > 1:
        out[model.s] = terms[model.s].sum(axis=-1)
        out[model.w] = terms[model.w].sum(axis=-1) if bool(np.all(exact)) else value
    return out


def stored_once(model: Sampled, out: Array, exact: Array | bool) -> Rows:
    """A sum kept in its own format, then rounded to the elementwise one where that is shorter."""
    if model.fmt.bits >= model.sums.bits:
        return model.finish(out, True, 0.0, underflow=False)
    exact = exact & model.fmt.represents(out[0])
    return model.finish(out, exact, model.fmt.u, underflow=False)


def running(model: Sampled, x: Rows, axis: int) -> Rows:
    """The cumulative sum over one axis: each partial sum is rounded, and passes it on."""
    fmt = model.sums
    terms = _terms(x, axis)
    if terms.shape[-1] == 0:
        return model.wrap(x.d.copy())
    v = terms[0]
    value = np.moveaxis(np.add.accumulate(x.v, axis=axis % x.ndim), axis, -1)
    exact: Array = np.zeros(v.shape, dtype=bool)
    clean = model.clean(x)
    if clean is True or np.any(clean):
        lines = np.logical_and.accumulate(
            np.moveaxis(np.broadcast_to(clean, x.shape), axis % x.ndim, -1), axis=-1
        )
        low = np.minimum.accumulate(lowest_bit(v), axis=-1)
        exact = lines & (np.cumsum(np.abs(v), axis=-1) <= low * 2.0**fmt.bits)
    if x.d.shape[0] == 1 and exact.all():
        return model.wrap(np.moveaxis(value[None], -1, axis % x.ndim + 1))
    out = np.empty((model.height, *v.shape), dtype=v.dtype)
    out[...] = value
    if model.samples:
        size = np.sqrt(value * value + np.cumsum(v * v, axis=-1) / 2.0) * ~exact
        size[..., 0] = 0.0
        out[model.s] = np.cumsum(model.match(terms, model.height)[model.s], axis=-1)
        out[model.s] += np.cumsum(model.uniform(v.shape, fmt.u) * size, axis=-1)
    for i in range(len(model.orders)):
        row = terms[model.w][i] if terms.shape[0] > 1 else v
        out[model.w.start + i] = _accumulate(row, fmt)
    rows = stored_once(model, out, exact)
    return model.wrap(np.moveaxis(rows.d, -1, axis % x.ndim + 1))


def _accumulate(row: Array, fmt: Any) -> Array:
    if fmt.native is not None and fmt.name != "f16":
        out: Array = np.add.accumulate(row.astype(fmt.native), axis=-1).astype(row.dtype)
        return out
    out = row.copy()
    for j in range(1, row.shape[-1]):
        out[..., j] = fmt.round(out[..., j - 1] + row[..., j])
    return out
