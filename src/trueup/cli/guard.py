"""Maps what a command's body raises to the exit codes; a usage error never reaches this place."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperCommand

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
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _silence_stdout()
            raise typer.Exit(PIPE_CLOSED) from None
        except Exception as error:
            if isinstance(error, refusals()):
                complain(str(error))
                raise typer.Exit(CANNOT_JUDGE) from None
            raise typer.Exit(crash()) from None


def crash() -> int:
    """Print the traceback of the error being handled, and say that it is our own mistake."""
    traceback.print_exc()
    print("trueup: this is a fault of trueup itself, not of what it judged", file=sys.stderr)
    return CRASHED


def complain(message: str) -> None:
    """Say on stderr why something could not be judged."""
    from trueup.render.clean import printable

    print(f"trueup: {printable(message)}", file=sys.stderr)


def _silence_stdout() -> None:
    """Let the interpreter flush into nothing at exit: the reader has gone."""
    with suppress(OSError, ValueError):  # a stdout without a descriptor has nothing to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
