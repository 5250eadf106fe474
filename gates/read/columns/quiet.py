"""Calls of the table engine on bytes nobody trusts: what it raises, and what it prints."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl


class Damaged(Exception):
    """The engine could not read this."""


@contextmanager
def guarded() -> Iterator[None]:
    """Turn the engine's errors and panics into `Damaged`.

    A panic is printed by the engine itself, with a backtrace: those lines are dropped, since the
    finding says what happened. Whatever else is printed meanwhile appears afterwards.
    """
    sys.stderr.flush()
    try:
        shown = os.dup(2)
    except OSError:  # no standard error at all
        shown = -1
    panicked = False
    with tempfile.TemporaryFile() as held:
        if shown >= 0:
            os.dup2(held.fileno(), 2)
        try:
            yield
        except pl.exceptions.PanicException as error:
            panicked = True
            raise Damaged(f"the engine gave up: {str(error)[:200]}") from None
        except pl.exceptions.PolarsError as error:
            raise Damaged(str(error)[:200]) from None
        finally:
            sys.stderr.flush()
            if shown >= 0:
                os.dup2(shown, 2)
                os.close(shown)
                _show(held.fileno(), panicked)


def _show(held: int, panicked: bool) -> None:
    size = os.lseek(held, 0, os.SEEK_END)
    if size and not panicked:
        os.write(2, os.pread(held, min(size, 1 << 16), 0))
