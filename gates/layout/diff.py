"""What moved between two layouts, by name, offset and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from trueup.gates.collector import Collector
from trueup.gates.findings import Where
from trueup.gates.layout.model import FINGERPRINT_SLOT, LayoutFile, TensorEntry

Change = Literal["added", "removed", "moved", "resized", "same"]


@dataclass(frozen=True, slots=True)
class SlotChange:
    """One slot in both layouts: (index, length) before and after, None where it is not there."""

    name: str
    change: Change
    before: tuple[int, int] | None
    after: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class TensorChange:
    """One tensor in both layouts: (place, elements, byte offset) before and after."""

    name: str
    change: Change
    before: tuple[int, int, int] | None
    after: tuple[int, int, int] | None

    @property
    def shift(self) -> int:
        """Bytes that its beginning moved by; 0 if it is in one layout only."""
        return self.after[2] - self.before[2] if self.before and self.after else 0


@dataclass(frozen=True, slots=True)
class LayoutDiff:
    """Everything that differs. Unchanged entries are counted, not listed."""

    slots: tuple[SlotChange, ...]
    tensors: tuple[TensorChange, ...]
    same_slots: int
    same_tensors: int
    sizes: dict[str, tuple[int, int]]  # of the bus, the tensors, the alignment: before, after

    @property
    def empty(self) -> bool:
        """Whether the two layouts are the same."""
        return not (self.slots or self.tensors or self.sizes)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "slots": [
                {"name": c.name, "change": c.change, "before": _list(c.before),
                 "after": _list(c.after)}
                for c in self.slots
            ],
            "tensors": [
                {"name": c.name, "change": c.change, "before": _list(c.before),
                 "after": _list(c.after), "shift_bytes": c.shift}
                for c in self.tensors
            ],
            "same_slots": self.same_slots,
            "same_tensors": self.same_tensors,
            "sizes": {name: list(pair) for name, pair in self.sizes.items()},
        }  # fmt: skip


def diff_layouts(before: LayoutFile, after: LayoutFile) -> LayoutDiff:
    """Compare two layouts that keep their rules."""
    slots = _slots(before, after)
    tensors = _tensors(before, after)
    sizes = {
        name: pair
        for name, pair in {
            "isv_total": (before.total, after.total),
            "tensors": (len(before.tensors), len(after.tensors)),
            "parameters": (before.parameters, after.parameters),
            "padded_bytes": (before.padded_bytes, after.padded_bytes),
            "align_bytes": (before.align_bytes, after.align_bytes),
            "tile_pad_floats": (before.tile_pad_floats, after.tile_pad_floats),
        }.items()
        if pair[0] != pair[1]
    }
    return LayoutDiff(
        tuple(one for one in slots if one.change != "same"),
        tuple(one for one in tensors if one.change != "same"),
        sum(one.change == "same" for one in slots),
        sum(one.change == "same" for one in tensors),
        sizes,
    )


def judge_diff(diff: LayoutDiff, after: LayoutFile, collector: Collector) -> None:
    """Tail-append: slots are only ever added at the end, and only the fingerprint moves there."""
    places = {slot.name: slot.where for slot in after.slots}
    for change in diff.slots:
        if change.name == FINGERPRINT_SLOT or change.change == "added":
            continue
        got = f"{change.name} {_range(change.before)} -> {_range(change.after)}"
        kind = "slot_removed" if change.after is None else "slot_moved"
        where = places.get(change.name, Where(key=change.name))
        collector.of_kind(kind, after.name, where, got)


def _slots(before: LayoutFile, after: LayoutFile) -> list[SlotChange]:
    old = {slot.name: (slot.index, slot.length) for slot in before.slots}
    new = {slot.name: (slot.index, slot.length) for slot in after.slots}
    out = []
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        change: Change = (
            "added" if was is None
            else "removed" if now is None
            else "same" if was == now
            else "resized" if was[1] != now[1]
            else "moved"
        )  # fmt: skip
        out.append(SlotChange(name, change, was, now))
    return out


def _tensors(before: LayoutFile, after: LayoutFile) -> list[TensorChange]:
    old, new = _placed(before), _placed(after)
    out = []
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        change: Change = (
            "added" if was is None
            else "removed" if now is None
            else "resized" if was[1] != now[1]
            else "same" if was == now
            else "moved"
        )  # fmt: skip
        out.append(TensorChange(name, change, was, now))
    return out


def _placed(layout: LayoutFile) -> dict[str, tuple[int, int, int]]:
    """Place in the list, elements and byte offset of each tensor."""
    at = 0
    placed: dict[str, tuple[int, int, int]] = {}
    for k, tensor in enumerate(layout.tensors):
        placed[tensor.name] = (k, tensor.numel, at)
        at += _padded(tensor, layout.align_bytes)
    return placed


def _padded(tensor: TensorEntry, align: int) -> int:
    return -(-4 * tensor.numel // align) * align


def _range(at: tuple[int, int] | None) -> str:
    return "gone" if at is None else f"[{at[0]}, {at[0] + at[1]})"


def _list(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)
