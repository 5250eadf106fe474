"""A progress bar on stderr for a verification, where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trueup.render.clean import one_line

if TYPE_CHECKING:
    from trueup.oracle.verify import Progress


@contextmanager
def verify_progress(wanted: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Give a callback that moves a bar per contract and lane, or None where nobody watches."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from trueup.render.console import console

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console(sys.stderr),
        transient=True,
    )
    with bars:
        task = bars.add_task("reading contracts", total=None)

        def move(event: Progress) -> None:
            bars.update(
                task,
                description=one_line(f"{event.contract} {event.lane}"),
                total=event.total,
                completed=event.done,
            )

        yield move
