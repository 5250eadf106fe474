"""Dumps of state: the arrays of a safetensors file as bits, and the numbers that the bits mean.

The tensor `isv` holds the whole bus, every other tensor is state under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.gates.errors import Unreadable
from trueup.gates.layout.model import LayoutFile
from trueup.gates.layout.registry import PREFIX
from trueup.gates.read.documents.read import load_document

BUS = "isv"
_LARGEST = 4 << 30  # bytes of one dump
_NUMPY = {
    "F32": "<f4", "F64": "<f8", "F16": "<f2", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "u1", "BF16": "<u2",
}  # fmt: skip
# Of each float format: half a unit in the last place of 1, and the least number above 0.
ROUNDING = {
    "F32": (2.0**-24, 2.0**-149), "F64": (2.0**-53, 2.0**-1074), "F16": (2.0**-11, 2.0**-24),
    "BF16": (2.0**-8, 2.0**-133),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Words:
    """One array: its bits as unsigned integers, and the name of its format in safetensors."""

    bits: NDArray[Any]
    dtype: str

    def __str__(self) -> str:
        """`3 of F32`."""
        return f"{self.bits.size} of {self.dtype}"

    @property
    def width(self) -> int:
        """Hexadecimal digits of one element."""
        return 2 * self.bits.dtype.itemsize

    def numbers(self) -> NDArray[Any]:
        """The values; those of BF16 as float32."""
        if self.dtype == "BF16":
            return (self.bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return self.bits.view(_NUMPY[self.dtype])

    def encoded(self, values: Sequence[float]) -> Words | str:
        """Numbers in this format, one for all elements or one each; why not, where they do not fit.

        Floats are rounded to the nearest, as a kernel's constant is.
        """
        if len(values) not in (1, self.bits.size):
            return f"{len(values)} initial values for {self.bits.size} elements"
        if self.dtype in ROUNDING:
            with np.errstate(over="ignore"):
                encoded = _rounded(np.array(values, dtype=np.float64), self.dtype)
        else:
            low, high = _limits(self.dtype)
            odd = [v for v in values if v != int(v) or not low <= v <= high]
            if odd:
                return f"the initial value {odd[0]:g}, which {self.dtype} cannot hold"
            encoded = np.array([int(v) for v in values], dtype=_NUMPY[self.dtype])
        bits = encoded.view(self.bits.dtype)
        return Words(np.broadcast_to(bits, self.bits.shape), self.dtype)


def _rounded(values: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    if dtype != "BF16":
        return values.astype(_NUMPY[dtype])
    bits = values.astype(np.float32).view(np.uint32)
    up = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))  # to even in the middle
    return ((bits + up) >> np.uint32(16)).astype("<u2")


def _limits(dtype: str) -> tuple[int, int]:
    if dtype == "BOOL":
        return 0, 1
    info = np.iinfo(_NUMPY[dtype])
    return int(info.min), int(info.max)


@dataclass(frozen=True, slots=True)
class State:
    """The arrays of one dump, by stateful name."""

    name: str
    arrays: dict[str, Words]


def load_state(path: Path, layout: LayoutFile) -> State:
    """The state in a safetensors file. Raises `Unreadable` if it is none, or its bus another."""
    document, faults = load_document(path, str(path), "weights")
    if faults or not isinstance(document.data, dict):
        raise Unreadable(
            "is no dump of state", where=str(path), got=faults[0].got if faults else "no header",
            expected="a safetensors file", fix="save the state with safetensors",
        )  # fmt: skip
    if document.size > _LARGEST:
        raise Unreadable("is too large", where=str(path), got=f"{document.size} bytes",
                         expected=f"at most {_LARGEST}")  # fmt: skip
    start = 8 + document.data["header_bytes"]
    arrays: dict[str, Words] = {}
    with path.open("rb") as file:
        for name, tensor in document.data["tensors"].items():
            if tensor["dtype"] not in _NUMPY:
                raise Unreadable(
                    "holds a format of no state", where=f"{path}: {name}", got=tensor["dtype"],
                    expected="one of " + ", ".join(_NUMPY),
                )  # fmt: skip
            low, high = tensor["data_offsets"]
            file.seek(start + low)
            width = np.dtype(_NUMPY[tensor["dtype"]]).itemsize
            bits = np.frombuffer(file.read(high - low), dtype=f"<u{width}")
            arrays[name] = Words(bits, tensor["dtype"])
    return State(str(path), _by_slot(str(path), arrays, layout))


def _by_slot(name: str, arrays: dict[str, Words], layout: LayoutFile) -> dict[str, Words]:
    """The bus under the names of its slots, beside everything else."""
    bus = arrays.pop(BUS, None)
    if bus is None:
        return arrays
    if bus.dtype != "F32" or bus.bits.size != layout.total:
        raise Unreadable(
            "its bus is not that of the layout", where=f"{name}: {BUS}", got=str(bus),
            expected=f"{layout.total} float32 words", fix="dump the bus whole, as it is",
        )  # fmt: skip
    slots = {
        PREFIX + slot.name: Words(bus.bits[slot.index : slot.end], bus.dtype)
        for slot in layout.slots
    }
    twice = next((slot for slot in slots if slot in arrays), None)
    if twice is not None:
        raise Unreadable(
            "holds a slot twice", where=f"{name}: {twice}", got=f"a tensor beside {BUS}",
            fix=f"dump the bus as {BUS} alone; what is read must not depend on the order",
        )  # fmt: skip
    return {**slots, **arrays}
