"""Walks the page headers of a column in parquet, before an engine unpacks the pages.

An engine allocates what a page header says. Here each page must lie in its chunk, unpack to no
more than the footer says, and keep its checksum where the writer gave one.
"""

from __future__ import annotations

import zlib
from typing import Any

from trueup.gates.read.columns.footer import Chunk
from trueup.gates.read.columns.thrift import Compact, Fields, ThriftError, whole
from trueup.gates.read.sources.source import Source

_HEAD, _MOST = 1 << 12, 1 << 20  # a header is tens of bytes, unless it holds statistics of texts
_BLOCK = 1 << 20
_VALUES: Fields = {1: ("values", None)}
_PAGE: Fields = {
    1: ("type", None), 2: ("uncompressed", None), 3: ("compressed", None), 4: ("crc", None),
    5: ("data", _VALUES), 7: ("dictionary", _VALUES), 8: ("data", _VALUES),
}  # fmt: skip


def flaw_of_pages(source: Source, chunk: Chunk) -> str | None:
    """What is wrong with the pages of a chunk; None if they can be unpacked safely."""
    at, end = chunk.start, chunk.start + chunk.compressed
    values = unpacked = 0
    while at < end and values < chunk.values:
        try:
            page, length = _header(source, at, end)
            data = page.get("data")
            count = whole(data, "values") if isinstance(data, dict) else 0
            size, packed = whole(page, "uncompressed"), whole(page, "compressed")
        except ThriftError as error:
            return f"a page header at byte {at} that cannot be read: {error}"
        at += length
        values, unpacked = values + count, unpacked + size
        if at + packed > end:
            return f"a page at byte {at} of {packed} bytes, in a column that ends at byte {end}"
        if unpacked > chunk.uncompressed:
            return f"pages of {unpacked} bytes up to byte {at}, {chunk.uncompressed} in the footer"
        crc = page.get("crc")
        if isinstance(crc, int) and _crc(source, at, packed) != crc & 0xFFFFFFFF:
            return f"a checksum that does not fit the page at byte {at}"
        at += packed
    if values != chunk.values:
        return f"pages with {values} values, {chunk.values} in the footer"
    return None


def _header(source: Source, at: int, end: int) -> tuple[dict[str, Any], int]:
    """The header that begins here, and its length."""
    for size in (_HEAD, _MOST):
        cursor = Compact(source.read_at(min(size, end - at), at))
        try:
            return cursor.struct(_PAGE), cursor.at
        except ThriftError:
            if size == _MOST or end - at <= size:
                raise
    raise ThriftError("no header")


def _crc(source: Source, at: int, size: int) -> int:
    value, end = 0, at + size
    while at < end:
        block = source.read_at(min(_BLOCK, end - at), at)
        if not block:
            break
        value, at = zlib.crc32(block, value), at + len(block)
    return value
