"""Sums really rounded after every addition, in the orders kernels use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.bounds.formats import Format

Array = NDArray[Any]

# The four orders of the witness rows.
WITNESSES = ("sequential", "reversed", "lanes32", "pairwise")
# Every order a machine may be asked for.
ORDERS = (*WITNESSES, "lanes256", "random", "fma", "blas")


def ordered_sum(terms: Array, order: str, fmt: Format, seed: int = 0) -> Array:
    """The sum over the last axis, rounded to `fmt` after every addition.

    `terms` holds numbers of the format (or of a wider one, which are then added unrounded).
    """
    n = terms.shape[-1]
    if n == 0:
        return np.zeros(terms.shape[:-1], dtype=terms.dtype)
    columns = terms.reshape(-1, n).T  # (n, outputs)
    add = _adder(fmt)
    if fmt.native is not None and fmt.name != "f16":
        columns = columns.astype(fmt.native)
    columns = np.ascontiguousarray(columns)
    out = _ORDERS[order](columns, add, seed)
    return out.astype(terms.dtype).reshape(terms.shape[:-1])


Adder = Callable[[Array, Array], Array]


def _adder(fmt: Format) -> Adder:
    if fmt.native is not None and fmt.name != "f16":
        return np.add
    return lambda a, b: fmt.round(a + b)


def _sequential(x: Array, add: Adder, seed: int = 0) -> Array:
    if add is np.add:
        if x.shape[1] > 1:
            out: Array = np.add.reduce(x, axis=0)  # row after row: the inner loop is the other axis
            return out
        last: Array = np.add.accumulate(x, axis=0)[-1]
        return last
    total: Array = x[0]
    for row in x[1:]:
        total = add(total, row)
    return total


def _reversed(x: Array, add: Adder, seed: int = 0) -> Array:
    return _sequential(np.ascontiguousarray(x[::-1]), add)


def _random(x: Array, add: Adder, seed: int = 0) -> Array:
    return _sequential(x[np.random.default_rng(seed).permutation(x.shape[0])], add)


def _tree(x: Array, add: Adder, seed: int = 0) -> Array:
    while x.shape[0] > 1:
        half, odd = divmod(x.shape[0], 2)
        paired = add(x[:half], x[half : 2 * half])
        x = np.concatenate([paired, x[-1:]]) if odd else paired
    only: Array = x[0]
    return only


def _lanes(count: int) -> Callable[[Array, Adder, int], Array]:
    def lanes(x: Array, add: Adder, seed: int = 0) -> Array:
        n, outputs = x.shape
        if n <= count:
            return _tree(x, add)
        rows = -(-n // count)
        padded = np.zeros((rows * count, outputs), dtype=x.dtype)
        padded[:n] = x
        partial = _sequential(padded.reshape(rows, count * outputs), add)
        return _tree(partial.reshape(count, outputs), add)

    return lanes


def _blas(x: Array, add: Adder, seed: int = 0) -> Array:
    if add is not np.add:
        return _tree(x, add)
    out: Array = np.add.reduce(np.ascontiguousarray(x.T), axis=1)
    return out


_ORDERS: dict[str, Callable[[Array, Adder, int], Array]] = {
    "sequential": _sequential,
    "reversed": _reversed,
    "random": _random,
    "pairwise": _tree,
    "lanes32": _lanes(32),
    "lanes256": _lanes(256),
    "fma": _sequential,
    "blas": _blas,
}

# Beyond this many multiply-adds a product in a chosen order costs more than all samples together.
ORDERED_PRODUCT = 4e7
# Up to this many products they are formed at once and summed in the row's own order.
ALL_PRODUCTS = 1 << 18


def ordered_matmul(a: Array, b: Array, order: str, fmt: Format) -> Array:
    """`a @ b` rounded to `fmt` after every product and addition, in this order.

    `a` is (…, n, k), `b` (…, k, m). Beyond `ORDERED_PRODUCT` BLAS in the format's own type is used.
    """
    n, k = a.shape[-2:]
    m = b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    work = float(np.prod(batch, dtype=float)) * n * k * m
    if k == 0:
        return np.zeros((*batch, n, m), dtype=a.dtype)
    single = fmt.native is not None and fmt.name != "f16"
    if single and (order in ("blas", "pairwise") or work > ORDERED_PRODUCT) and work > ALL_PRODUCTS:
        out: Array = np.matmul(a.astype(fmt.native), b.astype(fmt.native)).astype(a.dtype)
        return out
    if order == "fma":
        return _fused(a, b, fmt)
    if work <= ALL_PRODUCTS:
        terms = fmt.round(a[..., :, None, :] * np.swapaxes(b, -1, -2)[..., None, :, :])
        return ordered_sum(terms, order, fmt)
    return _rank_one(a, b, order, fmt)


def _steps(k: int, order: str) -> range:
    return range(k - 1, -1, -1) if order == "reversed" else range(k)


def _rank_one(a: Array, b: Array, order: str, fmt: Format) -> Array:
    lanes = {"lanes32": 32, "lanes256": 256}.get(order, 1)
    k = a.shape[-1]
    wide = a.dtype
    native = fmt.native if fmt.native is not None and fmt.name != "f16" else None
    if native is not None:
        a, b = a.astype(native), b.astype(native)
    add = _adder(fmt)
    sums = []
    for lane in range(min(lanes, k)):
        total: Array | None = None
        for j in _steps(k, order)[lane::lanes]:
            term = a[..., :, j, None] * b[..., None, j, :]
            if native is None:
                term = fmt.round(term)
            total = term if total is None else add(total, term)
        if total is not None:
            sums.append(total)
    return _tree(np.stack(sums), add).astype(wide)


def _fused(a: Array, b: Array, fmt: Format) -> Array:
    total = fmt.round(a[..., :, 0, None] * b[..., None, 0, :])
    for j in range(1, a.shape[-1]):
        total = fmt.round(total + a[..., :, j, None] * b[..., None, j, :])
    return total
