"""Opens what an acceptance names: strictly, with the literal of every number, inside its folder."""

from __future__ import annotations

import datetime
import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from trueup.gates.acceptance.exact import MISSING, Number, number
from trueup.gates.catalogue.kinds import kinds
from trueup.gates.documents.model import Pointer, dotted
from trueup.gates.errors import Unreadable
from trueup.gates.findings import ArtifactInfo, Where
from trueup.gates.read.documents.json_text import parse_json
from trueup.gates.read.documents.places import Places
from trueup.gates.read.documents.source import Text, opened, text_of
from trueup.gates.read.documents.toml_text import parse_toml
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.rows.scanner import TOKEN

Report = Callable[[Fault], None]

_LINE = 4 << 20  # bytes of one line of JSON


@dataclass(frozen=True, slots=True)
class Input:
    """One document. `data` holds decimals as they were written only in TOML: ask `number`."""

    name: str
    path: Path
    data: Any
    form: str
    raw: bytes
    sha256: str
    places: Places | None = None
    line: int = 1  # of its first line: a row of JSON lines is a document of its own

    def number(self, pointer: Pointer) -> Number:
        """The number at a place, exactly as it was written."""
        value = self.data
        for part in pointer:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return MISSING
        return number(value, self._literal(pointer) if isinstance(value, float) else None)

    def _literal(self, pointer: Pointer) -> str | None:
        at = self.places.offset(pointer) if self.places is not None else None
        found = TOKEN.match(self.raw, at) if at is not None else None
        return found.group().decode() if found and found.lastgroup == "num" else None

    def where(self, pointer: Pointer) -> Where:
        """The place of a value, or of the nearest thing around it."""
        key = dotted(pointer)
        if self.places is None:
            return Where(key=key)
        for end in range(len(pointer), -1, -1):
            place = self.places.get(pointer[:end])
            if place is not None:
                return Where(line=place[0] + self.line - 1, byte=place[1], key=key)
        return Where(key=key)


