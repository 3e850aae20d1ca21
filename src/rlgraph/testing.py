"""Helpers for tests of graphs: drive the scheduler without an executor, and make random graphs.

``drive`` completes running calls in any order one likes, so that every policy of the scheduler is
tested without a clock, a thread or a wait. Needs hypothesis only for ``random_graphs``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlgraph.errors import StallError
from rlgraph.graph import Feedback, Graph, Stream
from rlgraph.profile import DEFAULT_DOMAIN, Profile
from rlgraph.scheduling import (
    Event,
    Exited,
    Failure,
    Outcome,
    Output,
    Published,
    Scheduler,
    Snapshot,
    Task,
)
from rlgraph.scheduling.records import FailureKind

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

Order = random.Random | Callable[[Sequence[Task]], int]
"""Which of the running tasks ends next: one at random, or the one at the index returned."""
Behaviour = Callable[[Task], Outcome | Failure]
"""What becomes of a task."""
Look = Callable[[Scheduler], None]
"""Looks at the state after every event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """What happened while ``drive`` ran a graph."""

    scheduler: Scheduler
    """As it stood at the end."""
    tasks: tuple[Task, ...]
    """In the order in which they were handed out."""
    events: tuple[Event, ...]

    @property
    def keys(self) -> list[str]:
        """Return the keys of the tasks, in the order in which they were handed out."""
        return [task.key for task in self.tasks]

    @property
    def published(self) -> list[Published]:
        """Return the versions."""
        return [event for event in self.events if isinstance(event, Published)]

    @property
    def exited(self) -> list[Exited]:
        """Return how trajectories left."""
        return [event for event in self.events if isinstance(event, Exited)]

    @property
    def outputs(self) -> list[Output]:
        """Return what came to a ``collect``."""
        return [event for event in self.events if isinstance(event, Output)]


def call_it(task: Task) -> Outcome:
    """Really call the function of a task; what it raises is raised."""
    value = task.call(*task.args, **task.kwargs)
    if task.coroutine:
        value = asyncio.run(value)
    return Outcome(value=value, verdict=task.until is not None and bool(task.until(value)))


def drive(
    graph: Graph,
    *,
    order: Order,
    outcomes: Behaviour = call_it,
    watch: Look | None = None,
    seed: int = 0,
    versions: int | None = None,
    in_flight: int = 1024,
    refills: int = 10,
    resume: Snapshot | None = None,
) -> Driven:
    """Run a graph to its end, one call after the other.

    Raises ``StallError`` where nothing runs and nothing can start though the run is not finished,
    and ``StarvedError`` as ``run`` would.
    """
    scheduler = Scheduler(
        graph, seed=seed, versions=versions, in_flight=in_flight, refills=refills, resume=resume
    )
    pull = _Pull(scheduler, resume or Snapshot())
    choose = _at_random(order) if isinstance(order, random.Random) else order
    running: list[Task] = []
    cancelled: set[Task] = set()
    tasks: list[Task] = []
    events: list[Event] = []
    while not scheduler.finished:
        pull.feed_all()
        ready = scheduler.ready()
        tasks += ready
        running += ready
        cancelled.update(scheduler.cancelled())
        if running:
            task = running.pop(choose(running))
            unwanted = task in cancelled
            outcome = _failure(task, "cancelled") if unwanted else outcomes(task)
            if isinstance(outcome, Failure):
                scheduler.failed(task, outcome)
            else:
                scheduler.done(task, outcome)
        elif not ready and not scheduler.hungry() and not scheduler.finished:
            raise StallError("nothing runs and nothing can start\n" + scheduler.story())
        events += scheduler.events()
        if watch is not None:
            watch(scheduler)
    events += scheduler.events()
    return Driven(scheduler=scheduler, tasks=tuple(tasks), events=tuple(events))


def _at_random(rng: random.Random) -> Callable[[Sequence[Task]], int]:
    return lambda running: rng.randrange(len(running))


