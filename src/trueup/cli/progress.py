"""Progress bars on stderr, where somebody watches."""

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
    with _bar(wanted, "reading contracts") as move:
        if move is None:
            yield None
            return

        def event(now: Progress) -> None:
            name = f"{now.contract} {now.lane}" if now.lane else f"{now.contract} done"
            move(name, now.done, now.total)

        yield event


@contextmanager
def identify_progress(name: str, wanted: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """Give a callback that moves a bar over cases, then forms, or None where nobody watches."""
    with _bar(wanted, name) as move:
        yield move


@contextmanager
def gate_progress(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback that moves a bar over the bytes read, or None where nobody watches."""
    with _bar(True, name) as move:
        if move is None:
            yield None
        else:
            yield lambda done, total: move(name, done, total)


@contextmanager
def lint_progress() -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback that moves a bar over the files read, or None where nobody watches."""
    with gate_progress("reading source") as move:
        yield move


@contextmanager
def _bar(wanted: bool, title: str) -> Iterator[Callable[[str, int, int], None] | None]:
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from trueup.render.console import console

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console(sys.stderr),
        transient=True,
    )
    with bars:
        task = bars.add_task(one_line(title), total=None)
        yield lambda name, done, total: bars.update(
            task, description=one_line(name), completed=done, total=total
        )
