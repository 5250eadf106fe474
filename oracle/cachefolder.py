"""Where evaluations and builds are kept between runs.

`TRUEUP_CACHE` names the folder; empty or `off` keeps nothing. Otherwise it is `trueup` in the
user's cache folder (XDG).
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path | None:
    """Return the folder, or None where nothing is kept."""
    own = os.environ.get("TRUEUP_CACHE")
    if own is not None:
        return None if own.strip().lower() in ("", "off") else Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base) / "trueup"
    try:
        return Path.home() / ".cache" / "trueup"
    except RuntimeError:  # no home folder
        return None
