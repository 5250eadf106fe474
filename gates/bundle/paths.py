"""Paths inside a bundle: which are fit to be unpacked anywhere, and which two are one elsewhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_LONGEST = 255  # bytes of one part, on the file systems in use


def flaw_of_path(path: str) -> str:
    """Why a path cannot stand in a bundle; empty if it can."""
    parts = path.split("/")
    if path.startswith("/") or (len(path) > 1 and path[1] == ":" and path[0].isalpha()):
        return "is absolute"
    if ".." in parts:
        return "climbs by `..`"
    if "" in parts or "." in parts:
        return "has an empty part or a `.`"
    if "\\" in path:
        return "has a backslash, which parts folders elsewhere"
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in path):
        return "has a control character, or bytes that are no text"
    if any(len(part.encode("utf-8")) > _LONGEST for part in parts):
        return f"has a part of more than {_LONGEST} bytes"
    return ""


def folded(path: str) -> str:
    """A path as file systems see it that know neither case nor how an accent was typed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def clashes(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of paths that cannot both be unpacked: the later one, and what it clashes with."""
    first: dict[str, str] = {}
    folders: dict[str, str] = {}
    found = []
    for path in paths:
        plain = folded(path)
        above = [plain[:at] for at, char in enumerate(plain) if char == "/"]
        other = first.get(plain) or folders.get(plain)
        other = other or next((first[folder] for folder in above if folder in first), None)
        if other is not None:
            found.append((path, other))
        first.setdefault(plain, path)
        for folder in above:
            folders.setdefault(folder, path)
    return found
