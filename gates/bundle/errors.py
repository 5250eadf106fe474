"""What making a bundle raises: it refuses rather than leave half of one behind."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trueup.gates.errors import GateError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class BundleError(GateError):
    """A bundle could not be made; nothing stands where it would have been."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says about a place that cannot be written into our own error."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            fix = "free some space, then run the same command again: it continues"
        else:
            fix = "give a path in a directory that you may write to"
        raise BundleError(f"cannot be written: {reason}", where=str(path), fix=fix) from None


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn what the system says about a file that cannot be read into our own error."""
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"cannot be read: {error.strerror or error}", where=name,
            fix="make it readable, or remove it from the run directory",
        ) from None  # fmt: skip
