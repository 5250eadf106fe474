"""Maps what a command's body raises to the exit codes; a usage error never reaches this place."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from trueup.errors import refusals

PASSED, NOT_PASSED, CANNOT_JUDGE, CRASHED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141


class Guarded(TyperCommand):
    """A command whose errors become messages and exit codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the body; refusals exit with 2, a closed pipe quietly, the rest with 3."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except SystemExit as error:  # ours is typer.Exit: code under test must not choose our code
            complain(
                f"the code under test called exit: SystemExit({error.code!r}); nothing was judged\n"
                "  fix: take sys.exit, exit and quit out of the kernel and the reference"
            )
            raise typer.Exit(CANNOT_JUDGE) from None
        except BaseException as error:  # an interrupt; a library that panics has one of its own
            raise typer.Exit(told(error)) from None


class GuardedGroup(TyperGroup):
    """The whole command: its help meets the same streams as what its commands print."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the words; the help may be asked for, and its reader gone."""
        with _met():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        with _met():
            return super().invoke(ctx)


@contextmanager
def _met() -> Iterator[None]:
    try:
        yield
    except (OSError, KeyboardInterrupt) as error:
        raise typer.Exit(told(error)) from None


def told(error: BaseException) -> int:
    """Say on stderr why there is no judgement, and give the exit code."""
    if isinstance(error, KeyboardInterrupt):
        _say("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        _silence()
        return PIPE_CLOSED
    if isinstance(error, refusals()):
        complain(str(error))
    elif isinstance(error, MemoryError):
        complain("there is not enough memory\n  fix: judge fewer files at once, or smaller ones")
    elif isinstance(error, OSError) and not _ours(error):
        reason = error.strerror or str(error)
        if error.filename is None:  # a stream, or the folder that the command runs in
            complain(f"cannot go on: {reason}\n  fix: check where its output goes, and its folder")
        else:
            complain(f"{error.filename}: {reason}\n  fix: check the path and its permissions")
    else:
        return crash(error)
    _silence()
    return CANNOT_JUDGE


def _ours(error: OSError) -> bool:
    """Whether a file of the package itself could not be read: that is a fault of its own."""
    name = error.filename
    package = os.path.dirname(os.path.dirname(__file__))
    return isinstance(name, str) and name.startswith(os.path.join(package, ""))


def crash(error: BaseException) -> int:
    """Print the traceback of an error, and say that it is our own mistake."""
    _say("".join(traceback.format_exception(error)).rstrip())
    _say("trueup: this is a fault of trueup itself, not of what it judged")
    return CRASHED


def complain(message: str) -> None:
    """Say on stderr why something could not be judged."""
    from trueup.render.clean import no_command, printable

    _say(no_command(f"trueup: {printable(message)}"))


def _say(text: str) -> None:
    """Write to stderr; where that fails as well, the exit code alone must tell."""
    with suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _silence() -> None:
    """Let the interpreter flush into nothing at exit what a stream did not take."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):  # a stream without a descriptor has nothing to lose
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
