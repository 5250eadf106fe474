"""Reads, from an ELF object's symbol table, where a kernel library keeps its variables."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import NamedTuple, TypedDict

ANCHOR = "cuhost_launch_0"
_SYMTAB = 2
_OBJECT = 1
_LOCAL_STATIC = re.compile(r"_ZZ(?!N?K?St|N6cuhost)")
_FILE_SCOPE = re.compile(r"_ZL\d+([A-Za-z_]\w*)")


class Symbols(TypedDict):
    """Addresses relative to the library's start, and sizes."""

    anchor: int
    shared: list[tuple[int, int]]
    state: list[tuple[int, int]]


class _Symbol(NamedTuple):
    name: str
    kind: int
    section: int
    value: int
    size: int
    writable: bool


def data_symbols(kernel: Path, library: Path, shared_names: set[str]) -> Symbols:
    """Find the static `__shared__` objects, and every variable that the kernels can change.

    Static shared memory is a function's static variable, or one at file scope under a name that
    the source declares with `__shared__`.
    """
    own = {symbol.name for symbol in _read(kernel) if symbol.kind == _OBJECT and symbol.writable}
    found = Symbols(anchor=0, shared=[], state=[])
    for symbol in _read(library):
        if symbol.name == ANCHOR:
            found["anchor"] = symbol.value
        if symbol.kind != _OBJECT or not symbol.writable or not symbol.size:
            continue
        if symbol.name not in own or symbol.name.startswith((".L", "_ZGV")):
            continue
        if _is_shared(symbol.name, shared_names):
            found["shared"].append((symbol.value, symbol.size))
        else:
            found["state"].append((symbol.value, symbol.size))
    return found


def _is_shared(name: str, shared_names: set[str]) -> bool:
    if _LOCAL_STATIC.match(name):
        return True
    at_file_scope = _FILE_SCOPE.fullmatch(name)
    return at_file_scope is not None and at_file_scope[1] in shared_names


def _read(path: Path) -> list[_Symbol]:
    data = path.read_bytes()
    order = "<" if data[5] == 1 else ">"
    (table,) = struct.unpack_from(order + "Q", data, 0x28)
    entry_size, count = struct.unpack_from(order + "HH", data, 0x3A)
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    sections = [
        struct.unpack_from(order + "IIQQQQIIQQ", data, table + i * entry_size) for i in range(count)
    ]
    symbols = []
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        strings = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], 24):
            name, info, _, index, value, size = struct.unpack_from(order + "IBBHQQ", data, at)
            end = data.index(b"\0", strings + name)
            text = data[strings + name : end].decode("utf-8", "replace")
            writable = index < count and bool(sections[index][2] & 1)
            symbols.append(_Symbol(text, info & 15, index, value, size, writable))
    return symbols
