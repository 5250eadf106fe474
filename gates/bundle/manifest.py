"""What rules see of a bundle's manifest, whichever form it was written in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from trueup.gates.documents.model import Pointer

SCHEMA = "trueup.bundle/1"
NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file as the manifest lists it."""

    path: str
    pointer: Pointer
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant: the paths of its results by kind, each with its place in the manifest."""

    name: str
    pointer: Pointer
    evals: dict[str, tuple[tuple[str, Pointer], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest. A script's form has neither sizes nor totals nor an order."""

    form: Literal["document", "script"]
    entries: tuple[Entry, ...] = ()
    variants: tuple[Variant, ...] = ()
    total: dict[str, int] = field(default_factory=dict)


def read_manifest(data: Any) -> Manifest | None:
    """The manifest of a bundle; None if this is none. Parts that are odd are left out."""
    if not isinstance(data, dict):
        return None
    schema = data.get("schema")
    if (isinstance(schema, str) and schema.startswith("trueup.bundle/")) or (
        "files" in data and "variants" in data
    ):
        return _document(data)
    if "bundle_id" in data and "variants" in data:
        return _script(data)
    return None


def _document(data: dict[str, Any]) -> Manifest:
    entries = tuple(
        Entry(one["path"], ("files", index), _text(one.get("sha256")), _count(one.get("size")))
        for index, one in _objects(data.get("files"))
        if isinstance(one.get("path"), str)
    )
    variants = tuple(
        Variant(one["name"], ("variants", index), _paths(one.get("evals"), ("variants", index)))
        for index, one in _objects(data.get("variants"))
        if isinstance(one.get("name"), str)
    )
    total = data.get("total")
    counts = {key: _count(value) for key, value in total.items()} if isinstance(total, dict) else {}
    known = {key: value for key, value in counts.items() if value is not None}
    return Manifest("document", entries, variants, known)


def _paths(evals: Any, at: Pointer) -> dict[str, tuple[tuple[str, Pointer], ...]]:
    found = {}
    for kind, paths in (evals if isinstance(evals, dict) else {}).items():
        listed = paths if isinstance(paths, list) else []
        found[kind] = tuple(
            (path, (*at, "evals", kind, index))
            for index, path in enumerate(listed)
            if isinstance(path, str)
        )
    return found


def _script(data: dict[str, Any]) -> Manifest:
    root = data.get("bundle_root")
    lead = f"{root.rstrip('/')}/" if isinstance(root, str) else ""
    entries: list[Entry] = []
    variants: list[Variant] = []
    for index, one in _objects(data.get("variants")):
        at: Pointer = ("variants", index)
        files, evals, tag = one.get("files"), one.get("eval"), one.get("tag")
        for path, sha256 in (files if isinstance(files, dict) else {}).items():
            entries.append(Entry(path, (*at, "files", path), _text(sha256)))
        named: dict[str, tuple[tuple[str, Pointer], ...]] = {}
        for kind, part in (evals if isinstance(evals, dict) else {}).items():
            path = part.get("bundle_path") if isinstance(part, dict) else None
            if isinstance(path, str):
                place = (*at, "eval", kind, "bundle_path")
                named[kind] = ((path.removeprefix(lead), place),)
        if isinstance(tag, str):
            variants.append(Variant(tag, at, named))
    return Manifest("script", tuple(entries), tuple(variants))


def _objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    listed = value if isinstance(value, list) else []
    return [(index, one) for index, one in enumerate(listed) if isinstance(one, dict)]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
