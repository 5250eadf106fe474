"""What a table is stored as: told from its first bytes, and held against its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from trueup.gates.read.sources.source import Source
from trueup.gates.read.sources.streams import Codec, begins

Form = Literal["JSON", "CSV", "parquet"]

SUFFIXES: dict[str, Codec] = {
    ".gz": "gzip",
    ".gzip": "gzip",
    ".zst": "zstandard",
    ".zstd": "zstandard",
}
_FORMS: dict[str, Form] = {
    ".json": "JSON",
    ".jsonl": "JSON",
    ".ndjson": "JSON",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_PARQUET = (b"PAR1", b"PARE")  # PARE: with an encrypted footer
_JSON = re.compile(rb"[ \t\r\n\0]*(?:\{[ \t\r\n]*[\"}]|\[[ \t\r\n]*[\[{\]])")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Name:
    """What a file's name says: the form and the compression, None where it says nothing."""

    form: Form | None
    codec: Codec | None


def name_of(name: str) -> Name:
    """`log.csv.gz` says CSV and gzip."""
    path = PurePosixPath(name.replace("\\", "/").rsplit("/", 1)[-1].lower())
    codec = SUFFIXES.get(path.suffix)
    if codec is not None:
        path = path.with_suffix("")
    return Name(_FORMS.get(path.suffix), codec)


def without_codec(name: str) -> str | None:
    """The name without `.gz` or `.zst`; None if it has no such ending."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and f".{suffix}".lower() in SUFFIXES else None


def codec_of(source: Source) -> Codec | None:
    """How the content is compressed."""
    head = source.read_at(4, 0)
    codecs: tuple[Codec, ...] = ("gzip", "zstandard")
    return next((codec for codec in codecs if head and begins(codec, head)), None)


def form_of(source: Source, name: Name) -> Form:
    """What the content is. Text that is no JSON is CSV only where the name says so."""
    head = source.read_at(4096, 0)
    if head.startswith(_PARQUET):
        return "parquet"
    if _JSON.match(head.removeprefix(_BOM)):
        return "JSON"
    return name.form or "JSON"
