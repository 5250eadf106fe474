"""Parses the next piece in a helper thread while the one before it is counted and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from trueup.gates.read.rows.proof import Asked, Counts, counts, parse

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
Started = TypeVar("Started")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A piece of lines, counted, and perhaps on its way to be parsed."""

    text: bytes
    seen: Counts
    asked: Asked | None = None
    frame: Future[pl.DataFrame | None] | None = None

    def parsed(self, asked: Asked) -> pl.DataFrame | None:
        """The rows as parsed with these types; anew if others were known when it was begun."""
        if self.frame is not None and self.asked == asked:
            return self.frame.result()
        return parse(self.text, asked)


class Helper:
    """One thread; the table engine lets others run while it parses."""

    def __init__(self) -> None:
        """Start it."""
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="parse")

    def __enter__(self) -> Helper:
        """Use it as a context: it ends with it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for what is under way, drop what is not."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def begin(self, text: bytes, asked: Asked | None, max_rows: int) -> Attempt:
        """Count a piece, and have it parsed if that may lead to something."""
        seen = counts(text)
        if asked is None or not seen.plain or seen.lines > max_rows:
            return Attempt(text, seen)
        return Attempt(text, seen, asked, self._pool.submit(parse, text, asked))


def one_ahead(items: Iterable[T], start: Callable[[T], Started]) -> Iterator[tuple[T, Started]]:
    """Each item with what was started for it, after the next one was started as well."""
    waiting: tuple[T, Started] | None = None
    for item in items:
        now = (item, start(item))
        if waiting is not None:
            yield waiting
        waiting = now
    if waiting is not None:
        yield waiting
