"""What every executor makes of stages that fail, hang or are no longer wanted."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass

import pytest

from rlgraph import Graph, Profile, Stream
from rlgraph.running.execution import Executor
from rlgraph.running.loop import run
from tests.playground import (
    BOUND_S,
    HANGING,
    JOBS,
    MAKERS,
    ONE_HANGS,
    Job,
    Play,
    Player,
    act,
    jobs_through,
    jobs_through_async,
    left,
    nothing_left_behind,
    numbers,
    read_tasks,
    real_time,
)


@pytest.fixture(params=MAKERS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    made = MAKERS[request.param]()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield from nothing_left_behind()


# --- failures ---


def test_a_failure_names_the_users_file_and_line(executor: Executor) -> None:
    def check(job: Job) -> Job:
        if job.number == 3:
            raise ValueError("odd one out")
        return job

    result = run(jobs_through(check), executor)
    (failure,) = result.failures
    line = check.__code__.co_firstlineno + 2
    assert f'{__file__}", line {line}, in check' in failure.trace
    assert (failure.stage, failure.kind) == ("stage", "error")
    assert failure.error == "ValueError: odd one out"
    assert numbers(result) == [0, 1, 2, 4, 5, 6, 7]


def test_a_coroutine_that_fails_names_the_users_file_and_line(executor: Executor) -> None:
    async def check(job: Job) -> Job:
        await asyncio.sleep(0)
        if job.number == 3:
            raise ValueError("odd one out")
        return job

    result = run(jobs_through_async(check), executor)
    line = check.__code__.co_firstlineno + 3
    assert f'{__file__}", line {line}, in check' in result.failures[0].trace
    assert left(result) == {"consumed": 7, "failed": 1}


def test_an_error_that_cannot_be_shown_is_a_failure_all_the_same(executor: Executor) -> None:
    class CarelessError(Exception):
        def __str__(self) -> str:
            raise AttributeError("no message")

    def careless(job: Job) -> Job:
        raise CarelessError

    result = run(jobs_through(careless), executor, error_budget=1)
    assert {failure.error for failure in result.failures} == {
        "CarelessError: <exception str() failed>"
    }


def test_a_predicate_that_fails_is_a_failure_of_its_stage(executor: Executor) -> None:
    def unsure(play: Play) -> bool:
        raise ValueError("over?")

    g = Graph("unsure")
    ended = g.source(read_tasks, 2).iterate(lambda live: live.map(act), until=unsure, limit=2)
    ended.collect("done")
    result = run(g, executor, error_budget=1)
    assert [(f.stage, f.error) for f in result.failures] == [("act", "ValueError: over?")] * 2


def test_a_call_that_fails_is_made_again_as_often_as_its_profile_says(executor: Executor) -> None:
    calls: list[int] = []

    def flaky(job: Job) -> Job:
        calls.append(job.number)
        if calls.count(job.number) < 3:
            raise ConnectionError("try again")
        return job

    result = run(jobs_through(flaky, needs=Profile(attempts=3)), executor)
    assert numbers(result) == list(range(8))
    assert sorted(calls) == sorted([*range(8)] * 3)
    assert len(result.failures) == 16


def test_a_coroutine_returned_by_a_plain_stage_is_refused(executor: Executor) -> None:
    async def later(job: Job) -> Job:
        return job

    result = run(jobs_through(lambda job: later(job), JOBS[:1]), executor, error_budget=1)
    assert result.failures[0].error == (
        "TypeError: stage 'stage' returned a coroutine that nobody awaits; to mend: use "
        ".map_async(...)"
    )


def test_a_generator_returned_by_a_stage_is_refused(executor: Executor) -> None:
    result = run(jobs_through(lambda job: (n for n in [1]), JOBS[:1]), executor, error_budget=1)
    assert result.failures[0].error == (
        "TypeError: stage 'stage' returned a generator, which cannot travel; to mend: return a "
        "tuple, and follow the stage with .unbatch(size)"
    )


def test_a_coroutine_that_cancels_itself_has_failed(executor: Executor) -> None:
    async def give_up(job: Job) -> Job:
        if job.number == 3:
            raise asyncio.CancelledError("of its own accord")
        return job

    result = run(jobs_through_async(give_up), executor)
    assert left(result) == {"consumed": 7, "failed": 1}
    assert result.failures[0].error == "CancelledError: of its own accord"


def test_a_time_limit_of_the_stage_itself_is_a_timeout_with_its_own_words(
    executor: Executor,
) -> None:
    async def fetch(job: Job) -> Job:
        if job.number == 3:
            raise TimeoutError("no answer from the server")
        return job

    result = run(jobs_through_async(fetch), executor)
    assert left(result) == {"consumed": 7, "timeout": 1}
    assert result.failures[0].error == "TimeoutError: no answer from the server"


def test_a_stage_that_raises_the_cancellation_of_a_future_has_failed(executor: Executor) -> None:
    def give_up(job: Job) -> Job:
        if job.number == 3:
            raise CancelledError("of its own accord")
        return job

    result = run(jobs_through(give_up), executor)
    assert left(result) == {"consumed": 7, "failed": 1}
    assert [(f.kind, f.error) for f in result.failures] == [
        ("error", "CancelledError: of its own accord")
    ]


def test_a_stage_that_exits_has_failed_and_the_run_goes_on(executor: Executor) -> None:
    def leave(job: Job) -> Job:
        if job.number == 3:
            sys.exit(0)
        return job

    result = run(jobs_through(leave), executor)
    assert left(result) == {"consumed": 7, "failed": 1}
    assert [(f.kind, f.error) for f in result.failures] == [("error", "SystemExit: 0")]


def test_a_coroutine_that_exits_has_failed_and_the_run_goes_on(executor: Executor) -> None:
    async def leave(job: Job) -> Job:
        if job.number == 3:
            sys.exit(0)
        return job

    result = run(jobs_through_async(leave), executor)
    assert left(result) == {"consumed": 7, "failed": 1}


def test_a_stage_that_asks_to_stop_everything_does(executor: Executor) -> None:
    def stop(job: Job) -> Job:
        if job.number == 3:
            raise KeyboardInterrupt
        return job

    with pytest.raises(KeyboardInterrupt):
        run(jobs_through(stop), executor)


def test_a_coroutine_that_asks_to_stop_everything_does(executor: Executor) -> None:
    async def stop(job: Job) -> Job:
        if job.number == 3:
            raise KeyboardInterrupt
        return job

    with pytest.raises(KeyboardInterrupt):
        run(jobs_through_async(stop), executor)


def test_what_an_interrupted_run_had_begun_never_gets_into_the_next(executor: Executor) -> None:
    calls: list[Job] = []

    def stop(job: Job) -> Job:
        calls.append(job)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return job

    with pytest.raises(KeyboardInterrupt):
        run(jobs_through(stop, list(map(Job, range(1000)))), executor)
    del calls[1:]
    result = run(jobs_through(stop, [Job(2000)]), executor)
    assert numbers(result) == [2000]
    assert [job.number for job in calls[1:]] == [2000]


# --- deadlines and cancellation ---


def test_a_call_that_hangs_times_out_and_others_go_on(executor: Executor) -> None:
    wake = threading.Event()

    def wait(job: Job) -> Job:
        if job.domain == "hanging":
            wake.wait(BOUND_S)
        return job

    result = run(jobs_through(wait, ONE_HANGS, HANGING), executor)
    wake.set()
    assert numbers(result) == [0, 1, 2, 4, 5, 6, 7]
    assert left(result) == {"consumed": 7, "timeout": 1}
    (failure,) = result.failures
    assert (failure.kind, failure.key) == ("timeout", "stage/3/r/a1")
    assert "longer than its deadline of 0.05 s on stage/3/r/a1" in failure.error


def test_a_coroutine_that_hangs_times_out_and_others_go_on(executor: Executor) -> None:
    gone = asyncio.Event()

    async def wait(job: Job) -> Job:
        if job.domain == "hanging":
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                gone.set()
        if job.number == 7:
            await gone.wait()  # the run cannot end before the call is cancelled
        return job

    result = run(jobs_through_async(wait, ONE_HANGS, HANGING), executor)
    assert numbers(result) == [0, 1, 2, 4, 5, 6, 7]
    assert left(result) == {"consumed": 7, "timeout": 1}


def test_a_coroutine_that_will_not_be_cancelled_times_out_all_the_same(executor: Executor) -> None:
    refused: list[int] = []

    async def wait(job: Job) -> Job:
        if job.domain == "hanging":
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                refused.append(job.number)
                await asyncio.sleep(0)
        return job

    result = run(jobs_through_async(wait, ONE_HANGS, HANGING), executor)
    assert left(result) == {"consumed": 7, "timeout": 1}
    assert refused == [3]


def test_the_place_of_a_call_that_hung_can_be_used_again(executor: Executor) -> None:
    wake = threading.Event()

    class Desk:
        def serve(self, job: Job) -> Job:
            if job.domain == "hanging":
                wake.wait(BOUND_S)
            return job

    hanging = [Job(n, "hanging") for n in range(6)]  # more than there are threads
    graph = jobs_through(Desk().serve, [*hanging, *map(Job, range(6, 9))], HANGING)
    result = run(graph, executor, error_budget=1)
    wake.set()
    assert numbers(result) == [6, 7, 8]
    assert left(result) == {"consumed": 3, "timeout": 6}


def test_a_call_that_hung_is_made_again_where_attempts_are_left(executor: Executor) -> None:
    wake, calls = threading.Event(), []

    def wait(job: Job) -> Job:
        calls.append(job)
        if len(calls) == 1:
            wake.wait(BOUND_S)
        return job

    needs = {"default": Profile(), "hanging": Profile(deadline_s=0.05, attempts=2)}
    result = run(jobs_through(wait, [Job(0, "hanging")], needs), executor)
    wake.set()
    assert numbers(result) == [0]
    assert [failure.key for failure in result.failures] == ["stage/0/r/a1"]


@real_time
def test_a_surplus_coroutine_is_cancelled(executor: Executor) -> None:
    cancelled: list[int] = []

    async def race(job: Job, seed: int) -> Job:
        runners.append(seed)
        if len(runners) == 1:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cancelled.append(seed)
                raise
        return job

    runners: list[int] = []
    g = Graph("race")
    racing = g.source(lambda: JOBS[:1]).fan_out(1, redundancy=1).map_async(race, seed=g.seed)
    racing.group().collect("done")
    result = run(g, executor)
    assert result.outputs["done"] == ((JOBS[0],),)
    assert left(result) == {"consumed": 1, "surplus": 1}
    assert cancelled == runners[:1]


def test_every_trajectory_that_entered_is_released_once_however_it_left(executor: Executor) -> None:
    wake, player = threading.Event(), Player()

    @dataclass(frozen=True)
    class Odd(Play):
        @property
        def domain(self) -> str:
            return "hanging" if self.task == 2 else "default"

    def work(play: Play) -> Play:
        if play.task == 1:
            raise ValueError("broken")
        if play.task == 2:
            wake.wait(BOUND_S)
        return play

    g = Graph("releases")
    plays: Stream[Play] = g.source(lambda: [Odd(n) for n in range(5)])
    ended = plays.iterate(
        lambda live: live.map(work).needs(HANGING),
        until=lambda play: play.task == 3,
        limit=2,
        release=player.release,
    )
    ended.filter(lambda play: play.task != 4).collect("done")
    result = run(g, executor, error_budget=1)
    wake.set()
    assert left(result) == {"consumed": 2, "failed": 1, "timeout": 1, "filtered": 1}
    assert sorted(player.released) == [0, 1, 2, 3, 4]