class _Pull:
    """The items of the sources: first those that an interrupted run left unfinished."""

    def __init__(self, scheduler: Scheduler, resume: Snapshot) -> None:
        self.scheduler = scheduler
        self.items: dict[int, Iterator[tuple[int | None, Any]]] = {}
        for index, node in scheduler.sources.items():
            items = list(node.call(*node.args, **node.kwargs))
            again = [(number, items[number]) for number in resume.unfinished.get(node.name, ())]
            fresh = [(None, item) for item in items[resume.cursors.get(node.name, 0) :]]
            self.items[index] = iter([*again, *fresh])

    def feed_all(self) -> None:
        """Feed every source until it is no longer hungry."""
        while hungry := self.scheduler.hungry():
            for source in hungry:
                found = next(self.items[source], None)
                if found is None:
                    self.scheduler.exhausted(source)
                    continue
                index, value = found
                domain = getattr(value, "domain", DEFAULT_DOMAIN)
                self.scheduler.feed(source, value, domain=domain, index=index)


def faulty(
    seed: int, *, failures: float = 0.0, timeouts: float = 0.0, kept: float = 1.0, done: float = 0.3
) -> Behaviour:
    """Make a behaviour in which the value of every call is the lineage of its item.

    Calls fail with the given probabilities, filters keep with probability ``kept``, an ``iterate``
    ends after a round with probability ``done``. What happens to a task depends on the seed and
    the task's key only, whatever the order of events.
    """

    def behave(task: Task) -> Outcome | Failure:
        rng = random.Random(f"{seed} {task.key}")
        if task.item is None:
            return Outcome(value=task.lineage)
        chance = rng.random()
        if chance < failures:
            return _failure(task, "error")
        if chance < failures + timeouts:
            return _failure(task, "timeout")
        value: Any = task.lineage
        if task.node.name.startswith("split"):
            value = (task.lineage,) * int(task.node.name.split()[1])
        likely = kept if task.node.verb == "filter" else done
        return Outcome(value=value, verdict=rng.random() < likely)

    return behave


def _failure(task: Task, kind: FailureKind) -> Failure:
    return Failure(stage=task.stage, key=task.key, kind=kind, error="injected")


@dataclass(frozen=True, slots=True)
class Numbered:
    """An item of a random graph's source."""

    number: int
    domain: str


def numbered(count: int, domains: int) -> list[Numbered]:
    """List the items of a random graph's source."""
    return [Numbered(number, f"domain {number % domains}") for number in range(count)]


def _init() -> Any:
    return 0


def _work(item: Any, policy: Any = None, bank: Any = None, seed: int = 0) -> Any:  # noqa: ARG001 - a stage
    return item


def _split(item: Any) -> tuple[Any, ...]:
    return (item,)


def _is(item: Any) -> bool:  # noqa: ARG001 - a stage
    return True


class _Machine:
    """An object with state, shared by stages."""

    def work(self, item: Any, policy: Any = None, bank: Any = None, seed: int = 0) -> Any:  # noqa: ARG002 - a stage
        return item


def random_graphs(
    *, staleness: int = 3, redundancy: int = 2, feedbacks: Sequence[int] = (0, 1, 2)
) -> SearchStrategy[Graph]:
    """Return a hypothesis strategy of valid graphs made of all verbs.

    Drive them with ``faulty`` outcomes: their functions do nothing. ``staleness`` and
    ``redundancy`` are the largest, ``feedbacks`` are the counts to choose from.
    """
    from hypothesis import strategies as st

    @st.composite
    def graphs(draw: DrawFn) -> Graph:
        return _Random(draw, staleness, redundancy, draw(st.sampled_from(feedbacks))).graph()

    return graphs()


