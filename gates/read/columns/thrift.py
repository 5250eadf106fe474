"""Reads structures of the Thrift compact protocol, as the footers and page headers of parquet are.

Only what is asked for is built; the rest is stepped over. Nothing is trusted: every length is
held against the bytes that are there, and depth is limited.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

_MAX_DEPTH = 32
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTS = (4, 5, 6)

# Field number -> its name and, for a structure or a list of them, the fields wanted of it.
Fields = Mapping[int, tuple[str, "Fields | None"]]


class ThriftError(Exception):
    """The bytes are no such structure."""


def whole(found: Mapping[str, Any], name: str) -> int:
    """A field that must be there, and be a number that is not negative."""
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ThriftError(f"{value!r} as {name}"[:80])
    return value


def structs(found: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A field that is a list of structures; empty if it is not there."""
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ThriftError(f"something else than structures as {name}")
    return value


class Compact:
    """A cursor over the bytes of one structure."""

    def __init__(self, data: bytes) -> None:
        """Start at the first byte."""
        self._data, self.at = data, 0

    def struct(self, fields: Fields, depth: int = 0) -> dict[str, Any]:
        """The wanted fields of the structure that begins here."""
        if depth > _MAX_DEPTH:
            raise ThriftError(f"more than {_MAX_DEPTH} levels")
        out: dict[str, Any] = {}
        number = 0
        while True:
            head = self._byte()
            kind = head & 15
            if kind == 0:
                return out
            number = number + (head >> 4) if head >> 4 else self._int()
            if number in fields:
                name, inner = fields[number]
                out[name] = self._value(kind, inner, depth + 1)
            else:
                self._skip(kind, depth + 1)

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise ThriftError(f"the structure is cut off at its byte {self.at}")
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ThriftError(f"a number of more than 64 bits at byte {self.at}")

    def _int(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _bytes(self) -> bytes:
        length = self._varint()
        if length > len(self._data) - self.at:
            raise ThriftError(f"{length} bytes wanted at byte {self.at}, {len(self._data)} in all")
        self.at += length
        return self._data[self.at - length : self.at]

    def _value(self, kind: int, inner: Fields | None, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ThriftError(f"more than {_MAX_DEPTH} levels")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in _INTS:
            return self._int()
        if kind == _BINARY:
            return self._bytes()
        if kind == _STRUCT:
            return self.struct(inner or {}, depth)
        if kind in (_LIST, _SET):
            of, size = self._list_head()
            return [self._item(of, inner, depth + 1) for _ in range(size)]
        self._skip(kind, depth)
        return None

    def _item(self, kind: int, inner: Fields | None, depth: int) -> Any:
        """An item of a list, in which a boolean takes a byte."""
        return self._byte() == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, inner, depth)

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        size = head >> 4
        if size == 15:
            size = self._varint()
        if size > len(self._data) - self.at:  # an item takes at least a byte
            raise ThriftError(f"a list of {size} items at byte {self.at}")
        return head & 15, size

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise ThriftError(f"more than {_MAX_DEPTH} levels")
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self._byte()
        elif kind in _INTS:
            self._varint()
        elif kind == _DOUBLE:
            self._skip_bytes(struct.calcsize("<d"))
        elif kind == _BINARY:
            self._bytes()
        elif kind in (_LIST, _SET):
            of, size = self._list_head()
            self._skip_items((of,), size, depth)
        elif kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            self._skip_items((kinds >> 4, kinds & 15), size, depth)
        elif kind == _STRUCT:
            self.struct({}, depth)
        else:
            raise ThriftError(f"a field of the unknown type {kind} at byte {self.at}")

    def _skip_items(self, kinds: tuple[int, ...], count: int, depth: int) -> None:
        if count > len(self._data) - self.at:
            raise ThriftError(f"a collection of {count} items at byte {self.at}")
        for _ in range(count):
            for kind in kinds:
                if kind in (_TRUE, _FALSE):
                    self._byte()
                else:
                    self._skip(kind, depth + 1)

    def _skip_bytes(self, count: int) -> None:
        for _ in range(count):
            self._byte()
