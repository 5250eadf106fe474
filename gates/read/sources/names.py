"""URLs and the names below them: which of them a local copy may have."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # one letter alone is a drive
_MAX_PART, _MAX_PATH = 255, 1024


def is_url(text: str) -> bool:
    """Whether this is a URL, and no local path."""
    return _URL.match(text) is not None


def shown(url: str) -> str:
    """The URL without what must not stand in a report: a password, a signature in the query."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if at:
        user = user.split(":", 1)[0] + (":***" if ":" in user else "")
    query = "..." if parts.query else ""
    return urlunsplit((parts.scheme, f"{user}{at}{host}", parts.path, query, ""))


def below(name: str, root: str) -> str | None:
    """The name relative to the root; None if it does not lie below it."""
    start = root.rstrip("/") + "/"
    return name[len(start) :].rstrip("/") if name.startswith(start) else None


def flaw_of(relative: str) -> str | None:
    """Why a file of this name cannot be kept below a local folder; None if it can."""
    parts = relative.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of the folder, or around in it"
    if "\\" in relative or any(ord(char) < 32 for char in relative):
        return "holds a backslash or a control character"
    if len(relative.encode()) > _MAX_PATH or any(len(p.encode()) > _MAX_PART for p in parts):
        return f"is longer than {_MAX_PART} bytes, or {_MAX_PATH} with its folders"
    return None
