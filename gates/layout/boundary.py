"""State before and after a boundary: what the registry says must have happened, and nothing else.

A dump is a safetensors file: the tensor `isv` holds the whole bus, every other tensor is state
under its own name. Bits are compared wherever a value must stay; a soft reset has its own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.gates.collector import Collector
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where
from trueup.gates.layout.model import LayoutFile
from trueup.gates.layout.registry import PREFIX, Registry, ResetEntry, stateful_names
from trueup.gates.read.documents.read import load_document

Boundary = Literal["fold", "epoch"]
BUS = "isv"
_DTYPES = {
    "F32": "<f4", "F64": "<f8", "F16": "<f2", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8",
    "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "?", "BF16": "<u2",
}  # fmt: skip
_UNIT = 2.0**-24  # of rounding to float32
_LARGEST = 4 << 30  # bytes of one dump


@dataclass(frozen=True, slots=True)
class State:
    """The arrays of one dump, by stateful name; `raw` is bits where the dtype has no arithmetic."""

    name: str
    arrays: dict[str, NDArray[Any]]


def load_state(path: Path, layout: LayoutFile) -> State:
    """The state in a safetensors file. Raises `Unreadable` if it is none, or its bus too short."""
    document, faults = load_document(path, str(path), "weights")
    if faults or not isinstance(document.data, dict):
        got = faults[0].got if faults else "no header"
        raise Unreadable("is no dump of state", where=str(path), got=got,
                         expected="a safetensors file")  # fmt: skip
    start = 8 + document.data["header_bytes"]
    if document.size > _LARGEST:
        raise Unreadable("is too large", where=str(path), got=f"{document.size} bytes",
                         expected=f"at most {_LARGEST}")  # fmt: skip
    arrays: dict[str, NDArray[Any]] = {}
    with path.open("rb") as file:
        for name, tensor in document.data["tensors"].items():
            if tensor["dtype"] not in _DTYPES:
                raise Unreadable("holds a dtype of no state", where=f"{path}: {name}",
                                 got=tensor["dtype"])  # fmt: skip
            low, high = tensor["data_offsets"]
            file.seek(start + low)
            arrays[name] = np.frombuffer(file.read(high - low), dtype=_DTYPES[tensor["dtype"]])
    return State(str(path), _by_slot(str(path), arrays, layout))


def _by_slot(
    name: str, arrays: dict[str, NDArray[Any]], layout: LayoutFile
) -> dict[str, NDArray[Any]]:
    bus = arrays.pop(BUS, None)
    if bus is None:
        return arrays
    if bus.dtype != np.dtype("<f4") or bus.size != layout.total:
        raise Unreadable(
            "its bus is not that of the layout", where=f"{name}: {BUS}",
            got=f"{bus.size} of {bus.dtype}", expected=f"{layout.total} float32 words",
        )  # fmt: skip
    slots = {PREFIX + slot.name: bus[slot.index : slot.end] for slot in layout.slots}
    return {**slots, **arrays}


def judge_boundary(
    registry: Registry,
    layout: LayoutFile,
    before: State,
    after: State,
    boundary: Boundary,
    lanes: tuple[int, int],
    collector: Collector,
) -> int:
    """Hold the state after a boundary to the state before it. Gives how many names were compared.

    `lanes` are the two words of the layout's fingerprint.
    """
    known = stateful_names(registry, layout)
    compared = 0
    for name in sorted({*before.arrays, *after.arrays} - set(known)):
        where = Where(key=name)
        collector.of_kind("state_unregistered", after.name, where, f"{name} is in the dump")
    for name in known:
        entry = registry.entry(name)
        old, new = before.arrays.get(name), after.arrays.get(name)
        if old is None or new is None:
            missing = before.name if old is None else after.name
            collector.of_kind("state_not_dumped", missing, Where(key=name), f"no tensor {name}")
            continue
        if entry is None:
            continue  # reported with the registry itself
        compared += 1
        got = _wrong(entry, old, new, boundary, lanes)
        if got:
            collector.of_kind("state_not_reset", after.name, Where(key=name), got)
    return compared


def _wrong(
    entry: ResetEntry, old: NDArray[Any], new: NDArray[Any], boundary: Boundary,
    lanes: tuple[int, int],
) -> str:  # fmt: skip
    """What an entry's state does not hold, or nothing."""
    if old.dtype != new.dtype or old.size != new.size:
        return f"{old.size} of {old.dtype} became {new.size} of {new.dtype}"
    if entry.category == "LayoutTail":
        want = np.array(lanes, dtype="<u4")
        return _first_bits(entry, want.view(new.dtype), new, "the fingerprint's words")
    if entry.category in ("Persistent", "Static") or _is_not_due(entry, boundary):
        return _first_bits(entry, old, new, "unchanged bits")
    init = np.broadcast_to(np.array(entry.init, dtype=np.float64), new.shape).astype(new.dtype)
    if entry.category != "SoftReset" or entry.kappa == 0.0:
        return _first_bits(entry, init, new, "the initial value")
    if entry.kappa == 1.0:
        return _first_bits(entry, old, new, "unchanged bits: kappa is 1")
    return _softly(entry, old, new, init)


def _is_not_due(entry: ResetEntry, boundary: Boundary) -> bool:
    """At an epoch only EpochReset acts; at a fold everything but EpochReset."""
    return (entry.category == "EpochReset") != (boundary == "epoch")


def _first_bits(entry: ResetEntry, want: NDArray[Any], new: NDArray[Any], what: str) -> str:
    width = new.dtype.itemsize
    a = np.ascontiguousarray(want).view(f"u{width}")
    b = np.ascontiguousarray(new).view(f"u{width}")
    if want.size != new.size or bool((a == b).all()):
        return "" if want.size == new.size else f"{new.size} words, {want.size} expected"
    at = int(np.argmax(a != b))
    got, wanted = (f"0x{int(bits[at]):0{2 * width}x}" for bits in (b, a))
    return (
        f"{entry.category}: element {at} is {new[at]} ({got}), expected {what}: "
        f"{want[at]} ({wanted})"
    )


def _softly(entry: ResetEntry, old: NDArray[Any], new: NDArray[Any], init: NDArray[Any]) -> str:
    """init + kappa (x - init) within its three roundings."""
    kappa = float(np.float32(entry.kappa))
    x, start, got = (array.astype(np.float64) for array in (old, init, new))
    with np.errstate(invalid="ignore"):
        want = start + kappa * (x - start)
        allowed = 3 * _UNIT * (np.abs(start) + kappa * np.abs(x - start)) + 2.0**-149
        right = (np.abs(got - want) <= allowed) | (np.isnan(got) & np.isnan(want))
    if right.all():
        return ""
    at = int(np.argmin(right))
    return (
        f"SoftReset: element {at} is {got[at]:.9g}, expected {want[at]:.9g} within "
        f"{allowed[at]:.2g} (before {x[at]:.9g}, init {start[at]:.9g}, kappa {kappa:.9g})"
    )
