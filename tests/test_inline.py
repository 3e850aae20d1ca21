from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from rlgraph import Graph, Profile, StageTimeoutError
from rlgraph.executors.inline import InlineExecutor
from rlgraph.running.loop import Result, run
from rlgraph.running.stepping import SteppedLoop, step
from rlgraph.scheduling import Outcome, Task
from tests.playground import (
    BOUND_S,
    HANGING,
    JOBS,
    ONE_HANGS,
    Job,
    jobs_through,
    jobs_through_async,
    left,
    nothing_left_behind,
    numbers,
    tasks_of,
)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield from nothing_left_behind()


def test_inline_makes_plain_calls_in_the_order_of_their_submission() -> None:
    calls: list[tuple[str, int]] = []

    def first(job: Job) -> Job:
        calls.append(("first", job.number))
        return job

    def second(job: Job) -> Job:
        calls.append(("second", job.number))
        return job

    g = Graph("order")
    g.source(lambda: JOBS[:3]).map(first).map(second).collect("done")
    run(g, InlineExecutor())
    assert calls == [(name, n) for name in ("first", "second") for n in range(3)]


def test_inline_lets_coroutines_move_when_no_plain_call_is_left() -> None:
    calls: list[str] = []

    async def speak(job: Job) -> Job:
        calls.append("speak")
        return job

    def act(job: Job) -> Job:
        calls.append("act")
        return job

    g = Graph("order")
    jobs = g.source(lambda: JOBS[:2])
    jobs.map_async(speak).collect("spoken")
    jobs.map(act).collect("acted")
    run(g, InlineExecutor())
    assert calls == ["act", "act", "speak", "speak"]


def test_inline_never_makes_a_call_cancelled_before_its_turn() -> None:
    calls: list[int] = []

    def work(job: Job) -> Job:
        calls.append(job.number)
        return job

    executor = InlineExecutor()
    futures = [executor.submit(task) for task in tasks_of(jobs_through(work), executor)]
    futures[0].cancel()
    while not all(future.done() for future in futures):
        executor.wait(futures)
    executor.close()
    assert calls == [1, 2, 3, 4, 5, 6, 7]


