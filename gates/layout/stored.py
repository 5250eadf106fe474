"""Reads the fingerprint that a checkpoint has stored, as bits: never through a float."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trueup.gates.collector import Collector
from trueup.gates.documents.model import Document
from trueup.gates.errors import Unreadable
from trueup.gates.findings import Where, show
from trueup.gates.layout.load import unfit
from trueup.gates.layout.model import LayoutFile
from trueup.gates.read.documents.read import load_document

_HEX = re.compile(r"0x[0-9a-f]{16}")
_NUMBERED = re.compile(r"version|migrated_from", re.IGNORECASE)
_DUMP = "an ISV dump"


@dataclass(frozen=True, slots=True)
class Stored:
    """What a checkpoint says of its layout."""

    name: str
    form: str
    fingerprint: int | None
    where: Where = field(default=Where())


def read_stored(path: Path, name: str, layout: LayoutFile, collector: Collector) -> Stored:
    """The stored fingerprint of a safetensors file, a JSON sidecar or a raw dump of the bus.

    Sizes that are stored beside it are held against the layout; no tensor is read. Raises
    `Unreadable` if the file is none of these.
    """
    if not os.path.isfile(path):
        what = "is not a regular file" if os.path.lexists(path) else "does not exist"
        raise Unreadable(
            what, where=name, expected="a .safetensors file, a .json sidecar or a dump",
            fix="check the path, and that its folder may be searched",
        )  # fmt: skip
    suffix = path.suffix.lower()
    if suffix == ".safetensors":
        return _weights(path, name, collector)
    if suffix in (".json", ".yaml", ".yml"):
        return _sidecar(path, name, layout, collector)
    return _dump(path, name, layout, collector)


def _document(path: Path, name: str, kind: str, collector: Collector) -> Document:
    document, faults = load_document(path, name, kind)
    if document.data is None and faults:
        raise unfit(faults[0], name)
    for fault in faults:
        collector.of_fault(name, fault)
    if not isinstance(document.data, dict):
        raise Unreadable("is no object", where=name, got=show(document.data), expected="an object")
    return document


def _weights(path: Path, name: str, collector: Collector) -> Stored:
    document = _document(path, name, "weights", collector)
    metadata = document.data.get("metadata") or {}
    _numbered(document, metadata, name, collector, "metadata")
    value = metadata.get("layout_fingerprint")
    where = Where(key="__metadata__.layout_fingerprint")
    return Stored(name, document.form, _parsed(value, name, where, collector), where)


def _sidecar(path: Path, name: str, layout: LayoutFile, collector: Collector) -> Stored:
    document = _document(path, name, "metadata", collector)
    data = document.data
    _numbered(document, data, name, collector)
    sizes = {
        "isv_total": layout.total,
        "n_param_tensors": len(layout.tensors),
        "total_params": layout.parameters,
        "total_padded_bytes": layout.padded_bytes,
        "tile_pad_floats": layout.tile_pad_floats,
        "align_bytes": layout.align_bytes,
    }
    for key, want in sizes.items():
        if key in data and (type(data[key]) is not int or data[key] != want):
            got = f"{show(data[key])}, the layout has {want}"
            collector.of_kind("layout_size_stored", name, document.where(key), got)
    where = document.where("layout_fingerprint")
    value = _parsed(data.get("layout_fingerprint"), name, where, collector)
    return Stored(name, document.form, value, where)


def _numbered(
    document: Document, data: dict[str, Any], name: str, collector: Collector, *way: str
) -> None:
    """A key that numbers the layout. A table of library versions is not one."""
    for key, value in data.items():
        if _NUMBERED.search(key) and not isinstance(value, dict):
            collector.of_kind("layout_numbered", name, document.where(*way, key), f"the key {key}")


def _parsed(value: Any, name: str, where: Where, collector: Collector) -> int | None:
    if isinstance(value, str) and _HEX.fullmatch(value):
        return int(value, 16)
    got = "absent" if value is None else show(value)
    collector.of_kind("fingerprint_not_stored", name, where, got)
    return None


def _dump(path: Path, name: str, layout: LayoutFile, collector: Collector) -> Stored:
    """The last eight bytes of the bus: two little-endian words, low half first."""
    size = path.stat().st_size
    if size % 4 or size < 8:
        raise Unreadable(
            "is no dump of the bus", where=name, got=f"{size} bytes",
            expected="float32 words in little-endian order, two or more",
            fix="name a .safetensors file, a .json sidecar, or the raw bytes of the bus",
        )  # fmt: skip
    words = size // 4
    if words != layout.total:
        got = f"{words} words, the layout has {layout.total}"
        collector.of_kind("layout_size_stored", name, Where(), got)
    try:
        with path.open("rb") as file:
            file.seek(size - 8)
            lane0, lane1 = struct.unpack("<2I", file.read(8))
    except (OSError, struct.error) as error:  # no leave to read it, or it was cut meanwhile
        raise Unreadable(
            "cannot be read", where=name, got=str(getattr(error, "strerror", None) or error),
            fix="check its permissions, and that nobody writes to it",
        ) from None  # fmt: skip
    return Stored(name, _DUMP, lane1 << 32 | lane0, Where(byte=size - 8))
