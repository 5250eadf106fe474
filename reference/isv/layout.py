"""The layout of the internal-state bus and its structural fingerprint.

Source: ISV programme, sections 1.1 to 1.5. A layout is a list of *slots* (name, index, length) of
the float32 bus and an ordered list of parameter *tensors* (name, number of elements). Its
fingerprint is the FNV-1a 64 hash of a canonical byte string; because `|` and newline are in neither
name alphabet, different layouts have different strings. The fingerprint is kept in the last two
slots of the bus as two 32-bit words, which are bits and never numbers: any arithmetic on them, a
cast or a comparison as floats can change or misjudge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trueup.reference.errors import BadInputs

FINGERPRINT_SLOT = "LAYOUT_FINGERPRINT"
FINGERPRINT_LENGTH = 2  # words of 32 bits
SLOT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
TENSOR_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
FLOAT_BYTES = 4

_OFFSET_BASIS = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A named range [index, index + length) of the bus, in float32 words."""

    index: int
    length: int
    name: str

    @property
    def end(self) -> int:
        """The first index after it."""
        return self.index + self.length


@dataclass(frozen=True, slots=True)
class Tensor:
    """One parameter tensor; its place in the list is part of the layout."""

    name: str
    numel: int  # elements, 0 or more


@dataclass(frozen=True, slots=True)
class Layout:
    """Slots, tensors, and the two sizes that move every byte offset."""

    slots: tuple[Slot, ...]
    tensors: tuple[Tensor, ...] = ()
    align_bytes: int = 256
    tile_pad_floats: int = 0

    @property
    def total(self) -> int:
        """ISV_TOTAL: the words of the bus."""
        return max((slot.end for slot in self.slots), default=0)


def canonical_bytes(layout: Layout) -> bytes:
    """The byte string that is hashed (section 1.2): ASCII, one line a slot, a tensor, a trailer.

    Slots go in ascending index whatever their order in the list; tensors in list order. Raises
    `BadInputs` for a name outside its alphabet or a number outside its range, without which two
    layouts could have one string.
    """
    slots = sorted(layout.slots)
    lines = [f"S|{_named(s.name, SLOT_NAME)}|{_dec(s.index)}|{_dec(s.length, 1)}" for s in slots]
    lines += [
        f"P|{_named(t.name, TENSOR_NAME)}|{k}|{_dec(t.numel)}" for k, t in enumerate(layout.tensors)
    ]
    sizes = (layout.total, len(layout.tensors))
    lines.append(
        f"T|{sizes[0]}|{sizes[1]}|{_dec(layout.align_bytes, 1)}|{_dec(layout.tile_pad_floats)}"
    )
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def fnv1a_64(data: bytes) -> int:
    """FNV-1a of 64 bits (draft-eastlake-fnv): exclusive or first, then multiply, for each byte."""
    state = _OFFSET_BASIS
    for byte in data:
        state = ((state ^ byte) * _PRIME) & _MASK
    return state


def fingerprint(layout: Layout) -> int:
    """The layout's fingerprint, an unsigned 64-bit integer (section 1.3)."""
    return fnv1a_64(canonical_bytes(layout))


def to_lanes(value: int) -> tuple[int, int]:
    """The two 32-bit words at ISV_TOTAL - 2 and ISV_TOTAL - 1: low half first (section 1.4)."""
    if not 0 <= value <= _MASK:
        raise BadInputs("a fingerprint has 64 bits", got=str(value), expected="0 to 2^64 - 1")
    return value & 0xFFFFFFFF, value >> 32


def from_lanes(lane0: int, lane1: int) -> int:
    """The fingerprint of two words."""
    for lane in (lane0, lane1):
        if not 0 <= lane <= 0xFFFFFFFF:
            raise BadInputs("a lane has 32 bits", got=str(lane), expected="0 to 2^32 - 1")
    return (lane1 << 32) | lane0


def hexadecimal(value: int) -> str:
    """As it is written everywhere: `0x` and 16 digits, leading zeros kept."""
    return f"0x{value:016x}"


def padded_bytes(numel: int, align_bytes: int) -> int:
    """The bytes a float32 tensor takes: rounded up to the alignment; none if it is empty."""
    return -(-FLOAT_BYTES * numel // align_bytes) * align_bytes


def padded_offsets(numels: Iterable[int], align_bytes: int = 256) -> tuple[list[int], int]:
    """The byte offset of each tensor, and the padded total (section 1.5)."""
    offsets, at = [], 0
    for numel in numels:
        offsets.append(at)
        at += padded_bytes(numel, align_bytes)
    return offsets, at


def gradient_floats(tensors: Sequence[Tensor], tile_pad_floats: int) -> int:
    """The length of the gradient buffer in floats: all parameters and the tile padding."""
    return sum(tensor.numel for tensor in tensors) + tile_pad_floats


def _named(name: str, alphabet: re.Pattern[str]) -> str:
    if not alphabet.fullmatch(name):
        raise BadInputs("a name outside its alphabet", got=repr(name), expected=alphabet.pattern)
    return name


def _dec(number: int, least: int = 0) -> str:
    """Base 10 without sign or leading zeros."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise BadInputs("a number outside its range", got=repr(number), expected=f"{least} or more")
    return str(number)
