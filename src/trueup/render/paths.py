"""Paths as a reader would type them: from where the command runs, if that is shorter to say."""

from __future__ import annotations

import os
import re
from pathlib import Path

from trueup.shipped import shipped_kernels


def nearby(path: str) -> str:
    """Give `path` relative to the current directory where it lies below it, else as it is.

    A shipped contract of an editable install is a link; then the file in the tree is named.
    """
    if not os.path.isabs(path):
        return path
    try:
        here, place = Path.cwd(), Path(path)
        if place.is_relative_to(shipped_kernels()):
            place = place.resolve()
    except (OSError, ValueError):  # no current directory, or no path at all: shown as it is
        return path
    return str(place.relative_to(here)) if place.is_relative_to(here) else path


def is_url(path: str) -> bool:
    """Whether an artifact is named by a URL and not by a path of this machine."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path) is not None
