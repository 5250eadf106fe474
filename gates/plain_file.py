"""Reads a small file that a user named: a plain one, within a limit; no pipe makes it wait."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from trueup.gates.errors import GateError

MAX_BYTES = 1 << 20


def plain_bytes(
    path: Path, where: str, error: type[GateError], expected: str = "", most: int = MAX_BYTES
) -> bytes:
    """The bytes of a regular file. Raises `error` for a pipe, a device, a folder, or a large one.

    It is opened without waiting, and looked at once it is open: a pipe blocks nobody, and what
    was looked at is what is read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise error("is not a regular file", where=where, expected=expected)
            raw = bytearray()
            while len(raw) <= most and (more := os.read(handle, most + 1 - len(raw))):
                raw += more
        finally:
            os.close(handle)
    except OSError as fault:
        got = str(fault.strerror)
        raise error("cannot be read", where=where, got=got, expected=expected) from None
    if len(raw) > most:
        got, expected = f"more than {most} bytes", f"at most {most} bytes"
        raise error("is too large", where=where, got=got, expected=expected)
    return bytes(raw)
