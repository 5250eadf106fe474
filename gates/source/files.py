"""Finds the files to read: under the given paths, never through a link, within limits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trueup.gates.errors import Unreadable
from trueup.gates.source.config import Config
from trueup.gates.source.unit import kind_of

MAX_FILE = 8 << 20  # bytes; generated tables are longer, and are excluded
MAX_FILES = 200_000
_SKIPPED = ("target", "node_modules", "__pycache__")


@dataclass(frozen=True, slots=True)
class Found:
    """Files to read, sorted, each once, and folders that could not be looked into."""

    files: tuple[Path, ...]
    closed: tuple[tuple[str, str], ...] = ()  # a folder, and why


def find_files(paths: Iterable[str], config: Config, *, excluded_ok: bool = False) -> Found:
    """Every source file of a known language under the paths.

    Raises `Unreadable` where there is none, unless `excluded_ok` and only the settings left none.
    """
    named = tuple(paths)
    found, closed, excluded = dict[Path, None](), list[tuple[str, str]](), 0
    for path in named:
        start = Path(path)
        is_file = os.path.isfile(start)
        if not path or not (is_file or os.path.isdir(start)):  # false for what no path can be, too
            there = path and os.path.lexists(start)
            raise Unreadable(
                "is neither a file nor a folder" if there else "does not exist",
                where=path or "an empty path", expected="a file or a folder of source",
                fix="check the path, and that its folder may be searched",
            )  # fmt: skip
        for file in [start] if is_file else under(start, config, closed):
            if kind_of(file.name) is None:
                continue
            if config.excluded(relative(file, config)):
                excluded += 1
            else:
                found[file] = None
            if len(found) > MAX_FILES:
                raise Unreadable("holds too many files", where=path, got=f"over {MAX_FILES}")
    if not found and not closed and not (excluded and excluded_ok):
        raise Unreadable(
            "no source to judge", where=", ".join(named),
            got=f"0 files, {excluded} excluded by {config.name}" if excluded else "0 files",
            expected="files that end in .cu, .cuh, .rs, .py or .md",
        )  # fmt: skip
    return Found(tuple(sorted(found)), tuple(closed))


def relative(file: Path, config: Config) -> str:
    """The path from the folder of the settings, with slashes; the path itself if it is outside."""
    whole = Path(os.path.realpath(file))
    if whole.is_relative_to(config.root):
        return whole.relative_to(config.root).as_posix()
    return file.as_posix()


def under(start: Path, config: Config, closed: list[tuple[str, str]]) -> Iterator[Path]:
    """Every regular file under a folder; no link is followed, no excluded folder entered."""
    waiting = [start]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            closed.append((str(folder), error.strerror or str(error)))
            continue
        for entry in inside:
            path = folder / entry.name
            if entry.is_file(follow_symlinks=False):
                yield path
            elif entry.is_dir(follow_symlinks=False) and _is_entered(path, entry.name, config):
                waiting.append(path)


def _is_entered(path: Path, name: str, config: Config) -> bool:
    if name.startswith(".") or name in _SKIPPED:
        return False
    if "exclude" not in config.data:
        return True
    inner = relative(path, config)  # `a/**` excludes what is in `a` at any depth, `a/*` does not
    return not (config.excluded(f"{inner}/x") and config.excluded(f"{inner}/x/x"))
