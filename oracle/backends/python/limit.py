"""A time limit on Python code that keeps the process."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class TimeLimit(BaseException):
    """The code did not finish in time; no `except Exception` of the code itself stops it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimit in the block after so many seconds.

    It takes a signal, hence the main thread: elsewhere the block runs to its end, and the caller
    has to look at the clock. Code inside one long C call is interrupted when the call returns.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGALRM, _raise)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def _raise(number: int, frame: FrameType | None) -> None:
    raise TimeLimit