class _Random:
    """One random graph in the making."""

    def __init__(self, draw: DrawFn, staleness: int, redundancy: int, feedbacks: int) -> None:
        self.draw = draw
        self.built = Graph("random")
        self.machine = _Machine()
        self.concurrency = self.number(1, 3)
        self.redundancy = redundancy
        self.feedbacks: dict[str, Feedback[Any]] = {
            name: self.built.latest(
                name,
                init=_init,
                max_staleness=self.number(0, staleness),
                when_stale="wait" if self.number(0, 2) == 0 else "drop",
            )
            for name in ("policy", "bank")[:feedbacks]
        }
        self.stages = 0

    def number(self, low: int, high: int) -> int:
        """Draw a number."""
        from hypothesis import strategies as st

        return self.draw(st.integers(low, high))

    def graph(self) -> Graph:
        """Build it."""
        count, domains = self.number(0, 30), self.number(1, 3)
        trunk = self.built.source(numbered, count, domains)
        stream: Stream[Any] = self.step(trunk, read=True)
        for _ in range(self.number(0, 2)):
            stream = self.segment(stream, depth=0)
        side = self.step(stream) if self.number(0, 3) == 0 or "bank" in self.feedbacks else None
        self.tail(stream, "policy")
        if side is not None:
            self.tail(side, "bank")
        return self.built

    def step(self, stream: Stream[Any], *, read: bool = False) -> Stream[Any]:
        """Add a call, perhaps of the machine, perhaps of one that reads a feedback."""
        self.stages += 1
        ports: dict[str, Any] = {
            name: feedback
            for name, feedback in self.feedbacks.items()
            if read or self.number(0, 3) == 0
        }
        if self.number(0, 2) == 0:
            ports["seed"] = self.built.seed
        work = self.machine.work if self.number(0, 3) == 0 else _work
        profile = Profile(attempts=self.number(1, 2), concurrency=self.concurrency)
        return stream.map(work, **ports).needs(profile).named(f"step {self.stages}")

    def segment(self, stream: Stream[Any], *, depth: int) -> Stream[Any]:
        """Add one construct that gives one item for each it takes."""
        nested = (self.fanned, self.joined, self.iterated, self.regrouped)
        kind = self.number(0, 1 + len(nested) if depth < 2 else 1)
        if kind == 0:
            return self.step(stream)
        return self.filtered(stream) if kind == 1 else nested[kind - 2](stream, depth + 1)

    def filtered(self, stream: Stream[Any]) -> Stream[Any]:
        """Add a filter."""
        self.stages += 1
        return self.step(stream.filter(_is).named(f"filter {self.stages}"))

    def fanned(self, stream: Stream[Any], depth: int) -> Stream[Any]:
        """Add a fan_out and the group that closes it."""
        extra = self.number(0, self.redundancy)
        members = self.step(stream.fan_out(self.number(1, 3), redundancy=extra))
        return self.step(self.segment(members, depth=depth).group())

    def regrouped(self, stream: Stream[Any], depth: int) -> Stream[Any]:
        """Add an unbatch and the group that closes it."""
        parts = self.step(self.split(stream, self.number(1, 3)))
        return self.step(self.segment(parts, depth=depth).group())

    def joined(self, stream: Stream[Any], depth: int) -> Stream[Any]:
        """Add two branches and the join that closes them."""
        left, right = self.segment(stream, depth=depth), self.segment(stream, depth=depth)
        return self.step(left.join(right))

    def iterated(self, stream: Stream[Any], depth: int) -> Stream[Any]:
        """Add an iterate with a release."""
        self.stages += 1
        name = f"loop {self.stages}"

        def body(inner: Stream[Any]) -> Stream[Any]:
            return self.step(self.segment(inner, depth=depth))

        limit = self.number(1, 3)
        return stream.iterate(body, until=_is, limit=limit, release=_is).named(name)

    def split(self, stream: Stream[Any], size: int) -> Stream[Any]:
        """Take items apart."""
        self.stages += 1
        return stream.map(_split).named(f"split {size} {self.stages}").unbatch(size)

    def tail(self, stream: Stream[Any], name: str) -> None:
        """Batch what comes, perhaps in parts, perhaps twice, and end the stream."""
        unit = self.number(0, 3)
        if unit:
            stream = self.step(self.split(stream, unit))
        extra = self.number(0, self.redundancy)
        if name in self.feedbacks or self.number(0, 1):
            size = max(unit, 1) * self.number(1, 3)
            stream = self.step(stream.batch(size, redundancy=extra))
            if self.number(0, 3) == 0:
                stream = self.step(stream.batch(self.number(1, 2)))
        if name in self.feedbacks:
            stream.publish_to(self.feedbacks[name])
        else:
            stream.collect(name)
