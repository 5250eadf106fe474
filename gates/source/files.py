"""Finds the files to read: under the given paths, never through a link, within limits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trueup.gates.errors import Unreadable
from trueup.gates.source.config import Config
from trueup.gates.source.unit import kind_of

MAX_FILE = 8 << 20  # bytes; generated tables are longer, and are excluded
MAX_FILES = 200_000
_SKIPPED = ("target", "node_modules", "__pycache__")


def find_files(paths: Iterable[str], config: Config) -> list[Path]:
    """Every source file of a known language under the paths, sorted, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        start = Path(path)
        if not start.exists():
            raise Unreadable(
                "does not exist", where=path, expected="a file or a folder of source",
                fix="check the path",
            )  # fmt: skip
        files = [start] if start.is_file() else _under(start)
        for file in files:
            if kind_of(file.name) is None:
                continue
            if not config.excluded(relative(file, config)):
                found[file] = None
            if len(found) > MAX_FILES:
                raise Unreadable("holds too many files", where=path, got=f"over {MAX_FILES}")
    if not found:
        raise Unreadable(
            "no source to judge", where=", ".join(paths), got="0 files",
            expected="files that end in .cu, .cuh, .rs, .py or .md",
        )  # fmt: skip
    return sorted(found)


def relative(file: Path, config: Config) -> str:
    """The path from the folder of the settings, with slashes; the path itself if it is outside."""
    whole = file.resolve()
    if whole.is_relative_to(config.root):
        return whole.relative_to(config.root).as_posix()
    return file.as_posix()


def _under(start: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(start, followlinks=False):
        folders[:] = sorted(
            one for one in folders
            if not one.startswith(".") and one not in _SKIPPED
            and not os.path.islink(os.path.join(folder, one))
        )  # fmt: skip
        for name in sorted(names):
            path = Path(folder, name)
            if not path.is_symlink() and path.is_file():
                yield path
