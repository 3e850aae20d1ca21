"""What pluggable means: every executor passes this suite, and test_executors_failing."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rlgraph import Graph, Profile, StageError, Stream
from rlgraph.executors.inline import InlineExecutor
from rlgraph.running.execution import Executor
from rlgraph.running.loop import Watch, run
from rlgraph.scheduling import Failure, Outcome, Task
from tests.playground import (
    JOBS,
    MAKERS,
    Busy,
    Job,
    Play,
    Player,
    Trainer,
    act,
    game,
    jobs_through,
    jobs_through_async,
    left,
    nothing_left_behind,
    numbers,
    published,
    read_tasks,
)


@pytest.fixture(params=MAKERS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made = MAKERS[request.param]()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield from nothing_left_behind()


# --- the same everywhere ---


def test_synchronous_versions_batches_and_exits_are_those_of_the_inline_executor(
    executor: Executor,
) -> None:
    events, result = published(executor)
    expected, reference = published(InlineExecutor())
    assert events == expected
    assert replace(result, seconds=0) == replace(reference, seconds=0)


def test_synchronous_batches_hold_the_groups_in_order(executor: Executor) -> None:
    events, result = published(executor, versions=2)
    assert [event.lineages for event in events] == [
        tuple((group, member) for group in groups for member in range(4))
        for groups in (range(4), range(4, 8))
    ]
    assert left(result) == {"consumed": 32}


def test_what_a_stage_gives_comes_out_in_the_order_of_the_source(executor: Executor) -> None:
    result = run(jobs_through(lambda job: job), executor)
    assert numbers(result) == list(range(8))
    assert left(result) == {"consumed": 8}


def test_any_callable_is_a_stage(executor: Executor) -> None:
    lock = threading.Lock()

    class Callables:
        def __call__(self, job: Job) -> Job:
            return job

        def method(self, job: Job) -> Job:
            return job

    def guarded(job: Job) -> Job:
        with lock:
            return job

    def shifted(by: int, job: Job) -> Job:
        return Job(job.number + by)

    g = Graph("callables")
    stream: Stream[Job] = g.source(lambda: JOBS)
    for stage in (Callables(), Callables().method, functools.partial(shifted, 10), guarded):
        stream = stream.map(stage)
    stream.collect("done")
    assert numbers(run(g, executor)) == list(range(10, 18))


def test_an_object_with_an_asynchronous_call_is_a_stage(executor: Executor) -> None:
    class Asynchronous:
        async def __call__(self, job: Job) -> Job:
            await asyncio.sleep(0)
            return job

    assert numbers(run(jobs_through_async(Asynchronous()), executor)) == list(range(8))


def test_odd_text_travels_unchanged(executor: Executor) -> None:
    odd = "lone \ud800, NUL \0, \u202e, " + "x" * 1_000_000
    result = run(jobs_through(lambda job: odd, JOBS[:1]), executor)
    assert result.outputs["done"] == (odd,)


def test_tokens_of_a_value_are_counted_for_its_trajectory(executor: Executor) -> None:
    tokens: list[int] = []

    def note(_: Task, result: Outcome | Failure) -> None:
        if isinstance(result, Outcome):
            tokens.append(result.tokens)

    graph = jobs_through(lambda job: Play(job.number, (1,) * job.number))
    run(graph, executor, watches=[Watch(on_task=note)])
    assert sorted(tokens) == list(range(8))


def test_no_call_ends_before_it_starts(executor: Executor) -> None:
    spans: list[tuple[float, float]] = []
    watch = Watch(on_task=lambda _, result: spans.append((result.start_s, result.end_s)))
    result = run(game(Player(), Trainer()), executor, versions=1, watches=[watch])
    assert all(start <= end for start, end in spans)
    assert max(end for _, end in spans) - min(start for start, _ in spans) <= result.seconds


# --- objects ---


def test_objects_are_set_up_once_in_two_runs(executor: Executor) -> None:
    player, trainer = Player(), Trainer()
    for _ in range(2):
        run(game(player, trainer), executor, versions=1)
    assert (player.devices, trainer.devices) == (["cpu"], ["cpu"])


def test_an_executor_may_be_started_twice(executor: Executor) -> None:
    executor.start(game(Player(), Trainer()))
    _, result = published(executor, versions=1)
    assert left(result) == {"consumed": 16}


def test_an_object_that_only_reads_a_source_or_releases_is_set_up(executor: Executor) -> None:
    class Reader(Player):
        def read(self) -> list[Play]:
            return [Play(0)]

    reader, player = Reader(), Player()
    g = Graph("setups")
    ended = g.source(reader.read).iterate(
        lambda live: live.map(act), until=lambda play: True, limit=2, release=player.release
    )
    ended.collect("done")
    run(g, executor)
    assert (reader.devices, player.devices, player.released) == (["cpu"], ["cpu"], [0])


def test_an_object_that_only_ends_the_rounds_is_set_up(executor: Executor) -> None:
    class Judge(Player):
        def is_over(self, play: Play) -> bool:
            return True

    judge, g = Judge(), Graph("setups")
    plays = g.source(read_tasks, 1)
    plays.iterate(lambda live: live.map(act), until=judge.is_over, limit=2).collect("done")
    run(g, executor)
    assert judge.devices == ["cpu"]


def test_what_a_setup_raises_is_raised_and_says_whose_it_was(executor: Executor) -> None:
    class Broken(Trainer):
        def setup(self, device: str) -> None:
            raise OSError("no such model")

    with pytest.raises(OSError, match="no such model") as raised:
        run(game(Player(), Broken()), executor, versions=1)
    assert raised.value.__notes__ == ["while Broken was set up on 'cpu'"]


def test_a_setup_that_failed_is_tried_again(executor: Executor) -> None:
    class Shaky(Trainer):
        def setup(self, device: str) -> None:
            super().setup(device)
            if len(self.devices) == 1:
                raise OSError("not yet")

    trainer = Shaky()
    graph = game(Player(), trainer)
    with pytest.raises(OSError, match="not yet"):
        run(graph, executor, versions=1)
    assert run(graph, executor, versions=1).versions == {"policy": 1}
    assert trainer.devices == ["cpu", "cpu"]


def test_an_init_that_fails_ends_the_run_with_its_cause(executor: Executor) -> None:
    class Empty(Trainer):
        def init(self) -> int:
            raise FileNotFoundError("weights")

    with pytest.raises(StageError, match="init policy failed: FileNotFoundError") as raised:
        run(game(Player(), Empty()), executor, versions=1)
    assert isinstance(raised.value.__cause__, FileNotFoundError)


def test_calls_of_one_object_never_overlap(executor: Executor) -> None:
    busy = Busy()
    g = Graph("busy")
    stream = g.source(lambda: list(map(Job, range(200))))
    stream.map(busy.plain).map_async(busy.coroutine).map(busy.plain).named("last").collect("done")
    assert len(run(g, executor).outputs["done"]) == 200
    assert busy.overlaps == 0


def test_as_many_coroutines_of_an_object_overlap_as_its_profile_allows(executor: Executor) -> None:
    class Meeting:
        def __init__(self) -> None:
            self.present: list[asyncio.Future[None]] = []
            self.most = 0

        async def join(self, job: Job) -> Job:
            """Wait for three others."""
            self.present.append(asyncio.get_running_loop().create_future())
            self.most = max(self.most, len(self.present))
            if len(self.present) < 4:
                await self.present[-1]
                return job
            while self.present:
                future = self.present.pop()
                if not future.done():
                    future.set_result(None)
            return job

    meeting = Meeting()
    graph = jobs_through_async(meeting.join, needs=Profile(concurrency=4))
    assert numbers(run(graph, executor)) == list(range(8))
    assert meeting.most == 4


# --- the end ---


def test_an_executor_may_be_closed_at_any_time(executor: Executor) -> None:
    executor.close()
    executor.start(jobs_through(lambda job: job))
    executor.close()
    executor.close()


def test_coroutines_that_run_when_it_is_closed_are_cancelled(executor: Executor) -> None:
    ended = threading.Event()

    async def wait(job: Job) -> Job:
        if job.number == 0:
            raise KeyboardInterrupt
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()
        return job

    with pytest.raises(KeyboardInterrupt):
        run(jobs_through_async(wait, JOBS[:2]), executor)
    assert ended.is_set()
