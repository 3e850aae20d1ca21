from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import pytest

from rlgraph import Batch, Distribution, Empirical, Fixed, Graph, LogNormal, Profile
from rlgraph.executors.simulated import SimulatedExecutor, pretend
from rlgraph.running.execution import Executor
from rlgraph.running.loop import Watch, run
from rlgraph.scheduling import Failure, Outcome, Task
from tests.playground import (
    JOBS,
    ONE_HANGS,
    Busy,
    Job,
    Play,
    Player,
    Trainer,
    game,
    jobs_through,
    jobs_through_async,
    left,
    nothing_left_behind,
    read_tasks,
    tasks_of,
)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield from nothing_left_behind()


SLOW_AND_FAST = {"default": Profile(cpu_s=1, latency=Fixed(2)), "hanging": Profile(cpu_s=10)}


def timeline(graph: Graph, executor: Executor) -> list[tuple[str, float, float]]:
    spans: list[tuple[str, float, float]] = []

    def note(task: Task, result: Outcome | Failure) -> None:
        spans.append((task.key, result.start_s, result.end_s))

    run(graph, executor, watches=[Watch(on_task=note)], error_budget=1)
    return spans


def test_a_simulated_call_costs_what_its_profile_says_by_domain() -> None:
    graph = jobs_through(lambda job: job, (Job(0), Job(1, "hanging")), SLOW_AND_FAST)
    assert timeline(graph, SimulatedExecutor()) == [
        ("stage/0/r/a1", 0.0, 3.0),
        ("stage/1/r/a1", 0.0, 10.0),
    ]


def test_a_simulated_call_costs_what_the_table_says_before_its_profile() -> None:
    graph = jobs_through(lambda job: job, JOBS[:1], SLOW_AND_FAST)
    executor = SimulatedExecutor({"stage": Fixed(7), "another": Fixed(1)})
    assert timeline(graph, executor) == [("stage/0/r/a1", 0.0, 7.0)]


def test_a_simulated_run_lasts_as_long_as_its_longest_chain() -> None:
    g = Graph("chain")
    jobs = g.source(lambda: JOBS).map(lambda job: job).named("one")
    jobs.map(lambda job: job).named("two").collect("done")
    executor = SimulatedExecutor({"one": Fixed(1.5), "two": Fixed(2.5)})
    assert [run(g, executor).seconds for _ in range(2)] == [4.0, 4.0]
    assert executor.now() == 8.0


def test_simulated_calls_of_one_object_wait_for_each_other() -> None:
    graph = jobs_through(Busy().plain, JOBS[:3], Profile(cpu_s=1))
    assert [span[1:] for span in timeline(graph, SimulatedExecutor())] == [(0, 1), (1, 2), (2, 3)]


def test_simulation_never_makes_a_call_cancelled_before_its_turn() -> None:
    calls: list[int] = []

    def work(job: Job) -> Job:
        calls.append(job.number)
        return job

    executor = SimulatedExecutor()
    futures = [executor.submit(task) for task in tasks_of(jobs_through(work), executor)]
    futures[0].cancel()
    while not all(future.done() for future in futures):
        executor.wait(futures)
    executor.close()
    assert calls == [1, 2, 3, 4, 5, 6, 7]


def test_equal_seeds_give_the_identical_schedule() -> None:
    costs: dict[str, Distribution] = {
        "Player.reply": LogNormal(1.0, 1.0),
        "act": Empirical((0.1, 0.5)),
    }

    def schedule(seed: int) -> list[tuple[str, float, float]]:
        spans: list[tuple[str, float, float]] = []

        def note(task: Task, result: Outcome | Failure) -> None:
            spans.append((task.key, result.start_s, result.end_s))

        graph = game(Player(), Trainer(), max_staleness=2)
        executor = SimulatedExecutor(costs, seed=seed)
        run(graph, executor, versions=4, watches=[Watch(on_task=note)])
        return spans

    assert schedule(1) == schedule(1)
    assert schedule(1) != schedule(2)


def test_a_simulated_deadline_is_one_of_the_virtual_clock() -> None:
    called: list[int] = []

    def work(job: Job) -> Job:
        called.append(job.number)
        return job

    needs = {"default": Profile(cpu_s=50, deadline_s=60), "hanging": Profile(cpu_s=90)}
    needs["hanging"] = replace(needs["hanging"], deadline_s=60)
    graph = jobs_through(work, ONE_HANGS, needs)
    result = run(graph, SimulatedExecutor())
    assert left(result) == {"consumed": 7, "timeout": 1}
    assert (result.seconds, sorted(called)) == (60.0, [0, 1, 2, 4, 5, 6, 7])


def test_a_simulated_coroutine_that_would_be_late_is_never_begun() -> None:
    called: list[int] = []

    async def work(job: Job) -> Job:
        called.append(job.number)
        return job

    needs = {"default": Profile(), "hanging": Profile(cpu_s=90, deadline_s=60)}
    graph = jobs_through_async(work, ONE_HANGS, needs)
    assert left(run(graph, SimulatedExecutor())) == {"consumed": 7, "timeout": 1}
    assert called == [0, 1, 2, 4, 5, 6, 7]


def test_the_virtually_slower_of_two_is_surplus() -> None:
    async def race(job: Job) -> Job:
        return job

    g = Graph("race")
    racing = g.source(lambda: JOBS[:1]).fan_out(1, redundancy=1).map_async(race)
    racing.named("race").group().collect("done")
    costs = Empirical(tuple(range(1, 1000)))
    result = run(g, SimulatedExecutor({"race": costs}))
    assert left(result) == {"consumed": 1, "surplus": 1}
    drawn = [costs.sample(random.Random(f"0/race/0.{member}/r/a1")) for member in range(2)]
    assert result.seconds == min(drawn) < max(drawn)


def uncallable(*_: object) -> NoReturn:
    raise AssertionError("called")


def test_pretending_calls_nothing_and_draws_the_rounds_from_the_profile() -> None:
    class Untouched(Trainer):
        def setup(self, device: str) -> None:
            uncallable()

        def init(self) -> int:
            uncallable()

        def step(self, batch: Batch[Play]) -> int:
            uncallable()

    def touched(play: Play) -> Play:
        uncallable()

    def refuse(play: Play) -> bool:
        uncallable()

    rounds = Counter[str]()
    trainer = Untouched()
    g = Graph("pretended")
    policy = g.latest("policy", init=trainer.init)
    ended = g.source(read_tasks, 1000).iterate(
        lambda live: live.map(touched).needs(Profile(turns=Empirical((1.0, 4.0)))),
        until=refuse,
        limit=9,
    )
    kept = ended.filter(refuse).named("keep")
    spoken = kept.map(lambda play, policy: play, policy=policy).named("read")
    spoken.batch(100).map(trainer.step).publish_to(policy)

    def count(task: Task, _: object) -> None:
        if task.stage == "touched":
            rounds[str(task.lineage)] += 1

    executor = SimulatedExecutor({"touched": Fixed(1)}, play=pretend(3))
    result = run(g, executor, versions=2, watches=[Watch(on_task=count)])
    assert left(result) == {"consumed": 200}
    assert result.seconds == 8.0
    taken = Counter(rounds.values())
    assert taken.keys() == {1, 4}
    assert min(taken.values()) > 70
