"""The `trueup` command's entry point: whatever goes wrong inside trueup is code 3, never 1."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line; exits with 0, 1, 2 or 3 as `trueup --help` says."""
    _open_streams()
    try:
        from trueup.cli.app import app

        app(prog_name="trueup")
    except SystemExit:
        raise
    except BaseException as error:  # an interrupt; a library that panics has one of its own
        from trueup.cli.guard import told

        sys.exit(told(error))


def _open_streams() -> None:
    """Give every stream somewhere to go, and no symbol that its encoding lacks.

    A stream that the caller closed is None, and its number would be taken by the next file that is
    opened: what is printed would be written into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A locale without the symbol must not turn a report into a crash.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
