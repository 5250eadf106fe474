"""Packs a bundle into one file: the same bundle gives the same bytes."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from trueup.gates.bundle.errors import BundleError, reading, writing
from trueup.gates.bundle.manifest import NAME, Manifest, read_manifest
from trueup.gates.read.documents.read import load_document

LEVEL = 10  # of zstandard; part of what decides the bytes


def write_archive(bundle: Path, archive: Path) -> str:
    """Write `archive` (.tar or .tar.zst) and give its SHA-256.

    Entries stand in the order of their paths, with no owner and no time. Each file is held against
    the manifest on its way.
    """
    if not archive.name.endswith((".tar", ".tar.zst")):
        raise BundleError("is no name of an archive", where=str(archive), expected=".tar, .tar.zst")
    if Path(os.path.realpath(archive)).is_relative_to(os.path.realpath(bundle)):
        raise BundleError(
            "lies in the bundle that it packs", where=str(archive), fix="give a path beside it"
        )
    document, _ = load_document(bundle / NAME, str(bundle / NAME), "manifest")
    manifest = read_manifest(document.data)
    if manifest is None:
        raise BundleError("is no manifest of a bundle", where=str(bundle / NAME))
    partial = archive.parent / f".{archive.name}.partial"
    try:
        with writing(archive):
            archive.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as raw:
                with _stream(raw, archive) as out:
                    _pack(bundle, manifest, out)
                raw.flush()
                os.fsync(raw.fileno())
            digest = _digest(partial)
            if os.path.lexists(archive) and not (archive.is_file() and _digest(archive) == digest):
                raise BundleError(
                    "is there already, and is not this bundle", where=str(archive),
                    fix="give another path, or remove it",
                )  # fmt: skip
            os.rename(partial, archive)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return digest


@contextmanager
def _stream(raw: IO[bytes], archive: Path) -> Iterator[IO[bytes]]:
    """The file itself, or one that compresses on the way to it."""
    if archive.name.endswith(".tar"):
        yield raw
        return
    import zstandard

    packer = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    with packer.stream_writer(raw, closefd=False) as out:
        yield out


def _pack(bundle: Path, manifest: Manifest, out: IO[bytes]) -> None:
    listed = {entry.path: entry.sha256 for entry in manifest.entries}
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted([*listed, NAME]):
            with reading(str(bundle / path)), open(bundle / path, "rb") as file:
                entry = tarfile.TarInfo(path)
                entry.size, entry.mode = os.fstat(file.fileno()).st_size, 0o644
                hashed = _Hashed(file)
                tar.addfile(entry, hashed)
            if path in listed and hashed.hexdigest() != listed[path]:
                raise BundleError(
                    "is not what the manifest lists", where=str(bundle / path),
                    fix="make the bundle anew",
                )  # fmt: skip


class _Hashed:
    """A file that is hashed as it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._hash = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Some of the file."""
        block = self._file.read(size)
        self._hash.update(block)
        return block

    def hexdigest(self) -> str:
        """Of all that was read."""
        return self._hash.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
