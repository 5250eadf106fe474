"""Loads a layout.toml: refused where it is not well-formed, judged elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trueup.gates.documents.model import Document
from trueup.gates.documents.schema import breaks
from trueup.gates.errors import Unreadable
from trueup.gates.layout.model import LayoutFile, SlotEntry, TensorEntry
from trueup.gates.read.documents.read import load_document
from trueup.gates.read.limits import Limits

_LIMITS = Limits(max_document=64 << 20, max_nodes=2_000_000)  # thousands of tensors, four a line


def load_layout(path: Path, name: str | None = None) -> LayoutFile:
    """The layout. Raises `Unreadable` with file, line and key if it is not what the schema says."""
    shown = str(path) if name is None else name
    document, faults = load_document(path, shown, "layout", limits=_LIMITS)
    if faults:
        first = faults[0]
        raise Unreadable(
            f"is not fit to be read ({first.kind.removeprefix('document_').replace('_', ' ')})",
            where=f"{shown}:{first.line or ''}", got=first.got, fix="correct the file",
        )  # fmt: skip
    problems = breaks(document.data, "layout/layout")
    if problems:
        first_break = next((one for one in problems if one.fix), problems[0])  # a name misspelt
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        where = document.where(*first_break.pointer)
        raise Unreadable(
            "is not a layout", where=f"{shown}:{where}", got=f"{first_break.got}{more}",
            expected=first_break.expected, fix=first_break.fix,
        )  # fmt: skip
    return _layout(document, shown)


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
