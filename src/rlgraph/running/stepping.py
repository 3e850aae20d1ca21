"""Calls in the caller's own thread, each within its deadline: plain ones, and coroutines.

For executors that do nothing while nobody waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from types import FrameType

from rlgraph.running.execution import (
    Clock,
    Interrupted,
    carry_out,
    carry_out_async,
    close_loop,
    overdue,
    settle,
)
from rlgraph.scheduling import Outcome, Task

_LONGEST_S = 1e8
"""An alarm set for later than this is refused by some systems."""


def step(task: Task, future: Future[Outcome], clock: Clock) -> None:
    """Make a plain call now.

    A deadline interrupts it only on the main thread of a Unix system (by SIGALRM).
    """
    with _alarm(task.deadline_s) as limit:
        carry_out(task, future, clock, limit)


class SteppedLoop:
    """Coroutine calls that move only while ``run`` is called. May be used again after ``close``."""

    def __init__(self) -> None:
        self._loop: _StandingLoop | None = None
        """Open from the first call on, so that whoever begins none need not close it."""
        self._moving = False

    def begin(self, task: Task, future: Future[Outcome], clock: Clock) -> None:
        """Start a call; it ends with its future, which its deadline settles if nothing else."""
        loop = self._loop = self._loop or _StandingLoop()
        awaited = loop.create_task(carry_out_async(task, future, clock))
        deadline = loop.call_later(task.deadline_s, lambda: settle(future, overdue(task)))

        def end(_: object) -> None:
            awaited.cancel()
            deadline.cancel()
            if self._moving:
                loop.stop()

        future.add_done_callback(end)

    def run(self) -> None:
        """Let the calls move until one has ended. At least one must have begun."""
        if self._loop is not None:
            self._moving = True
            try:
                self._loop.run_forever()
            finally:
                self._moving = False

    def close(self) -> None:
        """Cancel the calls that have not ended. Idempotent."""
        if self._loop is not None:
            close_loop(self._loop)
            self._loop = None


class _StandingLoop(asyncio.SelectorEventLoop):
    """Its clock stands while it does not run: a deadline counts the time a call could move in."""

    def __init__(self) -> None:
        super().__init__()
        self._stood_s = 0.0
        self._stands_since = time.monotonic()

    def time(self) -> float:
        now = time.monotonic() if self.is_running() else self._stands_since
        return now - self._stood_s

    def run_forever(self) -> None:
        self._stood_s += time.monotonic() - self._stands_since
        try:
            super().run_forever()
        finally:
            self._stands_since = time.monotonic()


class _Limit:
    """Raises ``Interrupted`` once the time is up: while it is entered, and nowhere else.

    A signal comes between any two instructions. Raised a moment before the call or after it, it
    would be caught by nobody, and end the run.
    """

    def __init__(self) -> None:
        self._entered = False
        self._rung = False

    def ring(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signature
        """Handle the signal."""
        self._rung = True
        self._interrupt()

    def __enter__(self) -> None:
        self._entered = True
        if self._rung:
            self._interrupt()

    def __exit__(self, *_: object) -> None:
        self._entered = False

    def _interrupt(self) -> None:
        if self._entered:
            self._entered = False  # once: what cleans up after it is left alone
            raise Interrupted


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[AbstractContextManager[None]]:
    """Give a limit that rings when the time is up, or none where no alarm can be set."""
    here = threading.current_thread() is threading.main_thread()
    if not (here and hasattr(signal, "setitimer")):
        yield nullcontext()
        return
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    if 0 < left <= seconds:  # another's alarm rings first, and would be lost
        yield nullcontext()
        return

    limit = _Limit()
    before = signal.signal(signal.SIGALRM, limit.ring)
    began = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, min(seconds, _LONGEST_S))
        yield limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            rest = max(left - (time.monotonic() - began), 1e-3)
            signal.setitimer(signal.ITIMER_REAL, rest, interval)
