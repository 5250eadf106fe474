"""Loads a layout.toml: refused where it is not well-formed, judged elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.documents.model import Document
from trueup.gates.documents.schema import breaks
from trueup.gates.errors import Unreadable
from trueup.gates.layout.model import LayoutFile, SlotEntry, TensorEntry
from trueup.gates.read.documents.read import load_document
from trueup.gates.read.limits import Fault, Limits

_LIMITS = Limits(max_document=16 << 20, max_nodes=500_000)  # 100,000 slots or tensors, and more
# Constants of a layout are int where they count words, and 64 bits where they count bytes.
_MOST_WORDS, _MOST_BYTES = (1 << 31) - 1, (1 << 63) - 1


def load_layout(path: Path, name: str | None = None) -> LayoutFile:
    """The layout. Raises `Unreadable` with file, line and key if it is not what the schema says."""
    shown = str(path) if name is None else name
    layout = _layout(read_checked(path, shown, "layout/layout", "a layout"), shown)
    for what, size, most in (
        ("words of the bus", layout.total, _MOST_WORDS),
        ("bytes of all tensors", layout.padded_bytes, _MOST_BYTES),
    ):
        if size > most:
            raise Unreadable(
                f"is too large: {what}", where=shown, got=f"{size:,}", expected=f"at most {most:,}",
                fix="look for a length or a size that was mistyped",
            )  # fmt: skip
    return layout


def read_checked(path: Path, shown: str, schema: str, what: str) -> Document:
    """A TOML file without faults that fits its schema; raises `Unreadable` otherwise."""
    document, faults = load_document(path, shown, "layout", limits=_LIMITS)
    if faults:
        raise unfit(faults[0], shown)
    problems = breaks(document.data, schema)
    if problems:
        # A key that was misspelt says more than the one that is missing for it.
        told = next((one for one in problems if one.fix), problems[0])
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise Unreadable(
            f"is not {what}", where=f"{shown}:{document.where(*told.pointer)}",
            got=f"{told.got}{more}", expected=told.expected, fix=told.fix,
        )  # fmt: skip
    return document


def unfit(fault: Fault, shown: str) -> Unreadable:
    """What to say of a file of which nothing is taken because of a fault of its text."""
    kind = kinds()[fault.kind]
    said = fault.kind.removeprefix("document_").replace("_", " ")
    return Unreadable(
        f"is not fit to be read ({said})", where=f"{shown}:{fault.line or ''}".rstrip(":"),
        got=fault.got, expected=kind.expected, fix=kind.fix,
    )  # fmt: skip


def _layout(document: Document, name: str) -> LayoutFile:
    data: dict[str, Any] = document.data
    return LayoutFile(
        name,
        tuple(
            SlotEntry(one["name"], one["index"], one["length"], document.where("slot", i, "name"))
            for i, one in enumerate(data["slot"])
        ),
        tuple(
            TensorEntry(
                one["name"],
                one["numel"],
                tuple(one["shape"]) if "shape" in one else None,
                document.where("tensor", i, "name"),
            )
            for i, one in enumerate(data.get("tensor", []))
        ),
        data.get("align_bytes", 256),
        data.get("tile_pad_floats", 0),
        tuple(data.get("retired", ())),
        dict(data.get("expect", {})),
    )
