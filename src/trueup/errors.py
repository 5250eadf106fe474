"""What the face refuses by itself: a call it cannot serve, a place it cannot write to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FaceError(Exception):
    """The command could not do what was asked; it exits with code 2."""

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        """Keep the parts and join them the way every other error of trueup reads."""
        self.what, self.where, self.fix = what, where, fix
        head = f"{where}: {what}" if where else what
        super().__init__(f"{head}\n  fix: {fix}" if fix else head)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system says about a place that cannot be written into our own error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise FaceError(
            f"cannot write it: {reason}",
            where=_place(path, error),
            fix="give a path in a directory that you may write to",
        ) from error


def _place(path: Path, error: OSError) -> str:
    """What was asked for; a folder above it, where that could not be made."""
    named = error.filename
    above = isinstance(named, str) and path.is_relative_to(named)
    return str(named) if above else str(path)


# Where each folder keeps the base class of its errors.
_BASES = (
    ("trueup.oracle.errors", "OracleError"),
    ("trueup.oracle.bounds.errors", "BoundsError"),
    ("trueup.reference.errors", "ReferenceError_"),
    ("trueup.gates.errors", "GateError"),
)


def refusals() -> tuple[type[Exception], ...]:
    """Give the errors that trueup raises on purpose about what it was given.

    A folder that is not imported has raised nothing, and is not imported for this.
    """
    loaded = (getattr(sys.modules.get(module), name, None) for module, name in _BASES)
    return (FaceError, *(kind for kind in loaded if kind is not None))
