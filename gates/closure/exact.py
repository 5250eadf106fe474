"""Documents read once: strictly, with their digest, and with every number as it was printed.

A float no longer knows its decimals: `abs(0.85 - 1.0) <= 0.15` is false in binary. Criteria are
therefore compared as rationals of the decimals that stand in the files.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from trueup.gates.documents.model import Document
from trueup.gates.read.documents.json_text import parse_json
from trueup.gates.read.documents.source import Text, read_text
from trueup.gates.read.documents.toml_text import parse_toml
from trueup.gates.read.documents.yaml_text import parse_yaml
from trueup.gates.read.limits import Fault, Limits

_LARGEST = 400  # decimal places before or behind the point; floats reach 324


@dataclass(frozen=True, slots=True)
class Exact:
    """One document. `data` holds decimals where the file has numbers with a point.

    It is None if faults leave nothing to read; the plain values then are missing as well.
    """

    document: Document
    data: Any
    faults: tuple[Fault, ...]
    sha256: str

    @property
    def usable(self) -> bool:
        """Whether the text had no fault and holds a value."""
        return self.data is not None and not self.faults


def read_exact(path: Path, name: str, form: str, limits: Limits | None = None) -> Exact:
    """A JSON, TOML or YAML document. Raises `Unreadable` if nothing of it can be read."""
    limits = limits or Limits()
    faults: list[Fault] = []
    source = read_text(path, name, faults.append, limits)
    if source is None:
        size = path.stat().st_size
        return Exact(Document(None, form, size), None, tuple(faults), "")
    return parse_exact(source, form, limits, faults)


def parse_exact(source: Text, form: str, limits: Limits, faults: list[Fault]) -> Exact:
    """The same of a text that is read already."""
    parsers: dict[str, Callable[..., Any]] = {
        "JSON": parse_json, "TOML": parse_toml, "YAML": parse_yaml
    }  # fmt: skip
    parsed = parsers[form](source, faults.append, limits)
    plain = parsed.data if parsed.complete else None
    document = Document(plain, form, source.size, parsed.places)
    data = plain
    if plain is not None and not faults:
        data = _decimals(source.text, form, plain)
    return Exact(document, data, tuple(faults), hashlib.sha256(source.raw).hexdigest())


def _decimals(text: str, form: str, plain: Any) -> Any:
    """The value once more, its numbers as printed. Only called where the text has no fault."""
    if form == "JSON":
        return json.loads(text, parse_float=Decimal)
    return tomllib.loads(text, parse_float=Decimal) if form == "TOML" else plain


def form_of(path: str) -> str | None:
    """The form a file name promises; None if it is no document."""
    suffix = Path(path).suffix.lower()
    forms = {".json": "JSON", ".toml": "TOML", ".yaml": "YAML", ".yml": "YAML"}
    return forms.get(suffix)


def rational(value: object) -> Fraction | None:
    """A number as the rational of its printed decimals; None for anything else, NaN included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        value = Decimal(repr(value))
    if not isinstance(value, Decimal) or not value.is_finite():
        return None
    if value and abs(value.adjusted()) > _LARGEST:
        return None
    return Fraction(value)


def printed(value: object) -> str:
    """A value as it stands in the file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Fraction):
        return _decimal(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(printed(one) for one in value)}]"
    return str(value)


def _decimal(value: Fraction) -> str:
    """A mean has no printed form: its shortest one as a float, or the fraction where that lies."""
    if value.denominator == 1:
        return str(value.numerator)
    near = float(value)
    return repr(near) if Fraction(repr(near)) == value else f"{near!r} (rounded)"
