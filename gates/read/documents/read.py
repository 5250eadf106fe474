"""One entry for every document: the form is told from its kind, its name and its first bytes."""

from __future__ import annotations

from pathlib import Path

from trueup.gates.catalogue.kinds import kinds
from trueup.gates.documents.model import Document
from trueup.gates.errors import Unreadable
from trueup.gates.read.documents.source import Report, read_text
from trueup.gates.read.limits import Fault, Limits

# Without a single value before it, such a fault means that the file is something else.
_NOTHING = ("document_syntax", "document_truncated", "document_trailing")
_FORMS = {".json": "JSON", ".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}


def read_document(path: Path, name: str, kind: str, *, report: Report, limits: Limits) -> Document:
    """The document, with its faults reported; raises `Unreadable` if nothing of it can be read.

    `data` is None if faults leave nothing that rules could be held against.
    """
    if kind == "weights":
        from trueup.gates.read.documents.safetensors import read_safetensors

        return read_safetensors(path, name, report, limits)
    if kind == "pickle":
        from trueup.gates.read.documents.archive import read_pickles

        return read_pickles(path, name, report, limits)
    if kind == "log":
        from trueup.gates.read.documents.log import read_log

        return read_log(path, name, report)
    if kind == "digest":
        return _read_digests(path, name, report, limits)
    return _read_text(path, name, report, limits)


def load_document(
    path: Path, name: str | None = None, kind: str = "document", limits: Limits | None = None
) -> tuple[Document, list[Fault]]:
    """The document and the faults of its text, for those who judge one file by itself."""
    faults: list[Fault] = []
    shown = str(path) if name is None else name
    document = read_document(path, shown, kind, report=faults.append, limits=limits or Limits())
    return document, faults


def _read_digests(path: Path, name: str, report: Report, limits: Limits) -> Document:
    from trueup.gates.read.documents.digests import parse_digests

    source = read_text(path, name, report, limits)
    if source is None:
        return Document(None, "digest list", path.stat().st_size)
    return parse_digests(source, name, report, limits)


def _read_text(path: Path, name: str, report: Report, limits: Limits) -> Document:
    form = _form(path, name)
    source = read_text(path, name, report, limits)
    if source is None:
        return Document(None, form, path.stat().st_size)
    if form == "JSON":
        from trueup.gates.read.documents.json_text import parse_json as parse
    elif form == "YAML":
        from trueup.gates.read.documents.yaml_text import parse_yaml as parse
    else:
        from trueup.gates.read.documents.toml_text import parse_toml as parse
    held: list[Fault] = []
    parsed = parse(source, held.append, limits)
    worst = held[-1] if held else None
    if not parsed.members and worst is not None and worst.kind in _NOTHING:
        raise Unreadable(
            f"is not {form}", where=f"{name}:{worst.line or ''}",
            got=worst.got, expected=kinds()[worst.kind].expected, fix=kinds()[worst.kind].fix,
        )  # fmt: skip
    if not parsed.members and parsed.complete:
        raise Unreadable(
            "holds no document", where=name, got="comments alone", expected=f"a {form} document"
        )
    for fault in held:
        report(fault)
    return Document(parsed.data if parsed.complete else None, form, source.size, parsed.places)


def _form(path: Path, name: str) -> str:
    """JSON unless the name says otherwise."""
    return _FORMS.get(path.suffix.lower(), _FORMS.get(Path(name).suffix.lower(), "JSON"))
