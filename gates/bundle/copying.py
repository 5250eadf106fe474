"""Copies files so that none is ever half there, and none that changes meanwhile is taken."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trueup.gates.bundle.errors import BundleError, reading, writing
from trueup.gates.bundle.manifest import NAME
from trueup.gates.bundle.plan import Item, Plan

_BLOCK = 1 << 20
_WORK = ".copying"  # hidden names are never taken from a run directory
Signature = tuple[int, int, int, int]  # device, inode, size, time of change


@dataclass(frozen=True, slots=True)
class Copied:
    """One file of the bundle. `kept`: it was there already."""

    sha256: str
    size: int
    kept: bool
    source: Signature


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no two runs write to it."""
    import fcntl

    with writing(folder):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            same = os.path.samestat(os.fstat(handle), os.stat(folder))
        except OSError:
            same = False
        if not same:
            raise BundleError(
                "another run is making this bundle", where=str(folder), fix="wait for it to end"
            )
        yield
    finally:
        os.close(handle)


class Copier:
    """Brings the files of a plan into a folder."""

    def __init__(
        self, plan: Plan, partial: Path, progress: Callable[[int, int], None] | None
    ) -> None:
        """`partial` is the folder; what is already there is used where it is right."""
        self.plan, self.partial = plan, partial
        self._progress, self._done = progress, 0
        self._total = sum(self._size(item) for item in plan.items)

    @staticmethod
    def _size(item: Item) -> int:
        with reading(str(item.source)):
            return item.source.stat().st_size

    def missing_bytes(self) -> int:
        """How much is still to be written, if all that is there is right."""
        return sum(
            self._size(item) for item in self.plan.items if not (self.partial / item.path).is_file()
        )

    def copy(self) -> dict[str, Copied]:
        """Bring every file, then make sure that no source has changed since."""
        copied = {item.path: self._one(item) for item in self.plan.items}
        for item in self.plan.items:
            with reading(str(item.source)):
                now = _signature(os.stat(item.source, follow_symlinks=False))
            if now != copied[item.path].source:
                raise _changed(item)
        return copied

    def compare(self) -> dict[str, Copied] | None:
        """The digests of the sources, if the folder has files of just these; else None."""
        found: dict[str, Copied] = {}
        for item in self.plan.items:
            with self._open(item) as (file, signature):
                digest = self._digest(file)
            if self._there(item) != digest:
                return None
            found[item.path] = Copied(digest, signature[2], True, signature)
        return found

    def _one(self, item: Item) -> Copied:
        """Copy one file under a working name and rename it, or keep what is there."""
        there = self._there(item)
        with self._open(item) as (file, signature):
            if there is not None:
                digest = self._digest(file)
                if digest == there:
                    return Copied(digest, signature[2], True, signature)
                file.seek(0)
                self._done -= signature[2]
            work = self.partial / _WORK
            with writing(work):
                target = os.open(work, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
            with open(target, "wb", buffering=0) as out:
                digest = self._digest(file, out)
            if _signature(os.fstat(file.fileno())) != signature:
                raise _changed(item)
        times = os.stat(item.source, follow_symlinks=False).st_mtime_ns
        self._install(item.path, times)
        return Copied(digest, signature[2], False, signature)

    def _there(self, item: Item) -> str | None:
        """The digest of a plain file that is there already."""
        path = self.partial / item.path
        if any(folder.is_symlink() for folder in (path, *path.parents)[: item.path.count("/") + 1]):
            return None
        if not path.is_file():
            return None
        with reading(str(path)), path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextmanager
    def _open(self, item: Item) -> Iterator[tuple[BinaryIO, Signature]]:
        """A source as a regular file, never through a link that took its place."""
        name = str(item.source)
        with reading(name):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(item.source, flags)
        with open(handle, "rb", buffering=0) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise BundleError("is no regular file", where=name)
            yield file, _signature(state)

    def _digest(self, file: BinaryIO, out: BinaryIO | None = None) -> str:
        """The SHA-256 of what is left of a file; copied to `out` on the way."""
        hashed = hashlib.sha256()
        while True:
            with reading(str(file.name)):
                block = file.read(_BLOCK)
            if not block:
                break
            hashed.update(block)
            if out is not None:
                with writing(self.partial):
                    view = memoryview(block)
                    while view:
                        view = view[out.write(view) :]
            self._done += len(block)
            if self._progress is not None:
                self._progress(self._done, max(self._total, self._done))
        if out is not None:
            with writing(self.partial):
                os.fsync(out.fileno())
        return hashed.hexdigest()

    def _install(self, path: str, times: int | None) -> None:
        """Give the working file its name; it has the time of its source."""
        target = self.partial / path
        with writing(target):
            self._make_room(path)
            work = self.partial / _WORK
            os.chmod(work, 0o644)
            if times is not None:
                os.utime(work, ns=(times, times))
            os.rename(work, target)

    def _make_room(self, path: str) -> None:
        """Folders for a file; a link or a file that an older run left in their place goes."""
        at = self.partial
        for part in path.split("/")[:-1]:
            at = at / part
            if at.is_symlink() or at.is_file():
                at.unlink()
            at.mkdir(exist_ok=True)
        if (self.partial / path).is_dir() and not (self.partial / path).is_symlink():
            _remove_tree(self.partial / path)

    def put(self, path: str, data: bytes) -> None:
        """Write a small file of our own."""
        work = self.partial / _WORK
        with writing(work), open(work, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        self._install(path, None)

    def others(self) -> list[Path]:
        """What lies in the folder and is not of the plan."""
        wanted = {item.path for item in self.plan.items} | {NAME}
        found = []
        for folder, folders, names in os.walk(self.partial, followlinks=False):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            for name in [*names, *links]:
                path = Path(folder, name)
                if path.relative_to(self.partial).as_posix() not in wanted or path.is_symlink():
                    found.append(path)
        return found

    def prune(self) -> None:
        """Remove what an older run with other files left, and folders that are empty then."""
        with writing(self.partial):
            for path in self.others():
                path.unlink()
            for folder, _, _ in sorted(os.walk(self.partial), reverse=True):
                if folder != str(self.partial) and not os.listdir(folder):
                    os.rmdir(folder)

    def settle(self) -> None:
        """Have the system write the folders down before the bundle gets its name."""
        for folder, _, _ in os.walk(self.partial):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _remove_tree(folder: Path) -> None:
    for inner, folders, names in os.walk(folder, topdown=False):
        for name in names:
            os.unlink(os.path.join(inner, name))
        for name in folders:
            path = os.path.join(inner, name)
            os.unlink(path) if os.path.islink(path) else os.rmdir(path)
    os.rmdir(folder)


def _signature(state: os.stat_result) -> Signature:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _changed(item: Item) -> BundleError:
    return BundleError(
        "changed while it was copied", where=str(item.source),
        fix="bundle the run once it has ended; then run the same command again",
    )  # fmt: skip
