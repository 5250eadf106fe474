"""Reads one file of source, and says what could not be read or parsed."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

from trueup.gates.source.config import Config
from trueup.gates.source.files import MAX_FILE, relative
from trueup.gates.source.grammar import errors
from trueup.gates.source.unit import Hit, Kind, Unit, kind_of

_MARK = b"\xef\xbb\xbf"
_MUCH = 20  # a twentieth of a file that was not understood is worth a word


def read_unit(file: Path, config: Config, kind: Kind | None = None) -> tuple[Unit | None, str]:
    """The file, or why it cannot be judged."""
    language = kind or kind_of(file.name)
    if language is None:
        return None, "of no language that is judged"
    try:
        size = file.stat().st_size
        if size > MAX_FILE:
            return None, f"{size} bytes, at most {MAX_FILE} are read"
        raw = file.read_bytes().removeprefix(_MARK)
        raw.decode("utf-8")
    except OSError as error:
        return None, error.strerror or str(error)
    except UnicodeDecodeError as error:
        recoded = _declared(raw) if language == "python" else None
        if recoded is None:
            return None, f"not UTF-8 at byte {error.start}"
        raw = recoded
    return Unit(str(file), relative(file, config), language, raw, config), ""


def _declared(raw: bytes) -> bytes | None:
    """Python in the encoding that its first lines declare, as UTF-8."""
    try:
        name, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return raw.decode(name).encode("utf-8")
    except (SyntaxError, LookupError, UnicodeError):
        return None


def not_understood(unit: Unit) -> Iterator[Hit]:
    """Text that has no tree, or pieces that do not fit into it: of these little can be said."""
    if unit.kind == "python":
        if unit.tree is None:
            yield Hit("source_unreadable", 0, "not Python that can be parsed")
    elif unit.kind in ("cuda", "rust") and unit.root.has_error:
        pieces = [(node.start_byte, node.end_byte) for node in errors(unit.root)]
        size = sum(end - start for start, end in pieces)
        if size * _MUCH > len(unit.raw):
            got = f"{size} of {len(unit.raw)} bytes do not fit into its tree"
            yield Hit("source_partly_parsed", min(pieces)[0], got)