def test_inline_calls_from_another_thread_have_no_deadline_but_run() -> None:
    results: list[Result] = []

    def work() -> None:
        graph = jobs_through(lambda job: job, ONE_HANGS, HANGING)
        results.append(run(graph, InlineExecutor()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(BOUND_S)
    assert numbers(results[0]) == list(range(8))


@pytest.fixture
def no_alarm() -> Iterator[None]:
    """Lay aside the alarm that limits the time of a test."""
    handler = signal.signal(signal.SIGALRM, signal.SIG_IGN)
    left = signal.setitimer(signal.ITIMER_REAL, 0)
    yield
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, *left)


@pytest.mark.usefixtures("no_alarm")
def test_inline_leaves_no_alarm_where_none_was() -> None:
    run(jobs_through(lambda job: job), InlineExecutor())
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_IGN


@pytest.mark.usefixtures("no_alarm")
@pytest.mark.parametrize("needs", [Profile(deadline_s=1e6), Profile(deadline_s=500)])
def test_inline_keeps_the_alarm_of_another(needs: Profile) -> None:
    signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    run(jobs_through(lambda job: job, needs=needs), InlineExecutor())
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    assert (900 < left <= 1000, interval) == (True, 7)


@pytest.mark.usefixtures("no_alarm")
def test_inline_lets_the_alarm_of_another_ring_during_a_call() -> None:
    rung = threading.Event()
    signal.signal(signal.SIGALRM, lambda *_: rung.set())
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    result = run(jobs_through(lambda job: rung.wait(BOUND_S), JOBS[:1]), InlineExecutor())
    assert result.outputs == {"done": (True,)}


def test_inline_deadline_is_not_swallowed_by_a_stage_that_catches_every_exception() -> None:
    wake = threading.Event()

    def stubborn(job: Job) -> Job:
        try:
            wake.wait(BOUND_S)
        except Exception:  # noqa: BLE001 - what the test is about
            return job
        return job

    needs = Profile(deadline_s=0.05)
    result = run(jobs_through(stubborn, JOBS[:1], needs), InlineExecutor(), error_budget=1)
    assert left(result) == {"timeout": 1}
    assert "in stubborn" in result.failures[0].trace


@pytest.mark.usefixtures("no_alarm")
def test_a_deadline_may_be_later_than_any_alarm_can_be_set_for() -> None:
    graph = jobs_through(lambda job: job, needs=Profile(deadline_s=1e300))
    assert numbers(run(graph, InlineExecutor())) == list(range(8))


class RingingFuture(Future[Outcome]):
    """Its time is up at the moment at which the call has ended, but not the bookkeeping."""

    def set_result(self, result: Outcome) -> None:
        signal.raise_signal(signal.SIGALRM)
        super().set_result(result)

    def set_exception(self, exception: BaseException | None) -> None:
        signal.raise_signal(signal.SIGALRM)
        super().set_exception(exception)


def only_task(stage: Callable[[Job], object]) -> Task:
    (task,) = tasks_of(jobs_through(stage, JOBS[:1]), InlineExecutor())
    return task


@pytest.mark.usefixtures("no_alarm")
def test_a_deadline_that_passes_while_the_result_is_put_down_changes_nothing() -> None:
    future = RingingFuture()
    step(only_task(lambda job: job), future, lambda: 0.0)
    assert future.result().value == JOBS[0]


@pytest.mark.usefixtures("no_alarm")
def test_a_deadline_that_passes_while_an_error_is_put_down_changes_nothing() -> None:
    def fail(job: Job) -> Job:
        raise ValueError("broken")

    future = RingingFuture()
    step(only_task(fail), future, lambda: 0.0)
    assert repr(future.exception()) == "ValueError('broken')"


@pytest.mark.usefixtures("no_alarm")
def test_a_deadline_that_passes_twice_interrupts_once() -> None:
    def ring(job: Job) -> Job:
        signal.raise_signal(signal.SIGALRM)
        return job

    future = RingingFuture()  # rings again while the timeout is put down
    step(only_task(ring), future, lambda: 0.0)
    assert isinstance(future.exception(), StageTimeoutError)


@pytest.mark.usefixtures("no_alarm")
@pytest.mark.parametrize("moment", [1, 2])
def test_a_deadline_that_passes_as_a_clock_is_read_is_a_timeout(moment: int) -> None:
    """The first reading is just before the stage is called, the second just after."""
    readings: list[float] = []

    def clock() -> float:
        readings.append(0.0)
        if len(readings) == moment:
            signal.raise_signal(signal.SIGALRM)
        return 0.0

    future = Future[Outcome]()
    step(only_task(lambda job: job), future, clock)
    assert isinstance(future.exception(), StageTimeoutError)


@pytest.mark.usefixtures("no_alarm")
def test_a_deadline_that_passes_before_the_call_begins_is_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, calls = signal.setitimer, list[int]()

    def ring_at_once(which: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        before = real(which, seconds, interval)
        signal.raise_signal(signal.SIGALRM)
        return before

    def work(job: Job) -> Job:
        calls.append(job.number)
        return job

    task, future = only_task(work), Future[Outcome]()
    monkeypatch.setattr(signal, "setitimer", ring_at_once)  # as it is set, and as it is taken off
    step(task, future, lambda: 0.0)
    monkeypatch.undo()
    assert isinstance(future.exception(), StageTimeoutError)
    assert calls == []


def test_a_deadline_counts_no_time_in_which_the_loop_did_not_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [100.0]
    monkeypatch.setattr(
        "rlgraph.running.stepping.time", SimpleNamespace(monotonic=lambda: now_s[0])
    )

    async def pause(job: Job) -> Job:
        for _ in range(3):
            await asyncio.sleep(0)
        return job

    (task,) = tasks_of(jobs_through_async(pause, JOBS[:1]), InlineExecutor())
    loop, future = SteppedLoop(), Future[Outcome]()
    loop.begin(task, future, lambda: 0.0)
    now_s[0] += 10 * task.deadline_s
    loop.run()
    loop.close()
    assert future.result().value == JOBS[0]
