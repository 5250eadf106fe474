"""The Rich consoles: no escape codes where no terminal reads them, nothing cut off anywhere."""

from __future__ import annotations

import os
import sys
from typing import IO, Any, cast

from rich.console import Console, RenderableType

from trueup.render.clean import no_command

_WIDEST = 4000


class _Plain:
    """A stream whose lines are read by people and by CI systems, none of them as a command."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write lines that have been escaped."""
        return self._stream.write(no_command(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Console(Console):
    """A console that leaves a closed pipe to the command, which has an exit code for it."""

    def on_broken_pipe(self) -> None:
        """Raise the error again that is being handled."""
        raise BrokenPipeError


def console(stream: IO[str] | None = None) -> Console:
    """Make a console on `stream` (stdout); plain where it is no terminal or NO_COLOR is set."""
    file = sys.stdout if stream is None else stream
    terminal = file.isatty()
    plain = not terminal or bool(os.environ.get("NO_COLOR"))
    return _Console(
        file=file if terminal else cast("IO[str]", _Plain(file)),
        force_terminal=terminal,
        color_system=None if plain else "auto",
        no_color=plain,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if terminal else _WIDEST,
    )


def print_block(out: Console, block: RenderableType) -> None:
    """Print a table as wide as it needs to be; a terminal folds it, a pipe gets all of it."""
    width = min(out.width, max(1, out.measure(block).maximum))
    out.print(block, width=width, crop=False, no_wrap=False)
