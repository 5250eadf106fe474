"""Writes a report so that a reader never sees half of one."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from trueup.errors import FaceError, writing


def write_report(directory: Path, name: str, text: str) -> Path:
    """Write `text` to a file in `directory`, made where it is missing, in one step."""
    path = directory / name
    with writing(path):
        if _is_stream(path):
            return _streamed(path, text)
        directory.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=directory, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    return path


def _is_stream(path: Path) -> bool:
    """Whether it is a device or a pipe: a file must not take its place, `/dev/stdout` for one."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _streamed(path: Path, text: str) -> Path:
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # a pipe that nobody reads makes none wait
    os.set_blocking(handle, True)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
    return path


def write_together(folder: Path, texts: Mapping[str, str], *, overwrite: bool) -> list[Path]:
    """Write all files or none: each is complete before the first gets its name.

    Without `overwrite` a name that is taken is refused, also one that was taken meanwhile.
    """
    paths = {folder / name: text for name, text in texts.items()}
    taken = [path for path in paths if os.path.lexists(path)]
    if any(path.is_dir() for path in taken):
        raise FaceError("holds a folder of that name", where=str(folder), fix="move it away")
    if taken and not overwrite:
        raise FaceError(
            f"{', '.join(path.name for path in taken)} exists already",
            where=str(folder),
            fix="give another directory, or --force to overwrite",
        )
    with writing(folder), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        waiting = [(_waiting(path, text, stack), path) for path, text in paths.items()]
        done: list[Path] = []
        try:
            for temporary, path in waiting:
                if overwrite:
                    os.replace(temporary, path)
                else:
                    _claim(temporary, path)
                done.append(path)
        except BaseException:
            if not overwrite:
                for path in done:
                    path.unlink()
            raise
    return done


def _waiting(path: Path, text: str, stack: ExitStack) -> str:
    """A complete file under a name of its own, which goes when the stack does."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    stack.callback(_gone, temporary)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(temporary, 0o666 & ~_umask())
    return temporary


def _claim(temporary: str, path: Path) -> None:
    """Give a file its name, unless somebody has it: a link, unlike a rename, takes nobody's."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise
        os.replace(temporary, path)


def _gone(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _umask() -> int:
    """Give the process's mask; the system only tells it while setting one."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
