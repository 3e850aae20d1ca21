"""A virtual clock: stages cost what a table or their profile says, and nobody waits.

The schedule is made by the same scheduler as in a real run. By default the stages are called, so
that a run gives the same results as any other executor; with ``play=pretend(seed)`` nothing is
called, items pass through unchanged and the rounds of an ``iterate`` are drawn.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from rlgraph.graph import Graph
from rlgraph.profile import Distribution
from rlgraph.running.execution import overdue, set_up, settle
from rlgraph.running.stepping import SteppedLoop, step
from rlgraph.scheduling import Outcome, Task

Play = Callable[[Task], Outcome]


@dataclass(slots=True, order=True)
class _Call:
    end_s: float
    number: int
    start_s: float = field(compare=False)
    task: Task = field(compare=False)
    future: Future[Outcome] = field(compare=False)
    real: Future[Outcome] = field(compare=False)
    """Gets the outcome of the real call, stamped with the real clock."""
    late: bool = field(compare=False)


class SimulatedExecutor:
    """As many calls at once as the scheduler lets start; every draw is fixed by seed and key.

    Deadlines are of the virtual clock. A call that really takes longer than its deadline is given
    up as well: a simulation must not hang.
    """

    def __init__(
        self,
        costs: Mapping[str, Distribution] | None = None,
        *,
        seed: int = 0,
        play: Play | None = None,
    ) -> None:
        """Take the seconds of a call by stage; one that is missing costs what its profile needs.

        ``play`` stands in for calling the stage.
        """
        self._costs = dict(costs or {})
        self._seed = seed
        self._play = play
        self._now = 0.0
        self._calls: list[_Call] = []
        self._finished: list[Future[Outcome]] = []
        self._numbers = itertools.count()
        self._objects: dict[int, object] = {}
        self._loop = SteppedLoop()

    def start(self, graph: Graph) -> None:
        """Set up the graph's objects, which takes no virtual time."""
        if self._play is None:
            set_up(graph, "cpu", self._objects)

    def submit(self, task: Task) -> Future[Outcome]:
        """Begin a call now; it ends when its cost has passed."""
        future: Future[Outcome] = Future()
        future.add_done_callback(self._finished.append)
        cost_s = self._cost_s(task)
        call = _Call(
            end_s=self._now + min(cost_s, task.deadline_s),
            number=next(self._numbers),
            start_s=self._now,
            task=task,
            future=future,
            real=Future(),
            late=cost_s > task.deadline_s,
        )
        heapq.heappush(self._calls, call)
        if self._play is None and task.coroutine and not call.late:
            # Begun now, so that calls under way together can share the work, as they would.
            self._loop.begin(task, call.real, self.now)
            future.add_done_callback(lambda _: call.real.cancel())
        return future

    def wait(
        self,
        futures: Collection[Future[Outcome]],  # noqa: ARG002 - all that it submitted are awaited
        timeout_s: float | None = None,  # noqa: ARG002 - virtual time passes at once
    ) -> list[Future[Outcome]]:
        """Move the clock to the next end of a call."""
        while not self._finished:
            call = heapq.heappop(self._calls)
            if call.future.set_running_or_notify_cancel():
                self._now = call.end_s
                self._end(call)
        done = self._finished.copy()
        self._finished.clear()
        return done

    def now(self) -> float:
        """Return virtual seconds since the executor was made."""
        return self._now

    def close(self) -> None:
        """Cancel what has not ended, and close the loop."""
        self._loop.close()
        self._calls.clear()
        self._finished.clear()

    def _cost_s(self, task: Task) -> float:
        rng = random.Random(f"{self._seed}/{task.key}")
        if task.stage in self._costs:
            return self._costs[task.stage].sample(rng)
        profile = task.node.profile(task.domain)
        return profile.cpu_s + profile.latency.sample(rng)

    def _end(self, call: _Call) -> None:
        if call.late:
            settle(call.future, overdue(call.task))
            return
        self._call(call)
        error = call.real.exception()
        if error is not None:
            settle(call.future, error)
        else:
            outcome = call.real.result()
            settle(call.future, replace(outcome, start_s=call.start_s, end_s=self._now))

    def _call(self, call: _Call) -> None:
        if self._play is not None:
            settle(call.real, self._play(call.task))
        elif call.task.coroutine:
            while not call.real.done():
                self._loop.run()
        else:
            step(call.task, call.real, self.now)


def pretend(seed: int = 0) -> Play:
    """Return a stand-in for calling stages: items pass through, rounds are drawn.

    A trajectory takes as many rounds as the ``turns`` of the profile of the stage that ends the
    round say, drawn once for each trajectory. A filter keeps everything.
    """

    def play(task: Task) -> Outcome:
        value = task.args[0] if task.args else None
        if task.node.verb == "filter" or not task.rounds:
            return Outcome(value=value, verdict=True)
        rng = random.Random(f"{seed}/{task.stage}/{task.lineage}/{task.rounds[:-1]}")
        turns = task.node.profile(task.domain).turns.sample(rng)
        return Outcome(value=value, verdict=task.rounds[-1] + 1 >= turns)

    return play
