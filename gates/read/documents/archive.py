"""Reads `.pt`, `.pth` and `.pkl`: the directory of a zip, and the opcodes of every pickle in it."""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from trueup.gates.documents.model import Document
from trueup.gates.findings import show
from trueup.gates.read.documents.pickles import Scanned, scan_stream
from trueup.gates.read.documents.source import Report, opened
from trueup.gates.read.limits import Fault, Limits

_LOCAL = b"PK\x03\x04"
_LOCAL_SIZE = 30
_DESCRIPTOR = 24  # the largest data descriptor
_DIRECTORY_ENTRY = 1024  # bytes allowed for one entry of the directory
_ARCHIVES = (_LOCAL, b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zXZ")
_PICKLES = (".pkl", ".pickle")


def read_pickles(path: Path, name: str, report: Report, limits: Limits) -> Document:
    """`{"archive": bool, "entries": [...], "pickles": [...], "globals": {name: {...}}}`.

    The form is told by the first bytes, as `torch.load` tells it: a zip that follows a pickle is
    a pickle with bytes behind it.
    """
    with opened(path, name, report) as (file, size):
        head = file.read(len(_LOCAL))
        file.seek(0)
        if head == _LOCAL:
            return Document(_read_zip(file, size, report, limits), "archive of pickles", size)
        data = file.read(limits.max_pickle)
        scanned = scan_stream(data, path.name, report, size=size)
        if scanned.broken and size > len(data):
            report(Fault("archive_bomb", f"more than {limits.max_pickle} bytes", key=path.name))
    plain: dict[str, Any] = {"archive": False, "entries": [], "pickles": [], "globals": {}}
    _add(plain, path.name, scanned)
    return Document(None if scanned.broken else plain, "pickle", size)


def _add(data: dict[str, Any], name: str, scanned: Scanned) -> None:
    data["pickles"].append({"name": name, "pickles": scanned.pickles, "opcodes": scanned.opcodes})
    for one, at in scanned.globals.items():
        data["globals"].setdefault(one, {"pickle": name, "byte": at})


def _read_zip(file: BinaryIO, size: int, report: Report, limits: Limits) -> dict[str, Any] | None:
    """What the archive holds; None if its directory cannot be read."""
    if _directory_size(file, size) > limits.max_members * _DIRECTORY_ENTRY:
        report(Fault("archive_bomb", "a directory of more entries than the limit"))
        return None
    try:
        archive = zipfile.ZipFile(file)
        entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, EOFError,
            OSError) as error:  # fmt: skip
        report(Fault("archive_damaged", str(error)[:120]))
        return None
    if len(entries) > limits.max_members:
        report(Fault("archive_bomb", f"{len(entries)} entries"))
        return None
    _layout(archive, entries, file, size, report)
    data: dict[str, Any] = {
        "archive": True,
        "entries": [{"name": one.filename, "size": one.file_size} for one in entries],
        "pickles": [],
        "globals": {},
    }
    budget = _Budget(limits.max_pickle)
    seen: set[str] = set()
    for entry in entries:
        if _entry(entry, seen, report, limits):
            _scan(archive, entry, data, budget, report)
        seen.add(entry.filename)
    return data


@dataclass(slots=True)
class _Budget:
    """How many bytes of pickles may still be read."""

    left: int
    told: list[str] = field(default_factory=list)


def _directory_size(file: BinaryIO, size: int) -> int:
    """The size of the directory as the end of the file says; the library would read it whole."""
    tail = min(size, (1 << 16) + 22)
    file.seek(size - tail)
    end = file.read(tail)
    file.seek(0)
    at = end.rfind(b"PK\x05\x06")
    if at < 0 or len(end) < at + 22:
        return 0
    length = int.from_bytes(end[at + 12 : at + 16], "little")
    big = end.rfind(b"PK\x06\x06", 0, at)
    if length == 0xFFFFFFFF and big >= 0:
        length = int.from_bytes(end[big + 40 : big + 48], "little")
    return length


