"""Index keys: telling views from gathers, and where a gather's elements lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueup.oracle.bounds.errors import Unsupported


def native_key(key: Any) -> tuple[Any, ...]:
    """The key as a tuple, with arrays of the array type turned into plain integers and masks."""
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(_native(part) for part in parts)


def _native(part: Any) -> Any:
    if part is None or part is Ellipsis or isinstance(part, (int, np.integer)):
        return part
    if isinstance(part, slice):
        return slice(_bound(part.start), _bound(part.stop), _bound(part.step))
    if isinstance(part, list):
        part = [_native(p) for p in part]
    array = np.asarray(part)
    if array.dtype.kind not in "biu" and array.size == 0:
        array = array.astype(np.intp)
    return array.item() if array.ndim == 0 and array.dtype.kind in "iu" else array


def _bound(value: Any) -> int | None:
    return None if value is None else value.__index__()


def is_basic(key: tuple[Any, ...]) -> bool:
    """True where NumPy would give a view."""
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, slice)
        or (isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)))
        for part in key
    )


def positions(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The same elements as one tuple of index arrays, one per axis.

    A gather whose index arrays are apart moves its axes to the front, before the hidden one;
    with one index array per axis they stay behind it.
    """
    if len(key) == 1 and len(shape) >= 1 and key[0].dtype.kind in "iu":
        return key
    size = int(np.prod(shape, dtype=np.int64))
    chosen = np.arange(size).reshape(shape)[key]
    if not shape:
        raise Unsupported("a 0-d array indexed by an array")
    return np.unravel_index(chosen, shape)
