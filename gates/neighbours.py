"""Tells whether a file's name comes close to an artifact's, which is not read under that name."""

from __future__ import annotations

import re
from collections.abc import Callable

_ENDINGS = re.compile(
    r"(?:[._-]?\d{1,14}(?:[-_.T]?\d{2,6}){0,3}"  # a rotated or dated file: .1, -20260101
    r"|\.(?:tmp|temp|part|partial|incomplete|bak|backup|old|orig|new|copy|save|swp|swo)"
    r"|~|\s?\(\d{1,3}\)"
    r"|\.(?:gz|zst|gzip|zstd|bz2|xz|lzma|lz4|br|snappy|sz|zip|7z|rar|tar|tgz|enc|gpg))$",
    re.IGNORECASE,
)


def almost(relative: str, known: Callable[[str], bool]) -> str | None:
    """The artifact's name that a file's name comes close to, if any.

    Endings of rotation, of unfinished writing and of archives are taken off one after the other
    (`telemetry.jsonl.1.bz2`), and a leading dot.
    """
    folder, _, name = relative.rpartition("/")
    plain = name.lstrip(".")
    if plain != name and _fits(folder, plain, known):
        return plain
    while (cut := _ENDINGS.sub("", plain)) not in (plain, ""):
        plain = cut
        if _fits(folder, plain, known):
            return plain
    return None


def _fits(folder: str, name: str, known: Callable[[str], bool]) -> bool:
    return known(f"{folder}/{name}" if folder else name)