def _layout(
    archive: zipfile.ZipFile,
    entries: list[zipfile.ZipInfo],
    file: BinaryIO,
    size: int,
    report: Report,
) -> None:
    """The entries lie one after the other from the first byte, and nothing lies between them."""
    at = 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        start = entry.header_offset
        if not 0 <= start < size:
            got = f"an entry at {start} of {size} bytes"
            report(Fault("archive_damaged", got, key=entry.filename))
            return
        if start < at:
            report(Fault("archive_damaged", "overlaps the entry before it", byte=start,
                         key=entry.filename))  # fmt: skip
        elif start > at + (_DESCRIPTOR if at else 0):
            got = f"{start - at} bytes that belong to no entry"
            report(Fault("archive_damaged", got, byte=at, key=entry.filename))
        file.seek(start)
        local = file.read(_LOCAL_SIZE)
        if len(local) < _LOCAL_SIZE or local[:4] != _LOCAL:
            report(Fault("archive_damaged", "no entry where the directory says", byte=start,
                         key=entry.filename))  # fmt: skip
            return
        names, extra = struct.unpack("<HH", local[26:30])
        at = start + _LOCAL_SIZE + names + extra + entry.compress_size
    if archive.start_dir > at + _DESCRIPTOR:
        got = f"{archive.start_dir - at} bytes between the last entry and the directory"
        report(Fault("archive_damaged", got, byte=at))
    if archive.comment:
        got = f"a comment of {len(archive.comment)} bytes after the directory"
        report(Fault("archive_damaged", got, byte=size - len(archive.comment)))


def _entry(entry: zipfile.ZipInfo, seen: set[str], report: Report, limits: Limits) -> bool:
    """Report what is wrong with an entry; whether its bytes may be read."""
    name = entry.filename
    parts = name.replace("\\", "/").split("/")
    if name in seen:
        report(Fault("archive_name", "stands twice", key=name))
    if ".." in parts or name.startswith(("/", "\\")) or "\\" in name or ":" in parts[0]:
        report(Fault("archive_name", f"leads out of the archive: {show(name)}", key=name))
    if entry.flag_bits & 1:
        report(Fault("archive_encrypted", "encrypted", key=name))
        return False
    if entry.compress_type != zipfile.ZIP_STORED:
        if entry.file_size > limits.max_ratio * max(entry.compress_size, 1):
            got = f"{entry.file_size} bytes from {entry.compress_size}"
            report(Fault("archive_bomb", got, key=name))
            return False
        got = f"{entry.file_size} bytes from {entry.compress_size}"
        report(Fault("archive_compressed", got, key=name))
    return True


def _scan(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    data: dict[str, Any],
    budget: _Budget,
    report: Report,
) -> None:
    """Look into an entry if it is a pickle, or an archive inside the archive."""
    name = entry.filename
    try:
        with archive.open(entry) as file:
            head = file.read(6)
            if head.startswith(_ARCHIVES):
                report(Fault("archive_nested", f"begins with {show(head)}", key=name))
                return
            if not _is_pickle(name, head):
                return
            if entry.file_size > budget.left:
                got = f"{entry.file_size} bytes of pickle, {budget.left} left of the limit"
                report(Fault("archive_bomb", got, key=name))
                return
            raw = head + file.read(budget.left + 1)
            # Of a header that lies about its size, only so many bytes are taken.
            if len(raw) > budget.left:
                report(Fault("archive_bomb", "more bytes than its header says", key=name))
                return
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError,
            RuntimeError, OSError) as error:  # fmt: skip
        report(Fault("archive_damaged", str(error)[:120], key=name))
        return
    budget.left -= len(raw)
    _add(data, name, scan_stream(raw, name, report))


def _is_pickle(name: str, head: bytes) -> bool:
    """By its name; or by its first bytes, where torch puts no raw tensors."""
    if name.endswith(_PICKLES):
        return True
    folder = name.rsplit("/", 1)[0]
    begins = head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5")
    return begins and not folder.endswith("/data")
