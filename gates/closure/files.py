"""The files of a closing: found without leaving the root, digested once, watched for change."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trueup.gates.closure.docket import Docket, Point
from trueup.gates.closure.errors import ClosureError
from trueup.gates.documents.run import Digest, digest
from trueup.gates.findings import Where, show

Base = Literal["ticket", "run"]


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder inside the root."""

    path: Path  # real
    shown: str  # as reports call it
    name: str  # relative to the root: what a statement calls it


@dataclass(slots=True)
class _Seen:
    place: Place
    digest: Digest
    stamp: tuple[int, int, int]


@dataclass(slots=True)
class Files:
    """Where paths of a ticket lead. `folder`: of the ticket; `run`: its run directory."""

    root: Path
    folder: Path
    shown: str  # the ticket's folder as the caller knows it
    docket: Docket
    run: Place | None = None
    _seen: dict[Path, _Seen] = field(default_factory=dict)
    _peeked: dict[Path, str] = field(default_factory=dict)
    _stamps: dict[Path, tuple[int, int, int]] = field(default_factory=dict)

    def locate(
        self, base: Base | Place, relative: str, point: Point, where: Where, *, folder: bool = False
    ) -> Place | None:
        """The file a ticket names, or None after saying why there is none."""
        found = self.find(base, relative, folder=folder)
        if isinstance(found, Place):
            return found
        kind, got = found
        if kind == "path_leads_out":
            point.flaw(kind, where, got)
        else:
            point.unknown(kind, where, got)
        return None

    def find(
        self, base: Base | Place, relative: str, *, folder: bool = False
    ) -> Place | tuple[str, str]:
        """The file, or the kind of finding and what was got."""
        start = self._start(base)
        if start is None:
            return "file_missing", f"{show(relative)}: there is no run directory"
        path, shown = start
        if "\0" in relative or "\\" in relative or relative.startswith("~"):
            return "path_leads_out", f"{show(relative)} is no plain relative path"
        if os.path.isabs(relative):
            return "path_leads_out", f"{show(relative)} is absolute"
        try:
            target = Path(os.path.realpath(path / relative))
        except (OSError, ValueError) as error:
            return "file_missing", f"{show(relative)}: {error}"
        bound = self.root if base == "ticket" else path
        if not target.is_relative_to(bound):
            through = " through a link" if _stays(path / relative, bound) else ""
            return "path_leads_out", f"{show(relative)} leads out of {self._name(bound)}{through}"
        there = os.path.isdir(target) if folder else os.path.isfile(target)
        if not there:
            wanted = "folder" if folder else "regular file"
            said = f"is no {wanted}" if os.path.exists(target) else "is not there"
            return "file_missing", f"{show(relative)} {said}"
        name = target.relative_to(self.root).as_posix()
        return Place(target, os.path.normpath(os.path.join(shown, relative)), name)

    def _start(self, base: Base | Place) -> tuple[Path, str] | None:
        if base == "ticket":
            return self.folder, self.shown
        place = self.run if base == "run" else base
        return None if place is None or isinstance(place, str) else (place.path, place.shown)

    def _name(self, bound: Path) -> str:
        return "the root" if bound == self.root else f"{bound.name or bound}"

    def digest(self, place: Place, point: Point, where: Where) -> str | None:
        """Its SHA-256, computed once; the file becomes a subject of the statement."""
        seen = self._seen.get(place.path)
        if seen is None:
            try:
                before = self._stamps.get(place.path) or _stamp(place.path)
                seen = _Seen(place, digest(place.path), before)
            except OSError as error:
                point.unknown("file_missing", where, f"{place.shown}: {error.strerror or error}")
                return None
            self._seen[place.path] = seen
        if not seen.digest.steady:
            point.unknown("file_changed", where, f"{place.shown} changed while it was read")
            return None
        return seen.digest.sha256

    def peek(self, place: Place) -> str | None:
        """A file's SHA-256 without making it a subject: it was only looked for."""
        seen = self._seen.get(place.path)
        if seen is not None:
            return seen.digest.sha256
        if place.path not in self._peeked:
            try:
                self._peeked[place.path] = digest(place.path).sha256
            except OSError:
                return None
        return self._peeked[place.path]

    def note(self, place: Place, sha256: str) -> None:
        """A file that was read whole, with the digest of the bytes that were judged."""
        if place.path not in self._seen:
            status = place.path.stat()
            known = Digest(sha256, status.st_size, True)
            self._seen[place.path] = _Seen(place, known, _stamp(place.path))

    def watch(self, path: Path) -> None:
        """Remember size and times of a file that is about to be judged, and digested later."""
        with suppress(OSError):
            self._stamps.setdefault(path, _stamp(path))

    def matches(self, place: Place, wanted: str, point: Point, where: Where) -> bool:
        """Whether the file has the digest a document claims; says so if it has not."""
        found = self.digest(place, point, where)
        if found is None:
            return False
        if found != wanted:
            point.flaw("digest_differs", where, f"{place.shown} has sha256 {found}, not {wanted}")
        return found == wanted

    def unsteady(self) -> list[Place]:
        """The files whose size or times are no longer what they were when they were read."""
        changed = []
        for seen in self._seen.values():
            try:
                same = _stamp(seen.place.path) == seen.stamp
            except OSError:
                same = False
            if not same:
                changed.append(seen.place)
        return changed

    def subjects(self) -> dict[str, str]:
        """Name and SHA-256 of everything that was read."""
        return {seen.place.name: seen.digest.sha256 for seen in self._seen.values()}

    def paths(self) -> tuple[str, ...]:
        """Real paths of everything that was read."""
        return tuple(str(path) for path in self._seen)

    def place_of(self, path: Path) -> Place | None:
        """A real path inside the root as a place."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            return None
        return Place(real, str(path), real.relative_to(self.root).as_posix())


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _stays(path: Path, bound: Path) -> bool:
    """Whether the path as written stays inside, so that it is a link that leads out."""
    return Path(os.path.normpath(path)).is_relative_to(bound)


def root_of(ticket: Path, root: Path | None) -> Path:
    """The folder nothing may leave: the one given, else the repository around the ticket."""
    folder = Path(os.path.realpath(ticket.parent))
    if root is not None:
        chosen = Path(os.path.realpath(root))
        if not chosen.is_dir():
            raise ClosureError("is no folder", where=str(root), fix="give an existing --root")
        if not folder.is_relative_to(chosen):
            raise ClosureError(
                "does not hold the ticket", where=str(root), got=str(ticket),
                fix="give a --root above the ticket, the run and the repository",
            )  # fmt: skip
        return chosen
    for above in (folder, *folder.parents):
        if (above / ".git").exists():
            return above
    return folder
