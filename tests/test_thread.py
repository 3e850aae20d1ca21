from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from rlgraph import Graph, Latest, Profile
from rlgraph.executors.thread import ThreadExecutor
from rlgraph.running.loop import Watch, run
from rlgraph.scheduling import Failure, Outcome
from tests.playground import (
    BOUND_S,
    JOBS,
    Job,
    Play,
    Player,
    Trainer,
    jobs_through,
    jobs_through_async,
    left,
    nothing_left_behind,
    numbers,
    read_tasks,
    tasks_of,
)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield from nothing_left_behind()


def test_threads_overlap_plain_calls_and_the_loop() -> None:
    meeting = threading.Barrier(3)

    def meet(job: Job) -> Job:
        meeting.wait(BOUND_S)
        return job

    async def meet_too(job: Job) -> Job:
        await asyncio.get_running_loop().run_in_executor(None, meeting.wait, BOUND_S)
        return job

    g = Graph("meeting")
    jobs = g.source(lambda: JOBS[:2])
    jobs.map(meet).collect("done")
    jobs.filter(lambda job: job.number == 0).map_async(meet_too).collect("met")
    assert numbers(run(g, ThreadExecutor(3))) == [0, 1]


def test_threads_must_be_some() -> None:
    with pytest.raises(ValueError, match="threads must be >= 1, got 0"):
        ThreadExecutor(0)


def test_a_call_that_outlives_the_run_is_abandoned_and_what_it_held_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlgraph.running.loop._GRACE_S", 0.05)
    monkeypatch.setattr("rlgraph.executors.thread._JOIN_S", 0.05)
    wake, begun, player, trainer = threading.Event(), threading.Event(), Player(), Trainer()
    results: list[Outcome | Failure] = []

    def work(play: Play, policy: Latest[int]) -> Play:
        if play.task == 1:
            begun.set()
            wake.wait(BOUND_S)
        else:
            begun.wait(BOUND_S)
        return play

    g = Graph("abandoned")
    policy = g.latest("policy", init=trainer.init, max_staleness=1)
    ended = g.source(read_tasks, 2).iterate(
        lambda live: live.map(work, policy=policy),
        until=lambda play: True,
        limit=1,
        release=player.release,
    )
    ended.batch(1, redundancy=1).map(trainer.step).publish_to(policy)
    watch = Watch(on_task=lambda task, result: results.append(result))
    result = run(g, ThreadExecutor(), versions=1, watches=[watch])
    wake.set()
    assert left(result) == {"consumed": 1, "cancelled": 1}
    assert sorted(player.released) == [0, 1]
    assert [r.error for r in results if isinstance(r, Failure)] == [
        "CancelledError: still running when the run had ended"
    ]
    assert result.failures == ()


def test_a_coroutine_that_blocks_the_loop_times_out_and_so_do_those_it_holds_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlgraph.executors.thread._JOIN_S", 0.05)
    wake = threading.Event()

    async def block(job: Job) -> Job:
        wake.wait(BOUND_S)
        return job

    needs = Profile(deadline_s=0.05)
    result = run(jobs_through_async(block, JOBS, needs), ThreadExecutor(), error_budget=1)
    wake.set()
    assert left(result) == {"timeout": 8}


def test_a_call_cancelled_before_its_thread_is_free_is_never_made() -> None:
    wake, calls = threading.Event(), []

    def work(job: Job) -> Job:
        calls.append(job.number)
        wake.wait(BOUND_S)
        return job

    executor = ThreadExecutor(1)
    first, second = tasks_of(jobs_through(work, JOBS[:2]), executor)
    begun = executor.submit(first)
    queued = executor.submit(second)
    assert queued.cancel()
    wake.set()
    done = {future for _ in range(2) for future in executor.wait([begun, queued])}
    executor.close()
    assert (done, calls) == ({begun, queued}, [0])


def test_what_is_queued_when_it_is_closed_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlgraph.executors.thread._JOIN_S", 0.05)
    begun, wake, calls = threading.Event(), threading.Event(), []

    def work(job: Job) -> Job:
        calls.append(job.number)
        begun.set()
        wake.wait(BOUND_S)
        return job

    executor = ThreadExecutor(1)
    futures = [executor.submit(task) for task in tasks_of(jobs_through(work), executor)]
    begun.wait(BOUND_S)
    executor.close()
    wake.set()
    futures[0].result(BOUND_S)
    assert all(future.cancelled() for future in futures[1:])
    assert calls == [0]


def test_a_coroutine_cancelled_before_it_began_is_never_made() -> None:
    calls: list[int] = []

    async def work(job: Job) -> Job:
        calls.append(job.number)
        return job

    executor = ThreadExecutor(1)
    first, second = tasks_of(jobs_through_async(work, JOBS[:2]), executor)
    futures = [executor.submit(first), executor.submit(second)]
    futures[0].cancel()
    while not futures[1].done():
        executor.wait(futures)
    executor.close()
    assert calls == [1]


def test_waiting_ends_when_its_time_is_up() -> None:
    wake = threading.Event()
    executor = ThreadExecutor(1)
    (task,) = tasks_of(jobs_through(lambda job: wake.wait(BOUND_S), JOBS[:1]), executor)
    future = executor.submit(task)
    assert executor.wait([future], 0.01) == []
    wake.set()
    assert executor.wait([future]) == [future]
    executor.close()
