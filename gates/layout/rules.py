"""The rules a layout must keep: dense, disjoint, in order, its fingerprint at the tail."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trueup.gates.collector import Collector
from trueup.gates.findings import Where
from trueup.gates.layout.model import (
    FINGERPRINT_SLOT,
    FINGERPRINT_WORDS,
    LayoutFile,
    SlotEntry,
)

Broken = tuple[str, Where, str]  # kind, place, got


def judge_layout(layout: LayoutFile, collector: Collector) -> None:
    """Report every rule that the layout breaks."""
    for rule in _RULES:
        for kind, where, got in rule(layout):
            collector.of_kind(kind, layout.name, where, got)


def _order(layout: LayoutFile) -> Iterator[Broken]:
    for before, slot in zip(layout.slots, layout.slots[1:], strict=False):
        if slot.index < before.index:
            yield "slots_out_of_order", slot.where, f"{slot} after {before}"


def _names(layout: LayoutFile) -> Iterator[Broken]:
    for kind, entries in (
        ("slot_name_twice", layout.slots),
        ("tensor_name_twice", layout.tensors),
    ):
        seen: set[str] = set()
        for entry in entries:
            if entry.name in seen:
                yield kind, entry.where, f"{entry.name} again"
            seen.add(entry.name)


def _overlaps(layout: LayoutFile) -> Iterator[Broken]:
    """Each slot against the one that reaches furthest before it."""
    reach: SlotEntry | None = None
    for slot in sorted(layout.slots, key=lambda slot: (slot.index, slot.end)):
        if reach is not None and slot.index < reach.end:
            end = min(slot.end, reach.end)
            yield "slots_overlap", slot.where, f"{reach} and {slot} share [{slot.index}, {end})"
        if reach is None or slot.end > reach.end:
            reach = slot


def _holes(layout: LayoutFile) -> Iterator[Broken]:
    reach = 0
    for slot in sorted(layout.slots, key=lambda slot: slot.index):
        if slot.index > reach:
            yield "slots_leave_hole", slot.where, f"[{reach}, {slot.index}) before {slot}"
        reach = max(reach, slot.end)


def _tail(layout: LayoutFile) -> Iterator[Broken]:
    found = [slot for slot in layout.slots if slot.name == FINGERPRINT_SLOT]
    if not found:
        yield "fingerprint_slot_missing", Where(key=FINGERPRINT_SLOT), "no such slot"
        return
    slot = found[0]
    if slot.length != FINGERPRINT_WORDS:
        yield "fingerprint_slot_missing", slot.where, f"{slot}, {slot.length} words"
    elif slot.index != layout.total - FINGERPRINT_WORDS:
        yield "fingerprint_not_at_tail", slot.where, f"{slot} in a bus of {layout.total} words"


def _retired(layout: LayoutFile) -> Iterator[Broken]:
    for slot in layout.slots:
        if slot.name in layout.retired:
            yield "slot_name_retired", slot.where, slot.name


def _shapes(layout: LayoutFile) -> Iterator[Broken]:
    for tensor in layout.tensors:
        if tensor.shape is None:
            continue
        product = 1
        for size in tensor.shape:
            product *= size
        if product != tensor.numel:
            shape = " x ".join(map(str, tensor.shape)) or "a scalar"
            yield "tensor_shape_differs", tensor.where, f"{shape} = {product}, numel {tensor.numel}"


def _expected(layout: LayoutFile) -> Iterator[Broken]:
    """All but the fingerprint, which is not computed here."""
    have: dict[str, int] = {
        "isv_total": layout.total,
        "slots": len(layout.slots),
        "tensors": len(layout.tensors),
        "parameters": layout.parameters,
        "padded_bytes": layout.padded_bytes,
        "gradient_floats": layout.parameters + layout.tile_pad_floats,
    }
    for name, value in have.items():
        if name in layout.expect and layout.expect[name] != value:
            got = f"{name} is {value}, expected {layout.expect[name]}"
            yield "layout_total_differs", Where(key=f"expect.{name}"), got


_RULES: tuple[Callable[[LayoutFile], Iterator[Broken]], ...] = (
    _order, _names, _overlaps, _holes, _tail, _retired, _shapes, _expected,
)  # fmt: skip
