"""Lists a folder at a URL, within limits of depth and count, without following a link."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trueup.gates.errors import Unreadable
from trueup.gates.read.limits import Fault
from trueup.gates.read.sources.names import below, flaw_of

MAX_DEPTH = 16
MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: where it is on the remote side, and below the folder that was named."""

    remote: str
    relative: str
    size: int | None  # None where the other side does not say


class Listing:
    """Walks a folder. `report` takes a relative name and what is wrong with it."""

    def __init__(
        self,
        fs: Any,
        root: str,
        name: str,
        wanted: Callable[[str], bool],
        report: Callable[[str, Fault], None],
    ) -> None:
        """`name` is how reports call the folder; `wanted` says which relative names matter."""
        self._fs, self._root, self._name = fs, root, name
        self._wanted, self._report = wanted, report
        self._count = 0

    def files(self) -> Iterator[Entry]:
        """The wanted files that may be copied, in order of their names."""
        yield from self._folder(self._root, 0)

    def _folder(self, folder: str, depth: int) -> Iterator[Entry]:
        here = folder.rstrip("/")
        entries = [(str(one["name"]).rstrip("/"), one) for one in self._fs.ls(folder, detail=True)]
        for remote, entry in sorted(entries, key=lambda one: one[0]):
            if remote == here:  # the marker of a folder in an object store
                continue
            self._count += 1
            if self._count > MAX_ENTRIES:
                raise Unreadable(
                    "holds too many files", where=self._name, got=f"more than {MAX_ENTRIES}",
                    fix="name the telemetry file itself",
                )  # fmt: skip
            yield from self._entry(remote, entry, depth)

    def _entry(self, remote: str, entry: dict[str, Any], depth: int) -> Iterator[Entry]:
        relative = below(remote, self._root)
        flaw = "does not lie in the folder" if relative is None else flaw_of(relative)
        if relative is None or flaw is not None:
            self._report("", Fault("remote_name", f"{remote!r} {flaw}"[:300]))
        elif entry.get("islink") or entry.get("type") not in ("file", "directory"):
            if self._wanted(relative):
                kind = "a link" if entry.get("islink") else f"the type {entry.get('type')!r}"
                self._report(relative, Fault("remote_link", kind))
        elif entry["type"] == "file":
            if self._wanted(relative):
                yield Entry(str(entry["name"]), relative, _size(entry))
        elif not relative.rsplit("/", 1)[-1].startswith("."):
            if depth + 1 >= MAX_DEPTH:
                self._report(relative, Fault("not_searched", f"{depth + 1} levels down"))
            else:
                yield from self._folder(remote, depth + 1)


def _size(entry: dict[str, Any]) -> int | None:
    size = entry.get("size")
    return size if isinstance(size, int) and size >= 0 else None
