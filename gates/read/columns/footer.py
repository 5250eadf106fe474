"""The footer of a parquet file, read strictly before any engine sees the file.

An engine that trusts it allocates what it says and reads where it points.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from typing import Any

from trueup.gates.errors import Unreadable
from trueup.gates.findings import show
from trueup.gates.read.columns.thrift import Compact, Fields, ThriftError, structs, whole
from trueup.gates.read.limits import Limits
from trueup.gates.read.sources.source import Source

MAGIC = b"PAR1"
_COLUMN: Fields = {
    3: ("path", None), 4: ("codec", None), 5: ("values", None), 6: ("uncompressed", None),
    7: ("compressed", None), 9: ("data", None), 11: ("dictionary", None),
}  # fmt: skip
_GROUP: Fields = {
    1: ("columns", {1: ("file", None), 3: ("meta", _COLUMN), 8: ("crypto", {})}),
    3: ("rows", None),
}
_SCHEMA: Fields = {3: ("repetition", None), 4: ("name", None), 5: ("children", None)}
_FILE: Fields = {
    2: ("schema", _SCHEMA), 3: ("rows", None), 4: ("groups", _GROUP),
    5: ("metadata", {1: ("key", None)}), 8: ("encryption", {}),
}  # fmt: skip
_WRITE = "write the file again; a writer that died leaves it without its end"


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pages of one column in one row group."""

    column: int  # its place among the top-level columns
    start: int
    compressed: int
    uncompressed: int
    values: int
    flat: bool  # one value a row


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are stored together."""

    first_row: int  # from 1
    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Footer:
    """What the file says of itself, as far as it could be checked."""

    names: tuple[str, ...]  # of the top-level columns
    rows: int
    groups: tuple[RowGroup, ...]
    from_pandas: bool


def read_footer(source: Source, name: str, limits: Limits) -> Footer:
    """Raises `Unreadable` for whatever does not fit."""
    data, start = _bytes(source, name, limits)
    try:
        found = Compact(data).struct(_FILE)
        return _footer(found, start, name, limits)
    except ThriftError as error:
        want = "a footer as parquet defines it"
        raise _bad("has a damaged footer", name, str(error), want) from None


def _bad(what: str, name: str, got: str, expected: str, fix: str = _WRITE) -> Unreadable:
    return Unreadable(what, where=name, got=got, expected=expected, fix=fix)


def _bytes(source: Source, name: str, limits: Limits) -> tuple[bytes, int]:
    """The footer's bytes, and the offset at which it begins."""
    tail = source.read_at(8, max(0, source.size - 8))
    if tail[4:] == b"PARE" or source.read_at(4, 0) == b"PARE":
        raise _bad(
            "is encrypted parquet", name, "the mark PARE", "parquet that can be read",
            "write the telemetry unencrypted",
        )  # fmt: skip
    if source.size < 12 or tail[4:] != MAGIC:
        got = f"{show(tail[4:])} at its end" if source.size >= 12 else f"{source.size} bytes"
        raise _bad("is cut off, or no parquet", name, got, "the mark PAR1 at both ends")
    (length,) = struct.unpack("<I", tail[:4])
    if length > min(source.size - 12, limits.max_footer):
        most = f"at most {min(source.size - 12, limits.max_footer)} bytes"
        raise _bad("has a footer that does not fit", name, f"{length} bytes", most)
    start = source.size - 8 - length
    return source.read_at(length, start), start


