"""Toy stages, and the executors that must run them all alike. A new executor adds a line to MAKERS.

Waits are events, never the clock; a deadline that must pass is that of one item's own domain.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from rlgraph import Batch, Graph, Latest, Profile, Stream
from rlgraph.executors.inline import InlineExecutor
from rlgraph.executors.simulated import SimulatedExecutor
from rlgraph.executors.thread import ThreadExecutor
from rlgraph.running.execution import Executor
from rlgraph.running.loop import Result, Watch, run
from rlgraph.scheduling import Published, Scheduler, Task
from rlgraph.scheduling.records import Event

MAKERS: dict[str, Callable[[], Executor]] = {
    "inline": InlineExecutor,
    "thread": functools.partial(ThreadExecutor, 4),
    "simulated": SimulatedExecutor,
}
BOUND_S = 20.0
"""Ends a test that would hang; nothing waits that long."""
HANGING = {"default": Profile(), "hanging": Profile(deadline_s=0.05)}


real_time = pytest.mark.parametrize("executor", ["inline", "thread"], indirect=True)
"""Where a call lasts as long as it lasts, not as long as its profile says."""


def nothing_left_behind() -> Iterator[None]:
    """Check around a test that no thread and no event loop outlives it."""
    before = threading.enumerate()
    yield
    for thread in threading.enumerate():
        if thread not in before:
            thread.join(BOUND_S)
    gc.collect()  # an event loop left open warns here, and a warning fails the test
    assert set(threading.enumerate()) <= set(before)


@dataclass(frozen=True)
class Job:
    number: int
    domain: str = "default"


JOBS = tuple(map(Job, range(8)))
ONE_HANGS = (*JOBS[:3], Job(3, "hanging"), *JOBS[4:])


@dataclass(frozen=True)
class Play:
    """A trajectory of a game that ends when a reply is a multiple of 5."""

    task: int
    replies: tuple[int, ...] = ()
    score: int = 0

    @property
    def num_tokens(self) -> int:
        return len(self.replies)


class Player:
    """Has a coroutine stage, and holds something for each trajectory until it is released."""

    def __init__(self) -> None:
        self.devices: list[str] = []
        self.released: list[int] = []

    def setup(self, device: str) -> None:
        self.devices.append(device)

    async def reply(self, play: Play, policy: Latest[int], seed: int) -> Play:
        for _ in range(seed % 3):  # they finish in another order than they began in
            await asyncio.sleep(0)
        return replace(play, replies=(*play.replies, (policy.value + seed) % 1000))

    def release(self, play: Play) -> None:
        self.released.append(play.task)


class Trainer:
    def __init__(self) -> None:
        self.devices: list[str] = []
        self.batches: list[Batch[Play]] = []
        self.weights = 0

    def setup(self, device: str) -> None:
        self.devices.append(device)

    def init(self) -> int:
        return self.weights

    def step(self, batch: Batch[Play]) -> int:
        self.batches.append(batch)
        self.weights = (self.weights * 31 + sum(play.score for play in batch)) % 10_007
        return self.weights


def read_tasks(count: int) -> Iterator[Play]:
    yield from map(Play, range(count))


def act(play: Play) -> Play:
    return replace(play, score=sum(play.replies))


def is_over(play: Play) -> bool:
    return play.replies[-1] % 5 == 0


def center(group: Batch[Play]) -> Batch[Play]:
    mean = sum(play.score for play in group) // len(group)
    return tuple(replace(play, score=play.score - mean) for play in group)


def game(player: Player, trainer: Trainer, max_staleness: int = 0) -> Graph:
    g = Graph("game")
    policy = g.latest("policy", init=trainer.init, max_staleness=max_staleness)

    def turn(live: Stream[Play]) -> Stream[Play]:
        spoken = live.map_async(player.reply, policy=policy, seed=g.seed)
        return spoken.needs(Profile(concurrency=16)).map(act)

    plays = g.source(read_tasks, 1000).fan_out(4)
    ended = plays.iterate(turn, until=is_over, limit=6, release=player.release)
    ended.group().map(center).unbatch().batch(16).map(trainer.step).publish_to(policy)
    return g


def jobs_through(
    stage: Callable[..., object],
    jobs: Sequence[Job] = JOBS,
    needs: Profile | dict[str, Profile] | None = None,
) -> Graph:
    """Put jobs through one plain stage, and collect what it gives as "done"."""
    g = Graph("jobs")

    def read() -> Sequence[Job]:
        return jobs

    g.source(read).map(stage).named("stage").needs(needs or Profile()).collect("done")
    return g


def jobs_through_async(
    stage: Callable[..., object],
    jobs: Sequence[Job] = JOBS,
    needs: Profile | dict[str, Profile] | None = None,
) -> Graph:
    g = Graph("jobs")

    def read() -> Sequence[Job]:
        return jobs

    stream: Stream[object] = g.source(read).map_async(stage)  # type: ignore[arg-type]
    stream.named("stage").needs(needs or Profile()).collect("done")
    return g


def tasks_of(graph: Graph, executor: Executor) -> list[Task]:
    """Start an executor, and return the first tasks of a graph for it."""
    executor.start(graph)
    state = Scheduler(graph)
    for index, node in state.sources.items():
        for job in node.call():
            state.feed(index, job)
    return state.ready()


def numbers(result: Result) -> list[int]:
    return [job.number for job in result.outputs["done"]]


def left(result: Result) -> dict[str, int]:
    return {name: count for name, count in result.exits.items() if count}


class Busy:
    """Notices when it is called while it is at work."""

    def __init__(self) -> None:
        self.at_work = threading.Lock()
        self.overlaps = 0

    def _enter(self) -> None:
        self.overlaps += not self.at_work.acquire(blocking=False)

    def _leave(self) -> None:
        if self.at_work.locked():
            self.at_work.release()

    def plain(self, job: Job) -> Job:
        self._enter()
        sum(range(3000))
        self._leave()
        return job

    async def coroutine(self, job: Job) -> Job:
        self._enter()
        await asyncio.sleep(0)
        self._leave()
        return job


def published(executor: Executor, versions: int = 5) -> tuple[list[Published], Result]:
    events: list[Published] = []

    def note(event: Event, _: Scheduler) -> None:
        if isinstance(event, Published):
            events.append(event)

    graph = game(Player(), Trainer())
    result = run(graph, executor, versions=versions, seed=7, watches=[Watch(on_event=note)])
    return events, result
