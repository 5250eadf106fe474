"""The bus of a contract: one float32 array in which several arguments are named slots.

A kernel takes the whole bus and reads and writes slots by index. The layout comes from a
layout.toml beside the contract, the same file that `trueup fingerprint` reads.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.oracle.errors import ContractError
from trueup.reference.errors import BadInputs
from trueup.reference.isv.layout import (
    FINGERPRINT_LENGTH,
    FINGERPRINT_SLOT,
    Layout,
    Slot,
    Tensor,
    canonical_bytes,
)

_LARGEST = 16 << 20  # bytes


@dataclass(frozen=True)
class Bus:
    """The array's name among the kernel's arguments, and where its slots are."""

    name: str
    layout: Layout
    digest: str  # SHA-256 of the layout file

    def span(self, name: str) -> slice | None:
        """The words of `SLOT`, or of all slots from `FIRST..LAST`; None if there are none."""
        first, _, last = name.partition("..")
        by_name = {slot.name: slot for slot in self.layout.slots}
        if first not in by_name or (last or first) not in by_name:
            return None
        start, end = by_name[first].index, by_name[last or first].end
        return slice(start, end) if start < end else None

    def slot_at(self, word: int) -> str:
        """The name of the slot that a word belongs to."""
        return next(s.name for s in self.layout.slots if s.index <= word < s.end)


def read_bus(path: Path, table: Mapping[str, Any] | None) -> Bus | None:
    """Read the `[bus]` table and the layout it names."""
    if table is None:
        return None
    file = path.parent / table["layout"]
    where = f"{path}: bus.layout"
    try:
        data = file.read_bytes() if file.stat().st_size <= _LARGEST else b""
    except OSError as error:
        raise ContractError(
            "no such layout", where=where, got=f"{table['layout']} ({error.strerror})",
            expected="a layout.toml, relative to the contract's own file",
        ) from None  # fmt: skip
    layout = _layout(str(file), data)
    _dense(layout, str(file))
    return Bus(table["name"], layout, hashlib.sha256(data).hexdigest())


def _layout(where: str, data: bytes) -> Layout:
    fix = "`trueup fingerprint LAYOUT` says what is wrong with it"
    try:
        table = tomllib.loads(data.decode("utf-8"))
        layout = Layout(
            tuple(Slot(one["index"], one["length"], one["name"]) for one in table["slot"]),
            tuple(Tensor(one["name"], one["numel"]) for one in table.get("tensor", ())),
            table.get("align_bytes", 256),
            table.get("tile_pad_floats", 0),
        )
        canonical_bytes(layout)  # names and numbers within their ranges
    except (ValueError, KeyError, TypeError, RecursionError, BadInputs) as error:
        raise ContractError("not a layout", where=where, got=str(error), fix=fix) from None
    return layout


def _dense(layout: Layout, where: str) -> None:
    """Slots cover the bus without hole or overlap, the fingerprint last."""
    at = 0
    for slot in sorted(layout.slots):
        if slot.index != at:
            raise ContractError(
                "slots overlap or leave a hole", where=where,
                got=f"{slot.name} at word {slot.index}", expected=f"the next slot at word {at}",
                fix="`trueup fingerprint LAYOUT` lists every such place",
            )  # fmt: skip
        at = slot.end
    last = max(layout.slots)
    if last.name != FINGERPRINT_SLOT or last.length != FINGERPRINT_LENGTH:
        raise ContractError(
            "the bus does not end in its fingerprint", where=where, got=last.name,
            expected=f"{FINGERPRINT_SLOT} of two words as the last slot",
        )  # fmt: skip


def check_slots(path: Path, bus: Bus | None, tables: Sequence[Mapping[str, Any]]) -> None:
    """Hold the arguments that are slots to the layout."""
    taken: dict[int, str] = {}
    for index, table in enumerate(tables):
        where = f"{path}: arg[{index}] ({table['name']})"
        if bus is not None and table["name"] == bus.name:
            raise ContractError("the bus has this name", where=where)
        if "slot" not in table:
            continue
        if bus is None:
            raise ContractError(
                "a slot without a bus", where=where, got=table["slot"],
                fix='add [bus] with `name` and `layout = "layout.toml"`',
            )  # fmt: skip
        _fits(where, bus, table)
        span = _fits(where, bus, table)
        for word in range(span.start, span.stop):
            if word in taken:
                raise ContractError(
                    "two arguments are one slot", where=where,
                    got=f"{bus.slot_at(word)}, which is {taken[word]}",
                    fix="an argument that is read and written has the role inout",
                )  # fmt: skip
            taken[word] = table["name"]


def _fits(where: str, bus: Bus, table: Mapping[str, Any]) -> slice:
    span = bus.span(table["slot"])
    if span is None or span.stop > bus.layout.total - FINGERPRINT_LENGTH:
        raise ContractError(
            "no slot that a kernel may use", where=where, got=table["slot"],
            expected="one, or FIRST..LAST, of " + ", ".join(s.name for s in bus.layout.slots[:-1]),
        )  # fmt: skip
    if table["role"] not in ("in", "out", "inout") or table.get("dtype") != "f32":
        raise ContractError(
            "a slot is float32 and in, out or inout", where=where,
            got=f"{table['role']} {table.get('dtype', 'without dtype')}",
        )  # fmt: skip
    if "strides" in table or "written" in table:
        raise ContractError("a slot has neither strides nor `written`", where=where)
    if table.get("shape") != [span.stop - span.start]:
        raise ContractError(
            "the shape is not that of the slot", where=where, got=str(table.get("shape")),
            expected=f"[{span.stop - span.start}]",
        )  # fmt: skip
    return span
