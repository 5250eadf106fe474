"""Lays the slots of a draw out on one bus, and looks for every word that had to stay.

What is not a slot of the contract holds bits that only an untouched word keeps: random words with
signalling and quiet NaNs, infinities, subnormals and negative zeros among them, and in the two
words of the fingerprint one of the witnesses. A kernel that moves them by arithmetic changes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.oracle.backends.base import AnyArray, Buffer, Fault, Role, RunOptions
from trueup.oracle.contract import Arg, Bus, Contract
from trueup.oracle.inputs import Draw
from trueup.oracle.memory import filled
from trueup.reference.isv.layout import FINGERPRINT_LENGTH

_F32 = np.dtype(np.float32)
# As 32-bit words: signalling NaN, quiet NaN, subnormal, -0, infinity, the NaN a GPU would write.
_HAZARDS = (0x7FA00001, 0x7FC0BEEF, 0x80000123, 0x80000000, 0xFF800000, 0xFFB00B1E)
# Fingerprints of known layouts: signalling NaN low, then high, quiet NaN, subnormal, both NaN.
_LANES = (
    (0x7FAE6D67, 0x82A6E964), (0xC8C28F2B, 0x7F9CC1F2), (0xFFD339FE, 0x0FE6827A),
    (0x607D1675, 0x7FDEEBA1), (0x8009F507, 0x40489FB3), (0xDB9FC73D, 0x005D88C2),
    (0xFF95B303, 0xFFBA7696),
)  # fmt: skip


def bus_buffer(contract: Contract, draw: Draw, options: RunOptions) -> Buffer | None:
    """The bus as the kernel finds it: its slots set, all other words hazardous."""
    bus = contract.bus
    if bus is None:
        return None
    words = _background(bus, f"{draw.case.id}/{draw.seed}")
    storage = words.view(_F32)
    for arg in _slots(contract):
        place = _place(bus, arg)
        if arg.role == "out":
            dirty = options.dirty.get(arg.name)
            fits = dirty is not None and dirty.size == storage[place].size
            start = dirty if fits else filled(storage[place].shape, _F32, options.fill)
        else:
            start = draw.native[arg.name]
        words[place] = np.ascontiguousarray(start).reshape(-1).view(np.uint32)
    role: Role = "inout" if any(arg.role != "in" for arg in _slots(contract)) else "in"
    return Buffer(bus.name, role, _F32, storage.shape, storage)


def split(contract: Contract, storage: AnyArray) -> dict[str, AnyArray]:
    """The slots as arrays of their own."""
    bus = contract.bus
    assert bus is not None
    return {arg.name: storage[_place(bus, arg)].copy() for arg in _slots(contract)}


def stray_words(contract: Contract, before: Buffer, storage: AnyArray) -> list[Fault]:
    """Find the words that are no output of the contract and do not hold what they held."""
    bus = contract.bus
    assert bus is not None
    assert before.initial is not None
    old = np.ascontiguousarray(before.initial).view(np.uint32)
    new = np.ascontiguousarray(storage).view(np.uint32)
    moved = old != new
    for arg in _slots(contract):
        if arg.role != "in":
            moved[_place(bus, arg)] = False
    if not moved.any():
        return []
    word = int(np.argmax(moved))
    message = (
        f"word {word} of the bus, slot {bus.slot_at(word)}, held 0x{old[word]:08x} and holds "
        f"0x{new[word]:08x}; {int(moved.sum())} words changed that are no output"
    )
    return [Fault("slot overwritten", message, buffer=bus.name)]


def without_slots(contract: Contract, dirty: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Start contents of the arguments that have a buffer of their own."""
    slots = {arg.name for arg in _slots(contract)}
    return {name: value for name, value in dirty.items() if name not in slots}


def _slots(contract: Contract) -> list[Arg]:
    return [arg for arg in contract.args if arg.slot is not None]


def _place(bus: Bus, arg: Arg) -> slice:
    span = bus.span(arg.slot or "")
    assert span is not None
    return span


def _background(bus: Bus, seed: str) -> NDArray[Any]:
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "little")
    rng = np.random.default_rng(number)
    words = rng.integers(0, 1 << 32, bus.layout.total, dtype=np.uint32)
    spots = rng.random(words.size) < 0.5
    words[spots] = rng.choice(np.array(_HAZARDS, dtype=np.uint32), int(spots.sum()))
    words[-FINGERPRINT_LENGTH:] = _LANES[number % len(_LANES)]
    return words