def _footer(found: dict[str, Any], end: int, name: str, limits: Limits) -> Footer:
    if "encryption" in found:
        raise _bad("is encrypted parquet", name, "encrypted columns", "parquet that can be read")
    tops, leaves = _columns(structs(found, "schema"))
    rows = whole(found, "rows")
    if not tops:
        raise _bad("has no columns", name, "a schema without a name", "at least one column")
    twice = [top for top, count in Counter(tops).items() if count > 1]
    if twice:
        raise _bad(
            "has two columns of one name", name, show(twice[0]), "each name once",
            "merge the metrics under different names before the table is written",
        )  # fmt: skip
    if len(tops) > limits.max_keys:
        got, most = str(len(tops)), f"at most {limits.max_keys}"
        fix = "put what varies into values, not into keys"
        raise _bad("has too many columns", name, got, most, fix)
    groups: list[RowGroup] = []
    first = 1
    for number, group in enumerate(structs(found, "groups")):
        where = f"{name}, row group {number + 1}"
        groups.append(_group(group, leaves, first, end, where, limits))
        first += groups[-1].rows
    if first - 1 != rows:
        got = f"{rows} rows in all, {first - 1} in its row groups"
        raise _bad("has a footer that contradicts itself", name, got, "equal counts")
    keys = [entry.get("key") for entry in structs(found, "metadata")]
    return Footer(tuple(tops), rows, tuple(groups), b"pandas" in keys)


def _columns(schema: list[dict[str, Any]]) -> tuple[list[str], list[tuple[int, bool]]]:
    """Names of the top-level columns; for each leaf the top it belongs to, and if it is flat."""
    tops: list[str] = []
    leaves: list[tuple[int, bool]] = []
    open_ = [whole(schema[0], "children") if schema else 0]
    for element in schema[1:]:
        while open_ and not open_[-1]:
            open_.pop()
        if not open_:
            raise ThriftError("a schema with more columns than it says")
        open_[-1] -= 1
        depth = len(open_)
        children = whole(element, "children") if "children" in element else 0
        if depth == 1:
            tops.append(_name(element))
        if children:
            open_.append(children)
        else:
            leaves.append((len(tops) - 1, depth == 1 and element.get("repetition") != 2))
    if any(open_):
        raise ThriftError("a schema with fewer columns than it says")
    return tops, leaves


def _name(element: dict[str, Any]) -> str:
    raw = element.get("name")
    try:
        return raw.decode("utf-8") if isinstance(raw, bytes) else str(whole(element, "name"))
    except UnicodeDecodeError:
        raise ThriftError(f"a column named {show(raw)}, which is not UTF-8") from None


def _group(
    group: dict[str, Any], leaves: list[tuple[int, bool]], first: int, end: int, where: str,
    limits: Limits,
) -> RowGroup:  # fmt: skip
    rows, columns = whole(group, "rows"), structs(group, "columns")
    if len(columns) != len(leaves):
        got = f"{rows} rows, {len(columns)} columns of {len(leaves)}"
        raise _bad("has a row group that does not fit its schema", where, got, "all columns once")
    chunks = []
    for column, (top, flat) in zip(columns, leaves, strict=True):
        if column.get("file"):
            got = show(column["file"])
            raise _bad("keeps a column in another file", where, got, "all columns in this file")
        meta = column.get("meta")
        if not isinstance(meta, dict):
            raise ThriftError("a column without its metadata")
        data = whole(meta, "data")
        start = min(data, whole(meta, "dictionary") or data) if "dictionary" in meta else data
        sizes = whole(meta, "compressed"), whole(meta, "uncompressed"), whole(meta, "values")
        chunk = Chunk(top, start, *sizes, flat)
        _fits(chunk, rows, end, where, limits)
        chunks.append(chunk)
    return RowGroup(first, rows, tuple(chunks))


def _fits(chunk: Chunk, rows: int, end: int, where: str, limits: Limits) -> None:
    """A chunk lies inside the file, and is no larger than may be held in memory."""
    place = f"{chunk.compressed} bytes at byte {chunk.start}"
    if chunk.start < len(MAGIC) or chunk.start + chunk.compressed > end:
        raise _bad("points outside itself", where, place, f"bytes {len(MAGIC)} to {end}")
    if max(chunk.compressed, chunk.uncompressed) > limits.max_chunk:
        raise _bad(
            "has a row group too large to be held in memory", where,
            f"{chunk.uncompressed} bytes in one column", f"at most {limits.max_chunk}",
            "write smaller row groups, such as row_group_size=250_000",
        )  # fmt: skip
    if chunk.flat and chunk.values != rows:
        got = f"{chunk.values} values in {rows} rows"
        raise _bad("has a footer that contradicts itself", where, got, "one value a row")
