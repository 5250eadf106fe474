"""The noise of matrix products and of linear algebra."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.align import aligned
from trueup.oracle.bounds.formats import lowest_bit
from trueup.oracle.bounds.orders import ordered_matmul
from trueup.oracle.bounds.rows import Rows
from trueup.oracle.bounds.sums import block_edges, draw, stored_once, weight

if TYPE_CHECKING:
    from trueup.oracle.bounds.sampled import Sampled

Array = NDArray[Any]

BLOCKS = 8


def variance(a: Array, b: Array, total: Array) -> Array:
    """The variance of `a @ b` with rounded products, in units of u²/3."""
    n = a.shape[-1]
    squares: Array = np.matmul(a * a, b * b)
    if n == 1:
        return squares
    var = weight(n) * total * total + (n - 1) * squares / 2.0
    forward = np.zeros(total.shape)
    backward = np.zeros(total.shape)
    before = np.zeros(total.shape)
    edges = block_edges(n, BLOCKS).tolist()
    for start, stop in itertools.pairwise(edges):
        after = before + np.matmul(a[..., start:stop], b[..., start:stop, :])
        width = (stop - start) / 3.0
        forward += width * (before * before + before * after + after * after)
        rest, left = total - before, total - after
        backward += width * (rest * rest + rest * left + left * left)
        before = after
    return np.asarray(np.maximum(var, np.maximum(forward, backward)) + squares)


def _exact(model: Sampled, a: Rows, b: Rows) -> Array | bool:
    """True where every product and every partial sum is a number of the format."""
    clean_a, clean_b = model.clean(a), model.clean(b)
    if model.products.bits < model.fmt.bits:
        clean_a = clean_a & model.products.represents(a.v)
        clean_b = clean_b & model.products.represents(b.v)
    rows: Any = clean_a
    if not isinstance(clean_a, bool):
        rows = np.all(clean_a, axis=-1)[..., :, None]
    columns: Any = clean_b
    if not isinstance(clean_b, bool):
        columns = np.all(clean_b, axis=-2)[..., None, :]
    clean = rows & columns
    if not np.any(clean):
        return False
    low = lowest_bit(a.v).min(axis=-1)[..., :, None] * lowest_bit(b.v).min(axis=-2)[..., None, :]
    sizes = np.matmul(np.abs(a.v), np.abs(b.v))
    return np.asarray(clean & (sizes <= low * 2.0**model.sums.bits))


def _operand(model: Sampled, x: Rows) -> Array:
    """The operand as the multiplier reads it: one rounding to a shorter format."""
    fmt = model.products
    if fmt.bits >= model.fmt.bits:
        return x.d
    odd = ~fmt.represents(x.v)
    if not odd.any() and x.d.shape[0] == 1:
        return x.d
    d = np.array(model.full(x.d))
    truncating = model.precision.rounding == "truncate"
    if model.samples:
        xi: Array = model.uniform(x.shape, fmt.u)
        if truncating:
            # Up to twice the error of rounding, and a share of it common to all elements: the
            # bias of a truncation adds up over terms of one sign.
            xi = xi + model.uniform((1,) * x.ndim, fmt.u)
        d[model.s] *= 1.0 + xi * (odd | (d[model.s] != d[:1]))
    d[model.w] = fmt.truncate(d[model.w]) if truncating else fmt.round(d[model.w])
    return d


def matmul(model: Sampled, a: Rows, b: Rows) -> Rows:
    """`a @ b` for operands of at least two dimensions."""
    value = np.matmul(a.v, b.v)
    k = a.shape[-1]
    if k == 0:
        return model.wrap(value[None])
    exact = _exact(model, a, b)
    if a.d.shape[0] == b.d.shape[0] == 1 and bool(np.all(exact)):
        return stored_once(model, value[None], exact)
    da, db = aligned([_operand(model, a), _operand(model, b)])
    out = np.empty((model.height, *value.shape), dtype=value.dtype)
    out[...] = value
    if model.samples:
        _noise(model, out, da, db, a, b, exact)
    for i, order in enumerate(model.orders):
        row_a = da[model.w][i] if da.shape[0] > 1 else da[0]
        row_b = db[model.w][i] if db.shape[0] > 1 else db[0]
        out[model.w.start + i] = ordered_matmul(row_a, row_b, order, model.sums)
    if k == 1:
        return model.finish(out, exact, 0.0)
    return stored_once(model, out, exact)


def _noise(
    model: Sampled, out: Array, da: Array, db: Array, a: Rows, b: Rows, exact: Array | bool
) -> None:
    noisy_a = da[model.s] if da.shape[0] > 1 else da
    noisy_b = db[model.s] if db.shape[0] > 1 else db
    value = out[0]
    if da.shape[0] > 1 or db.shape[0] > 1:
        out[model.s] = np.matmul(noisy_a, noisy_b)
    sigma = model.sums.u / 3.0**0.5 * np.sqrt(variance(a.v, b.v, value))
    if exact is not False:
        sigma *= ~np.asarray(exact)
    out[model.s] += draw(model, value.shape, a.shape[-1]) * sigma


_LINEAR_ALGEBRA_NOTE = "{name}: operands perturbed by u·√n; its own rounding is not followed"


def solver(model: Sampled, func: Any, operands: list[Rows], **kwargs: Any) -> Any:
    """A function of `numpy.linalg` on operands perturbed row-wise by u·√n of their largest."""
    model.notes.add(_LINEAR_ALGEBRA_NOTE.format(name=func.__name__))
    results = []
    native = [x.v for x in operands]
    for row in range(model.height):
        args = [model.full(x.d)[row] for x in operands]
        if row == 0 and model.plain:
            args = native
        elif row < model.w.start:
            args = [_shaken(model, x, v) for x, v in zip(args, native, strict=True)]
        else:
            args = [x.astype(np.float32) for x in args]
        result = func(*args, **kwargs)
        results.append(tuple(result) if isinstance(result, tuple) else (result,))
    parts = [
        model.finish(
            np.stack([np.asarray(p, dtype=model.real) for p in part]),
            np.zeros(np.shape(part[0]), dtype=bool),
            model.fmt.u,
        )
        for part in zip(*results, strict=True)
    ]
    first = func(*native, **kwargs)
    if not isinstance(first, tuple):
        return parts[0]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def _shaken(model: Sampled, x: Array, value: Array) -> Array:
    if not value.ndim:
        return x
    n = value.shape[-1]
    scale = np.abs(value).max(axis=-1, keepdims=True, initial=0.0)
    xi = model.rng.random(x.shape) * 2.0 - 1.0
    return np.asarray(x + model.fmt.u * n**0.5 * scale * xi)
