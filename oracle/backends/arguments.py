"""What every backend does with arguments: pack them for a launch, and lay out buffer contents."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.backends.base import AnyArray, Buffer, Launch, RunOptions, Scalar
from trueup.oracle.errors import ContractError

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Packed:
    """The `void**` of cuLaunchKernel: one slot per argument, and the array of their addresses.

    The object owns the memory behind `address`: keep it until the launch has been made.
    """

    slots: tuple[ctypes.Array[ctypes.c_char], ...]
    pointers: ctypes.Array[ctypes.c_void_p]

    @property
    def address(self) -> int:
        """Address of the array of slot addresses."""
        return ctypes.addressof(self.pointers)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each argument."""
        return tuple(len(slot) for slot in self.slots)


def pack(args: Sequence[str | Scalar], addresses: Mapping[str, int]) -> Packed:
    """Pack buffers by their address (8 bytes) and scalars by the bytes of their dtype."""
    slots = []
    for arg in args:
        if isinstance(arg, Scalar):
            raw = np.asarray(arg.value).tobytes()
        elif arg in addresses:
            raw = addresses[arg].to_bytes(8, "little")
        else:
            raise ContractError(
                f"a launch passes {arg!r}, which is no argument",
                expected="one of " + ", ".join(sorted(addresses)),
                fix="name the [[arg]] to pass",
            )
        slots.append((ctypes.c_char * len(raw)).from_buffer_copy(raw))
    pointers = (ctypes.c_void_p * len(slots))(*[ctypes.addressof(slot) for slot in slots])
    return Packed(tuple(slots), pointers)


def check_sizes(launch: Launch, given: Sequence[int], taken: Sequence[int]) -> None:
    """Refuse arguments that are not, byte for byte, as many as the kernel's parameters."""
    if len(given) != len(taken):
        raise ContractError(
            f"{launch.entry} takes another number of arguments than the launch passes",
            got=f"{len(given)} arguments",
            expected=f"{len(taken)} parameters",
            fix="list the args of [[launch]] in the order of the kernel's parameters",
        )
    for index, (have, want) in enumerate(zip(given, taken, strict=True)):
        if have != want:
            arg = launch.args[index]
            name = arg.name if isinstance(arg, Scalar) else arg
            raise ContractError(
                f"argument {index} ({name}) of {launch.entry} has another size than the parameter",
                got=f"{have} bytes",
                expected=f"{want} bytes",
                fix=f"give {name} the dtype of the kernel's parameter, or put it in its place",
            )


def pattern(nbytes: int, fill: int) -> Bytes:
    """Return `nbytes` bytes of the 16-bit `fill`, repeated, low byte first."""
    words = np.full((nbytes + 1) // 2, fill, dtype="<u2")
    return words.view(np.uint8)[:nbytes]


def size_in_bytes(buffer: Buffer) -> int:
    """Bytes that the kernel addresses in a buffer."""
    return int(np.prod(buffer.shape, dtype=np.int64)) * buffer.dtype.itemsize


def start_bytes(buffer: Buffer, options: RunOptions) -> Bytes:
    """Return the bytes a buffer starts with: its initial or dirty contents, or the pattern."""
    if buffer.role in ("in", "inout"):
        contents, what = buffer.initial, "initial contents"
    else:
        contents, what = options.dirty.get(buffer.name), "dirty contents"
        if contents is None:
            return pattern(size_in_bytes(buffer), options.fill)
    if contents is None:
        raise ContractError(f"{buffer.role} buffer {buffer.name} has no initial contents")
    if contents.dtype != buffer.dtype or contents.shape != buffer.shape:
        raise ContractError(
            f"{what} of {buffer.name} do not fit the buffer",
            got=f"{contents.dtype} {contents.shape}",
            expected=f"{buffer.dtype} {buffer.shape}",
        )
    return np.ascontiguousarray(contents).reshape(-1).view(np.uint8)


def as_array(raw: Bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> AnyArray:
    """Copy bytes into an array of the dtype and shape."""
    array: AnyArray = raw.copy().view(dtype).reshape(shape)
    return array
