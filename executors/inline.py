"""Everything in the caller's thread, one step after the other: to debug, and to be sure.

Plain stages run in the order of submission; coroutine stages share one event loop and make
progress whenever no plain stage is left to run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from concurrent.futures import Future

from rlgraph.graph import Graph
from rlgraph.running.execution import set_up
from rlgraph.running.stepping import SteppedLoop, step
from rlgraph.scheduling import Outcome, Task


class InlineExecutor:
    """Deterministic, and steps through a debugger.

    A deadline interrupts a plain call only on the main thread of a Unix system, and never a
    coroutine that blocks instead of awaiting.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[Task, Future[Outcome]]] = deque()
        self._finished: list[Future[Outcome]] = []
        self._objects: dict[int, object] = {}
        self._loop = SteppedLoop()

    def start(self, graph: Graph) -> None:
        """Set up the graph's objects on the CPU."""
        set_up(graph, "cpu", self._objects)

    def submit(self, task: Task) -> Future[Outcome]:
        """Queue a call; it runs in ``wait``."""
        future: Future[Outcome] = Future()
        future.add_done_callback(self._finished.append)
        if task.coroutine:
            self._loop.begin(task, future, self.now)
        else:
            self._queue.append((task, future))
        return future

    def wait(
        self,
        futures: Collection[Future[Outcome]],  # noqa: ARG002 - all that it submitted are awaited
        timeout_s: float | None = None,  # noqa: ARG002 - nothing runs here while nobody waits
    ) -> list[Future[Outcome]]:
        """Run calls until one is done."""
        while not self._finished:
            if self._queue:
                task, future = self._queue.popleft()
                if future.set_running_or_notify_cancel():
                    step(task, future, self.now)
            else:
                self._loop.run()
        done = self._finished.copy()
        self._finished.clear()
        return done

    def now(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def close(self) -> None:
        """Cancel what has not ended, and close the loop."""
        self._loop.close()
        self._queue.clear()
        self._finished.clear()
