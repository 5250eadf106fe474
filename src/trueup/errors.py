"""What the face refuses by itself: a call it cannot serve, a place it cannot write to."""

from __future__ import annotations

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
            where=str(error.filename or path),
            fix="give a path in a directory that you may write to",
        ) from error
