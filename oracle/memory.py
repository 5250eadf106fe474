"""Lays a contract's arrays out in memory and reads them back: strides, fills, written regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.backends.base import NAN_FILL, AnyArray, Buffer, Fault, RunOptions
from trueup.oracle.contract import Arg
from trueup.oracle.errors import ContractError


def filled(shape: tuple[int, ...], dtype: np.dtype[Any], pattern: int = NAN_FILL) -> AnyArray:
    """Return an array whose bytes repeat a 16-bit pattern."""
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    words = np.full(count // 2 + 1, pattern, dtype=np.uint16)
    return words.view(np.uint8)[:count].view(dtype).reshape(shape)


def buffer_of(arg: Arg, axes: Mapping[str, int], value: AnyArray | None) -> Buffer:
    """Return the buffer of an argument; a strided one is laid out flat, gaps filled with NaN."""
    shape = arg.sizes(axes)
    initial = value if arg.role in ("in", "inout") else None
    role = arg.role
    assert role in ("in", "out", "inout", "workspace")
    if arg.strides is None:
        return Buffer(arg.name, role, arg.numpy, shape, initial)
    strides = _strides(arg, axes)
    flat = (_extent(shape, strides),)
    if initial is not None:
        storage = filled(flat, arg.numpy)
        _view(storage, shape, strides, writeable=True)[...] = initial
        initial = storage
    return Buffer(arg.name, role, arg.numpy, flat, initial)


def logical(arg: Arg, axes: Mapping[str, int], storage: AnyArray) -> AnyArray:
    """Return the array a buffer holds, in the argument's own shape."""
    if arg.strides is None:
        return storage
    return _view(storage, arg.sizes(axes), _strides(arg, axes), writeable=False).copy()


def stray_writes(
    arg: Arg, axes: Mapping[str, int], buffer: Buffer, storage: AnyArray, options: RunOptions
) -> list[Fault]:
    """Find writes into the gaps of a strided output, and truth values that are neither 0 nor 1."""
    if arg.role not in ("out", "inout"):
        return []
    if arg.dtype == "bool" and bool((storage.view(np.uint8) > 1).any()):
        message = "a truth value is stored as another byte than 0 or 1"
        return [Fault("misuse", message, buffer=arg.name)]
    if arg.strides is None or arg.name in options.dirty:
        return []
    before = buffer.initial if buffer.initial is not None else None
    if before is None:
        before = filled(buffer.shape, buffer.dtype, options.fill)
    gap = np.ones(buffer.shape, dtype=bool)
    _view(gap, arg.sizes(axes), _strides(arg, axes), writeable=True)[...] = False
    moved = gap & ~same_bits(storage, before)
    if not moved.any():
        return []
    at = int(np.argmax(moved))
    message = f"element {at} of the storage, between the strides, was written"
    return [Fault("guard overwritten", message, buffer=arg.name)]


def written_mask(arg: Arg, axes: Mapping[str, int]) -> NDArray[np.bool_]:
    """Return which elements of an output the contract says are written."""
    shape = arg.sizes(axes)
    if arg.written is None:
        return np.ones(shape, dtype=bool)
    mask = np.zeros(shape, dtype=bool)
    key = tuple(
        slice(
            start.value(axes) if start else None,
            stop.value(axes) if stop else None,
        )
        for start, stop in arg.written
    )
    mask[key] = True
    return mask


def same_bits(first: AnyArray, second: AnyArray) -> NDArray[np.bool_]:
    """Compare element by element, bit for bit."""
    width = first.dtype.itemsize
    unsigned = np.dtype(f"u{width}")
    a = np.ascontiguousarray(first).view(unsigned)
    b = np.ascontiguousarray(second).view(unsigned)
    return np.asarray(a == b)


def _strides(arg: Arg, axes: Mapping[str, int]) -> tuple[int, ...]:
    assert arg.strides is not None
    strides = tuple(e.value(axes, f"strides of {arg.name}") for e in arg.strides)
    if any(stride < 0 for stride in strides):
        raise ContractError(
            "a stride is negative",
            where=f"strides of {arg.name}",
            got=f"{strides} at {dict(axes)}",
            expected="elements from the buffer's start on, 0 or more",
        )
    return strides


def _extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def _view(
    storage: AnyArray, shape: tuple[int, ...], strides: tuple[int, ...], writeable: bool
) -> AnyArray:
    itemsize = storage.dtype.itemsize
    return np.lib.stride_tricks.as_strided(
        storage, shape, tuple(s * itemsize for s in strides), writeable=writeable
    )