@dataclass(slots=True)
class Folder:
    """A folder whose files may be opened; nothing leads out of it."""

    root: Path
    name: str  # as people call it
    report: Callable[[str, Fault], None]
    limits: Limits = field(default_factory=Limits)
    opened: dict[str, ArtifactInfo] = field(default_factory=dict)

    def path(self, relative: str) -> Path:
        """The file of this name. Raises `Unreadable` if it is not there, or outside."""
        root = Path(os.path.realpath(self.root))
        shown = self.shown(relative)
        if not relative or "\0" in relative or os.path.isabs(relative):
            raise Unreadable(
                "is no relative path", where=shown, expected="a path below the folder of the run",
                fix="name the file relative to the acceptance file (or to --run)",
            )  # fmt: skip
        target = Path(os.path.realpath(root / relative))
        if not target.is_relative_to(root):
            raise Unreadable(
                "leads out of the folder", where=shown, got=relative,
                expected=f"a file below {self.name or '.'}",
                fix="copy the file into the folder, or give the folder that holds both",
            )  # fmt: skip
        if not target.is_file():
            raise Unreadable(
                "is not there", where=shown, expected="a file", fix="check the path and the run"
            )
        return target

    def shown(self, relative: str) -> str:
        """A file as reports name it."""
        return f"{self.name}/{relative}" if self.name not in ("", ".") else relative

    def whole(self, relative: str, kind: str) -> bytes:
        """The whole of a file within the limit for documents."""
        raw = self._read(relative)
        self._note(self.shown(relative), kind, "text", len(raw), 0)
        return raw

    def _read(self, relative: str) -> bytes:
        path, name = self.path(relative), self.shown(relative)
        with opened(path, name, lambda fault: self.report(name, fault)) as (file, size):
            if size > self.limits.max_document:
                raise Unreadable(
                    "is too large", where=name, got=f"{size} bytes",
                    expected=f"at most {self.limits.max_document} bytes",
                )  # fmt: skip
            raw: bytes = file.read(self.limits.max_document + 1)
        return raw

    def document(self, relative: str, kind: str) -> Input:
        """A JSON or TOML document. Raises `Unreadable` if no value can be built from it."""
        raw, name = self._read(relative), self.shown(relative)
        form = "TOML" if relative.lower().endswith(".toml") else "JSON"
        found = parse(raw, name, self.path(relative), form, self.limits, self._teller(name))
        self._note(name, kind, form, len(raw), 0)
        return found

    def _teller(self, name: str) -> Report:
        return lambda fault: self.report(name, fault)

    def rows(self, relative: str, kind: str) -> Iterator[Input | None]:
        """The rows of a file of JSON lines; None for a line that cannot be read."""
        path, name = self.path(relative), self.shown(relative)
        count = 0
        for line in lines(path, name, self._teller(name)):
            count += 1
            yield row(line, name, path, self.limits, self._teller(name))
        self._note(name, kind, "JSON lines", path.stat().st_size, count)

    def text_lines(self, relative: str, kind: str) -> Iterator[Line]:
        """The lines of a log, whatever stands in them."""
        path, name = self.path(relative), self.shown(relative)
        count = 0
        for line in lines(path, name, self._teller(name)):
            count += 1
            yield line
        self._note(name, kind, "text", path.stat().st_size, count)

    def _note(self, name: str, kind: str, form: str, size: int, rows: int) -> None:
        known = self.opened.get(name)
        if known is not None:
            kind = known.kind if known.kind != "document" else kind
            rows = max(rows, known.rows)
        self.opened[name] = ArtifactInfo(name, kind, form, size, rows, 0)


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline. `ended`: it had one."""

    number: int
    byte: int
    raw: bytes
    ended: bool


def lines(path: Path, name: str, report: Report) -> Iterator[Line]:
    """The lines of a file; a very long one is cut, and reported."""
    with opened(path, name, report) as (file, _):
        number, byte = 0, 0
        while raw := file.readline(_LINE + 1):
            number += 1
            kept, size = raw[:_LINE], len(raw)
            if len(raw) > _LINE and not raw.endswith(b"\n"):
                report(
                    Fault("document_too_large", f"a line of more than {_LINE} bytes", number, byte)
                )
                while (more := file.readline(_LINE)) and not more.endswith(b"\n"):
                    size += len(more)
                size += len(more)
            yield Line(number, byte, kept.rstrip(b"\n"), raw.endswith(b"\n"))
            byte += size


def row(line: Line, name: str, path: Path, limits: Limits, report: Report) -> Input | None:
    """One line of JSON as a document; None if no object can be built from it."""

    def tell(fault: Fault) -> None:
        report(replace(fault, line=line.number, row=line.number))

    def tell_inside(fault: Fault) -> None:
        tell(replace(fault, byte=line.byte + (fault.byte or 0)))

    if not line.raw.strip():
        tell(Fault("document_syntax", "a blank line", byte=line.byte))
        return None
    try:
        text = text_of(line.raw, name, tell_inside)
        if text is None:
            return None
        shifted = Text(text.raw, text.text, text.size, text.shift + line.byte)
        parsed = parse_json(shifted, tell, limits)
    except Unreadable as error:
        tell(Fault("document_syntax", error.got or error.what, byte=line.byte))
        return None
    if not parsed.complete:
        return None
    digest = hashlib.sha256(line.raw).hexdigest()
    return Input(name, path, parsed.data, "JSON", text.raw, digest, parsed.places, line.number)


def parse(raw: bytes, name: str, path: Path, form: str, limits: Limits, report: Report) -> Input:
    """A document from its bytes. Raises `Unreadable` if no value can be built."""
    faults: list[Fault] = []

    def tell(fault: Fault) -> None:
        faults.append(fault)
        report(fault)

    held: list[Fault] = []
    text = text_of(raw, name, tell)
    digest = hashlib.sha256(raw).hexdigest()
    if text is not None:
        parsed = (parse_toml if form == "TOML" else parse_json)(text, held.append, limits)
        if parsed.complete:
            for fault in held:
                report(fault)
            data = parsed.data
            if form == "TOML":
                data = _plain(tomllib.loads(text.text, parse_float=Decimal))
            return Input(name, path, data, form, text.raw, digest, parsed.places)
    worst = (held or faults)[-1]
    place, kind = (name, worst.line, worst.byte), kinds()[worst.kind]
    raise Unreadable(
        f"is not {form}: {kind.summary}",
        where=":".join(str(part) for part in place if part is not None),
        got=worst.got, expected=kind.expected, fix=kind.fix,
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """TOML data with its times as text; decimals stay decimals."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return value
