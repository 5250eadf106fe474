"""Fetches a run directory or a file from a URL into a private folder that is removed afterwards.

Any protocol that fsspec knows; only files that are wanted are copied, under the names they have
below the URL, within limits of count, depth and size.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueup.gates.errors import GateError, Unreadable
from trueup.gates.read.limits import Fault, Limits
from trueup.gates.read.sources.listing import Entry, Listing
from trueup.gates.read.sources.names import flaw_of, shown

_BLOCK = 1 << 20
# Protocols that wrap another place: an archive, a cache, a list of references.
_WRAPPERS = frozenset(
    {"asyncwrapper", "async_wrapper", "blockcache", "cached", "data", "dir", "filecache",
     "generic", "libarchive", "pyscript", "reference", "simplecache", "tar", "zip"}
)  # fmt: skip
Report = Callable[[str, Fault], None]  # the name of an artifact, and what is wrong with it


@dataclass(frozen=True, slots=True)
class Fetched:
    """The local copy, and how reports call it."""

    path: Path
    name: str


@contextmanager
def fetched(
    url: str, wanted: Callable[[str], bool], limits: Limits, report: Report
) -> Iterator[Fetched]:
    """A copy of what stands at the URL. Raises `Unreadable` if it cannot be had.

    `wanted` says of a relative name whether a file in a folder is to be copied.
    """
    name = shown(url)
    with tempfile.TemporaryDirectory(prefix="trueup-") as folder:
        path = _Fetch(url, name, Path(folder), limits, report).copy(wanted)
        yield Fetched(path, name.split("?", 1)[0] if path.is_dir() else name)


class _Fetch:
    def __init__(self, url: str, name: str, folder: Path, limits: Limits, report: Report) -> None:
        self._name, self._folder, self._limits, self._report = name, folder, limits, report
        self._url, self._done = url, 0
        self._fs, self._root = _filesystem(url, name)

    def copy(self, wanted: Callable[[str], bool]) -> Path:
        """The folder, or the one file, as a local path."""
        try:
            return self._copied(wanted)
        except GateError:
            raise
        except MemoryError:
            raise
        except Exception as error:  # each protocol raises what its library raises
            raise _refused(error, self._name) from None

    def _copied(self, wanted: Callable[[str], bool]) -> Path:
        if not self._is_folder():
            name = self._root.rstrip("/").rsplit("/", 1)[-1].split("?", 1)[0]
            if flaw_of(name) is not None:
                raise Unreadable("names no file", where=self._name, got=repr(name))
            target = self._folder / name
            self._one(Entry(self._root, "", None), target)
            return target
        root = self._folder / "run"
        root.mkdir()
        listing = Listing(self._fs, self._root, self._name, wanted, self._reported)
        entries = list(listing.files())
        self._within(sum(entry.size or 0 for entry in entries))
        for entry in entries:
            target = root / entry.relative
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._one(entry, target)
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                got = "a file and a folder of one name"
                self._reported(entry.relative, Fault("remote_name", got))
        return root

    def _is_folder(self) -> bool:
        """Over HTTP a page with links is a folder only where the URL says so."""
        if self._url.split("://", 1)[0].lower() in ("http", "https"):
            return self._url.split("?", 1)[0].endswith("/")
        return str(self._fs.info(self._root).get("type")) == "directory"

    def _one(self, entry: Entry, target: Path) -> None:
        """Copy one file, block by block."""
        size = 0
        with self._fs.open(entry.remote, "rb") as source, target.open("wb") as copy:
            while block := source.read(_BLOCK):
                size += len(block)
                self._within(self._done + size)
                copy.write(block)
        self._done += size
        if entry.size is not None and size != entry.size:
            got = f"{entry.size} bytes listed, {size} copied"
            self._reported(entry.relative, Fault("changed", got))

    def _within(self, size: int) -> None:
        most = min(self._limits.max_fetched, self._done + shutil.disk_usage(self._folder).free)
        if size > most:
            raise Unreadable(
                "is more than may be fetched", where=self._name, got=f"{size} bytes or more",
                expected=f"at most {most}", fix="judge it where it lies, or name one file of it",
            )  # fmt: skip

    def _reported(self, relative: str, fault: Fault) -> None:
        folder = self._name.split("?", 1)[0].rstrip("/")
        self._report(f"{folder}/{relative}" if relative else self._name, fault)


def _filesystem(url: str, name: str) -> tuple[Any, str]:
    """The file system of a URL, and its path there."""
    import fsspec
    from fsspec.registry import known_implementations

    protocol = url.split("://", 1)[0].lower()
    if "::" in url or protocol in _WRAPPERS:
        raise Unreadable(
            "is no place by itself", where=name,
            got="a chain of URLs" if "::" in url else f"{protocol}://",
            expected="one URL of a file or a folder", fix="fetch or unpack it first",
        )  # fmt: skip
    try:
        fs, root = fsspec.core.url_to_fs(f"{protocol}{url[len(protocol) :]}")
        return fs, str(root)
    except ImportError as error:
        known = known_implementations.get(protocol, {})
        package = str(known.get("class", "fsspec")).split(".")[0]
        said = str(known.get("err") or f"install the fsspec package for {protocol}")
        raise Unreadable(
            f"needs a package for {protocol}://", where=name,
            got=str(error.__cause__ or error).split("\n")[0],
            expected="the package that speaks this protocol",
            fix=said if package == "fsspec" else f"pip install {package}",
        ) from None  # fmt: skip
    except Exception as error:
        if protocol in known_implementations:
            raise _refused(error, name) from None
        some = ", ".join(f"{one}://" for one in ("s3", "gs", "az", "https", "sftp", "file"))
        raise Unreadable(
            "has an unknown protocol", where=name, got=f"{protocol}://",
            expected=f"one that fsspec knows, such as {some}", fix="check the URL",
        ) from None  # fmt: skip


def _refused(error: Exception, name: str) -> Unreadable:
    """What a library raised, in words."""
    if isinstance(error, FileNotFoundError):
        return Unreadable(
            "does not exist", where=name, expected="a run directory or a telemetry file",
            fix="check the URL",
        )  # fmt: skip
    if isinstance(error, PermissionError):
        return Unreadable(
            "may not be read", where=name, got=_words(error), expected="permission to read it",
            fix="check the credentials of this environment",
        )  # fmt: skip
    return Unreadable(
        "cannot be fetched", where=name, got=_words(error), expected="a reachable URL",
        fix="try it with the protocol's own tool; check network, address and credentials",
    )  # fmt: skip


def _words(error: Exception) -> str:
    """One line; without the address, which may hold a secret."""
    text = str(getattr(error, "strerror", None) or error).split("\n")[0]
    words = " ".join(word for word in text.split() if "://" not in word)
    return f"{type(error).__name__}: {words}"[:200].rstrip(": ")
