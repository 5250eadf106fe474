"""Writes a report so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from trueup.errors import writing


def write_report(directory: Path, name: str, text: str) -> Path:
    """Write `text` to a file in `directory`, made where it is missing, in one step."""
    path = directory / name
    with writing(path):
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


def _umask() -> int:
    """Give the process's mask; the system only tells it while setting one."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
