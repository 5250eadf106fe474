"""Settings of the source gates: what is declared hot, adaptive, retired, registered, documented."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from trueup.gates.errors import Unreadable
from trueup.gates.layout.load import load_layout, read_checked

NAME = "lint.toml"


@dataclass(frozen=True, slots=True)
class Config:
    """What lint.toml says; a table that is not there is empty. `root` is its folder."""

    root: Path
    name: str = ""  # as reports call the file; empty if there is none
    data: dict[str, Any] = field(default_factory=dict)
    retired: tuple[str, ...] = ()

    def table(self, name: str) -> dict[str, Any]:
        """One table of settings."""
        found: dict[str, Any] = self.data.get(name, {})
        return found

    def tables(self, name: str) -> list[dict[str, Any]]:
        """A list of tables."""
        found: list[dict[str, Any]] = self.data.get(name, [])
        return found

    def excluded(self, relative: str) -> bool:
        """Whether a path is not read."""
        return matches(relative, self.data.get("exclude", ()))


def matches(relative: str, globs: Sequence[str]) -> bool:
    """Whether a path from the root fits one of the globs; `**` stands for any folders, or none."""
    path = PurePosixPath(relative)
    return any(_fits(path.parts, PurePosixPath(glob).parts) for glob in globs)


def _fits(parts: tuple[str, ...], glob: tuple[str, ...]) -> bool:
    if not glob:
        return not parts
    if glob[0] == "**":
        return any(_fits(parts[i:], glob[1:]) for i in range(len(parts) + 1))
    return bool(parts) and PurePosixPath(parts[0]).match(glob[0]) and _fits(parts[1:], glob[1:])


def load_config(path: Path) -> Config:
    """The settings. Raises `Unreadable` with file, line and key if they are not as expected."""
    document = read_checked(path, str(path), "source/lint", "settings of the source gates")
    root = Path(os.path.realpath(path.parent))
    names = document.data.get("names", {})
    retired = list(names.get("retired", ()))
    if "layout" in names:
        retired += load_layout(inside(root, names["layout"], str(path))).retired
    return Config(root, str(path), document.data, tuple(dict.fromkeys(retired)))


def inside(root: Path, relative: str, said_by: str) -> Path:
    """A file that settings name: under their own folder, and there."""
    path = Path(os.path.realpath(root / relative))
    if not path.is_relative_to(root) or not os.path.isfile(path):
        raise Unreadable(
            "names a file that is not there", where=said_by, got=relative,
            expected="a file under the folder of these settings", fix="correct the path",
        )  # fmt: skip
    return path


def find_config(start: Path) -> Path | None:
    """The nearest lint.toml, from a path upwards."""
    whole = Path(os.path.realpath(start))
    folder = whole if os.path.isdir(whole) else whole.parent
    for one in (folder, *folder.parents):
        if os.path.isfile(one / NAME):
            return one / NAME
    return None
