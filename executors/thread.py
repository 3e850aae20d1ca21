"""Plain stages on a few threads, coroutine stages on one event loop: overlaps what waits.

For one machine. A call that outlasts its deadline is given up and its thread replaced; Python
cannot stop it, so what may hang for good belongs into a process of its own
(``rlgraph.envs.isolated``).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from rlgraph.graph import Graph
from rlgraph.running.execution import (
    carry_out,
    carry_out_async,
    close_loop,
    overdue,
    set_up,
    settle,
)
from rlgraph.scheduling import Outcome, Task

_GLANCE_S = 0.1
"""How often deadlines are looked at."""
_JOIN_S = 1.0
"""How long ``close`` lets calls end that are under way."""


@dataclass(slots=True, eq=False)
class _Call:
    task: Task
    future: Future[Outcome]
    deadline: float = math.inf
    """On the monotonic clock; known once it begins."""
    thread: threading.Thread | None = None
    """Where a plain call runs; None while it waits for a thread."""


class ThreadExecutor:
    """Runs calls as they come, on daemon threads: leaving never waits for one that hangs.

    A coroutine that blocks instead of awaiting holds up all others; their deadlines end the run.
    """

    def __init__(self, threads: int = max(4, os.cpu_count() or 1)) -> None:
        if threads < 1:
            raise ValueError(f"threads must be >= 1, got {threads!r}")
        self._size = threads
        self._objects: dict[int, object] = {}
        self._threads: list[threading.Thread] = []
        """Empty unless started."""
        self._running: dict[Future[Outcome], _Call] = {}
        self._fresh: list[_Call] = []
        """Coroutine calls that the loop has not been told of."""
        # Made anew by each start: what an earlier run left behind must not get into the next.
        self._calls: queue.SimpleQueue[_Call | None]
        self._finished: queue.SimpleQueue[Future[Outcome]]
        self._loop: asyncio.AbstractEventLoop
        self._looked = 0.0

    def start(self, graph: Graph) -> None:
        """Set up the graph's objects on the CPU, and start the threads."""
        set_up(graph, "cpu", self._objects)
        if self._threads:
            return
        self._calls, self._finished = queue.SimpleQueue(), queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._spawn(_run_loop, self._loop)
        for _ in range(self._size):
            self._spawn(self._work, self._calls)

    def submit(self, task: Task) -> Future[Outcome]:
        """Begin a call, or queue it until a thread is free."""
        future: Future[Outcome] = Future()
        call = _Call(task, future)
        self._running[future] = call
        future.add_done_callback(self._finished.put)
        if task.coroutine:
            # From submission, not from its start: a loop that is blocked starts nothing.
            call.deadline = self.now() + task.deadline_s
            self._fresh.append(call)
        else:
            self._calls.put(call)
        return future

    def wait(
        self,
        futures: Collection[Future[Outcome]],  # noqa: ARG002 - all that it submitted are awaited
        timeout_s: float | None = None,
    ) -> list[Future[Outcome]]:
        """Return the calls that ended since the last time, at least one."""
        if self._fresh:
            # All at once: to wake the loop's thread costs more than most calls do.
            self._loop.call_soon_threadsafe(self._begin, self._fresh, self._loop)
            self._fresh = []
        until = math.inf if timeout_s is None else self.now() + timeout_s
        done: list[Future[Outcome]] = []
        while not done and (left_s := until - self.now()) > 0:
            with contextlib.suppress(queue.Empty):
                done.append(self._finished.get(timeout=min(_GLANCE_S, left_s)))
                while True:
                    done.append(self._finished.get_nowait())
            if self.now() - self._looked > _GLANCE_S:
                self._looked = self.now()
                self._give_up_overdue()
        for future in done:
            del self._running[future]
        return done

    def now(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def close(self) -> None:
        """Cancel what is queued or can be cancelled, and wait a second at most for the rest."""
        if not self._threads:
            return
        for future in self._running:
            future.cancel()
        self._running.clear()
        self._fresh.clear()
        for _ in range(self._size):
            self._calls.put(None)
        self._loop.call_soon_threadsafe(self._loop.stop)
        until = self.now() + _JOIN_S
        for thread in self._threads:
            thread.join(max(until - self.now(), 0))
        self._threads.clear()

    def _spawn(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, name="rlgraph", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, calls: queue.SimpleQueue[_Call | None]) -> None:
        while (call := calls.get()) is not None:
            if call.future.set_running_or_notify_cancel():
                call.thread = threading.current_thread()
                call.deadline = self.now() + call.task.deadline_s
                if not carry_out(call.task, call.future, self.now):
                    return  # given up meanwhile, and another thread has taken this one's place

    def _begin(self, calls: Sequence[_Call], loop: asyncio.AbstractEventLoop) -> None:
        for call in calls:
            awaited = loop.create_task(carry_out_async(call.task, call.future, self.now))
            call.future.add_done_callback(partial(_end, awaited, threading.current_thread()))
            if call.future.done():  # cancelled before it began
                awaited.cancel()

    def _give_up_overdue(self) -> None:
        now = self.now()
        for call in self._running.values():
            if call.deadline <= now and settle(call.future, overdue(call.task)) and call.thread:
                self._threads.remove(call.thread)
                self._spawn(self._work, self._calls)


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    close_loop(loop)


def _end(awaited: asyncio.Task[None], home: threading.Thread, _: Future[Outcome]) -> None:
    """Cancel a coroutine whose future was settled by somebody else than itself."""
    if threading.current_thread() is not home:
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            awaited.get_loop().call_soon_threadsafe(awaited.cancel)
