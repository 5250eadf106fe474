"""The reset registry: every stateful name, and what becomes of it at a boundary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup.gates.collector import Collector
from trueup.gates.documents.model import Document
from trueup.gates.findings import Where
from trueup.gates.layout.load import read_checked
from trueup.gates.layout.model import FINGERPRINT_SLOT, LayoutFile

PREFIX = "ISV_"  # of a slot's name in the registry
_WITH_INIT = ("HardReset", "SoftReset", "EpochReset")


@dataclass(frozen=True, slots=True)
class ResetEntry:
    """What happens to one name. `init` has one value for all elements, or one each."""

    name: str
    category: str
    init: tuple[float, ...] = ()
    kappa: float | None = None
    where: Where = field(default=Where(), compare=False)


@dataclass(frozen=True, slots=True)
class Registry:
    """What a registry.toml says."""

    name: str  # as reports call the file
    buffers: tuple[tuple[str, Where], ...]
    entries: tuple[ResetEntry, ...]

    def by_name(self) -> dict[str, ResetEntry]:
        """The entry of each name; the first where there are several."""
        return {entry.name: entry for entry in reversed(self.entries)}


def load_registry(path: Path, name: str | None = None) -> Registry:
    """The registry. Raises `Unreadable` with file, line and key if it is none."""
    shown = str(path) if name is None else name
    document = read_checked(path, shown, "layout/registry", "a registry")
    data = document.data
    buffers = tuple(
        (one["name"], document.where("buffer", i, "name"))
        for i, one in enumerate(data.get("buffer", []))
    )
    entries = tuple(_entry(document, i, one) for i, one in enumerate(data["entry"]))
    return Registry(shown, buffers, entries)


def _entry(document: Document, index: int, one: dict[str, Any]) -> ResetEntry:
    init = one.get("init")
    values = tuple(init) if isinstance(init, list) else () if init is None else (init,)
    where = document.where("entry", index, "name")
    return ResetEntry(one["name"], one["category"], values, one.get("kappa"), where)


def stateful_names(registry: Registry, layout: LayoutFile) -> dict[str, Where]:
    """Every name that holds state: the slots under their prefix, and the declared buffers."""
    names = {PREFIX + slot.name: slot.where for slot in layout.slots}
    names.update(registry.buffers)
    return names


def judge_registry(registry: Registry, layout: LayoutFile, collector: Collector) -> None:
    """Report names without an entry, entries without a name, and entries that say too little."""
    names = stateful_names(registry, layout)
    lengths = {PREFIX + slot.name: slot.length for slot in layout.slots}
    _declared_once(registry, collector)
    seen: set[str] = set()
    for entry in registry.entries:
        if entry.name in seen:
            collector.of_kind("state_registered_twice", registry.name, entry.where, entry.name)
        elif entry.name not in names:
            got = f"{entry.name}, neither a slot of {layout.name} nor a [[buffer]]"
            collector.of_kind("registered_nothing", registry.name, entry.where, got)
        seen.add(entry.name)
        for got in _incomplete(entry, lengths.get(entry.name)):
            collector.of_kind("reset_incomplete", registry.name, entry.where, got)
    for name in names:
        if name not in seen:
            where = Where(key=name)
            collector.of_kind("state_unregistered", registry.name, where, f"{name} has no entry")
    retired = {PREFIX + name for name in layout.retired} | set(layout.retired)
    for entry in registry.entries:
        if entry.name in retired and entry.name not in names:
            collector.of_kind("slot_name_retired", registry.name, entry.where, entry.name)


def _declared_once(registry: Registry, collector: Collector) -> None:
    declared: set[str] = set()
    for name, where in registry.buffers:
        if name in declared:
            collector.of_kind(
                "state_registered_twice", registry.name, where, f"[[buffer]] {name} again"
            )
        declared.add(name)


def _incomplete(entry: ResetEntry, length: int | None) -> Iterator[str]:
    """What an entry's category needs and does not have, or has and cannot use."""
    if (entry.category in _WITH_INIT) != bool(entry.init):
        said = "needs init" if entry.category in _WITH_INIT else "has no use for init"
        yield f"{entry.name}: {entry.category} {said}"
    if (entry.category == "SoftReset") != (entry.kappa is not None):
        said = "needs kappa" if entry.category == "SoftReset" else "has no use for kappa"
        yield f"{entry.name}: {entry.category} {said}"
    tail = entry.name == PREFIX + FINGERPRINT_SLOT
    if (entry.category == "LayoutTail") != tail:
        yield f"{entry.name}: LayoutTail is for {PREFIX}{FINGERPRINT_SLOT}, and only that"
    if length is not None and len(entry.init) not in (0, 1, length):
        yield f"{entry.name}: {len(entry.init)} initial values for {length} words"
