"""The `trueup` command's entry point: whatever goes wrong inside trueup is code 3, never 1."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; exits with 0, 1, 2 or 3 as `trueup --help` says."""
    for stream in (sys.stdout, sys.stderr):
        # A locale without the symbol must not turn a report into a crash.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        from trueup.cli.app import app

        app(prog_name="trueup")
    except Exception:
        from trueup.cli.guard import crash

        sys.exit(crash())
