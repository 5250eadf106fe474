"""A layout as it was read from a file: plain data with the place of each entry."""

from __future__ import annotations

from dataclasses import dataclass, field

from trueup.gates.findings import Where

FINGERPRINT_SLOT = "LAYOUT_FINGERPRINT"
FINGERPRINT_WORDS = 2


@dataclass(frozen=True, slots=True)
class SlotEntry:
    """A named range [index, index + length) of the bus, in float32 words."""

    name: str
    index: int
    length: int
    where: Where = field(default=Where(), compare=False)

    @property
    def end(self) -> int:
        """The first index after it."""
        return self.index + self.length

    def __str__(self) -> str:
        """`NAME [3, 5)`."""
        return f"{self.name} [{self.index}, {self.end})"


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One parameter tensor; its place in the list is part of the layout."""

    name: str
    numel: int
    shape: tuple[int, ...] | None = None
    where: Where = field(default=Where(), compare=False)


@dataclass(frozen=True, slots=True)
class LayoutFile:
    """What a layout.toml says."""

    name: str  # as reports call the file
    slots: tuple[SlotEntry, ...]
    tensors: tuple[TensorEntry, ...]
    align_bytes: int = 256
    tile_pad_floats: int = 0
    retired: tuple[str, ...] = ()
    expect: dict[str, int | str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """ISV_TOTAL: the words of the bus."""
        return max((slot.end for slot in self.slots), default=0)

    @property
    def parameters(self) -> int:
        """The elements of all tensors."""
        return sum(tensor.numel for tensor in self.tensors)

    @property
    def padded_bytes(self) -> int:
        """The bytes of all tensors, each rounded up to the alignment."""
        return sum(-(-4 * tensor.numel // self.align_bytes) for tensor in self.tensors) * (
            self.align_bytes
        )
