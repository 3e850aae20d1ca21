from __future__ import annotations

import gc
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rlgraph import Graph, GraphError, Latest, Profile, RunError, StallError, Stream
from rlgraph.executors.inline import InlineExecutor
from rlgraph.executors.thread import ThreadExecutor
from rlgraph.running.execution import Executor
from rlgraph.running.loop import Watch, run
from rlgraph.scheduling import Exited, Failure, Outcome, Published, Scheduler, Task
from rlgraph.scheduling.records import Event
from tests.training import (
    BOUND_S,
    StoppedError,
    Trainer,
    collecting,
    executors,
    left,
    log,
    same,
    trained,
    training,
)

# --- sources and versions ---


def test_an_empty_source_is_an_error() -> None:
    with pytest.raises(RunError, match="source 'tasks' gave no item"):
        run(training(Trainer(), list), InlineExecutor(), versions=1)


def test_a_source_that_breaks_ends_the_run_and_says_where() -> None:
    def read() -> Iterator[int]:
        yield from range(5)
        raise ValueError("line 6 of tasks.jsonl: not JSON")

    trainer = Trainer()
    with pytest.raises(ValueError, match=r"line 6 of tasks\.jsonl: not JSON") as raised:
        run(training(trainer, read), InlineExecutor(), versions=9)
    assert raised.value.__notes__ == ["while source 'tasks' was read, after 5 items"]
    assert trainer.batches == [(0, 0, 1, 1), (2, 2, 3, 3)]


def test_a_run_ends_at_the_version_asked_for() -> None:
    trainer = Trainer()
    result = run(training(trainer), InlineExecutor(), versions=3)
    assert result.versions == {"policy": 3}
    assert result.shortfall == ""
    assert result.lags == {"policy": {0: 12}}
    assert len(trainer.batches) == 3


def test_a_run_without_versions_ends_with_its_sources() -> None:
    result = run(training(Trainer(), lambda: range(5)), InlineExecutor())
    assert (result.versions, result.shortfall) == ({"policy": 2}, "")
    assert left(result) == {"consumed": 8, "surplus": 2}


def test_a_run_whose_sources_end_too_early_says_what_is_missing() -> None:
    result = run(training(Trainer(), lambda: range(5)), InlineExecutor(), versions=7)
    assert result.versions == {"policy": 2}
    assert result.shortfall == (
        "the sources ended at version 2 of 'policy', 7 were asked for; to mend: give the source "
        "more items, or ask for fewer versions"
    )


def test_equal_prompts_are_samples_of_their_own() -> None:
    g = Graph("duplicates")
    seeds: list[int] = []

    def play(prompt: str, seed: int) -> str:
        seeds.append(seed)
        return prompt

    prompts = g.source(lambda: ["same"] * 3).fan_out(4).map(play, seed=g.seed)
    prompts.group().collect("groups")
    result = run(g, InlineExecutor())
    assert result.outputs == {"groups": (("same",) * 4,) * 3}
    assert (left(result), len(set(seeds))) == ({"consumed": 12}, 12)


def test_outputs_come_in_the_order_of_the_source_whoever_finished_first() -> None:
    later = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            later.wait(BOUND_S)
        elif item == 7:
            later.set()
        return item

    result = run(collecting(work), ThreadExecutor(2))
    assert result.outputs == {"done": tuple(range(8))}


def test_the_domain_of_an_item_is_its_attribute_where_that_is_text() -> None:
    class Task:
        def __init__(self, domain: object) -> None:
            self.domain = domain

    told = log()
    g = Graph("domains")
    g.source(lambda: [Task("maze"), Task(3)]).map(lambda task: task).named("stage").collect("done")
    run(g, InlineExecutor(), watches=[told.watch])
    assert [e.domain for e in told.events if isinstance(e, Exited)] == ["maze", "default"]


# --- watches ---


class Recording(InlineExecutor):
    """Notes when a task is submitted."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__()
        self.notes = notes

    def submit(self, task: Task) -> Any:
        self.notes.append("submit")
        return super().submit(task)


def test_a_publish_is_told_before_anything_new_is_submitted() -> None:
    notes: list[str] = []

    def on_task(task: Task, _: Outcome | Failure) -> None:
        if task.stage == "Trainer.step":
            notes.append("trained")

    def on_event(event: Event, _: Scheduler) -> None:
        if isinstance(event, Published):
            notes.append("published")

    watch = Watch(on_task=on_task, on_event=on_event)
    graph = training(Trainer(), max_staleness=1)
    run(graph, Recording(notes), versions=4, watches=[watch])
    trained = [i for i, note in enumerate(notes) if note == "trained"]
    assert len(trained) == 4
    assert [notes[i + 1] for i in trained] == ["published"] * 4


def test_every_call_and_every_exit_is_told_once() -> None:
    told = log()
    graph = training(Trainer(), max_staleness=2)
    result = run(graph, ThreadExecutor(), versions=5, watches=[told.watch])
    assert told.exits == left(result)
    assert sum(told.exits.values()) == result.launched
    keys = [task.key for task, _ in told.tasks]
    assert len(set(keys)) == len(keys)


# --- the end ---


class Counting(InlineExecutor):
    closed = 0

    def close(self) -> None:
        super().close()
        self.closed += 1


def test_a_wrong_graph_is_refused_before_anything_starts() -> None:
    class Unstarted(InlineExecutor):
        def start(self, graph: Graph) -> None:
            raise AssertionError("started")

    g = Graph("orphan")
    g.source(lambda: range(3))
    with pytest.raises(GraphError, match="nothing takes what"):
        run(g, Unstarted())


def test_the_executor_is_closed_when_the_run_ends() -> None:
    executor = Counting()
    run(collecting(same), executor)
    assert executor.closed == 1


def test_the_executor_is_closed_when_a_watch_raises() -> None:
    def stop(event: Event, _: Scheduler) -> None:
        raise StoppedError

    executor = Counting()
    with pytest.raises(StoppedError):
        run(collecting(same), executor, watches=[Watch(on_event=stop)])
    assert executor.closed == 1


@executors
def test_an_interrupt_ends_the_run(make: Callable[[], Executor]) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(item: int) -> int:
        if item == 3:
            signal.pthread_kill(main, signal.SIGINT)
        return item

    gc.disable()  # hypothesis listens to it, and an interrupt that lands there is swallowed
    # Where the tests were started in the background, interrupts are ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(collecting(interrupt, 1_000_000), make())
    finally:
        signal.signal(signal.SIGINT, before)
        gc.enable()


def test_a_run_in_which_nothing_can_move_names_who_waits_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Scheduler, "ready", lambda self: [])
    message = "nothing runs and nothing can start:\n    2 trajectories under way:\n    0 at 'stage'"
    with pytest.raises(StallError, match=message):
        run(collecting(same, 2), InlineExecutor())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error_budget": 1.1}, "error_budget must be a share from 0 to 1, got 1.1"),
        ({"error_budget": -0.1}, "error_budget must be a share from 0 to 1, got -0.1"),
        ({"error_budget": float("nan")}, "error_budget must be a share from 0 to 1, got nan"),
        ({"versions": 0}, "versions must be >= 1, or None for all, got 0"),
        ({"in_flight": 0}, "in_flight must be >= 1, got 0"),
        ({"refills": -1}, "refills must be >= 0, got -1"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(training(Trainer()), InlineExecutor(), **options)


def test_versions_of_a_graph_that_has_none_are_refused() -> None:
    with pytest.raises(ValueError, match="versions=3 of what\\? graph 'collecting' has no latest"):
        run(collecting(same), InlineExecutor(), versions=3)


# --- all of it at once ---


class Environments:
    """Holds one environment a trajectory, and knows which are open."""

    def __init__(self) -> None:
        self.opened = Counter[int]()
        self.closed = Counter[int]()

    def open(self, item: int, seed: int) -> int:
        self.opened[seed] += 1
        return seed

    def close(self, item: int) -> None:
        self.closed[item] += 1


@pytest.mark.slow
def test_two_thousand_trajectories_with_failures_add_up() -> None:
    trainer, environments = Trainer(), Environments()

    async def reply(item: int, policy: Latest[int], seed: int) -> int:
        if seed % 200 == 0:
            raise ConnectionError("no reply")
        return item

    def act(item: int, seed: int) -> int:
        if seed % 200 == 0:
            raise ValueError("no such move")
        return item

    g = Graph("stress")
    policy = g.latest("policy", init=trainer.init, max_staleness=1)

    def turn(live: Stream[int]) -> Stream[int]:
        spoken = live.map_async(reply, policy=policy, seed=g.seed).needs(Profile(attempts=2))
        return spoken.map(act, seed=g.seed)

    started = g.source(lambda: range(10_000)).fan_out(8).map(environments.open, seed=g.seed)
    ended = started.iterate(
        turn, until=lambda item: item % 4 == 0, limit=5, release=environments.close
    )
    kept = ended.group().filter(lambda group: group[0] % 5 != 0).named("keep")
    kept.unbatch().batch(64).map(trainer.step).publish_to(policy)
    told = log()
    result = run(g, ThreadExecutor(), versions=30, watches=[told.watch])

    assert result.launched > 2000
    assert sum(result.exits.values()) == result.launched
    assert told.exits == left(result)
    assert {len(batch) for batch in trainer.batches} == {64}
    assert result.exits["consumed"] == 30 * 64
    assert result.exits["failed"] > 0 < result.exits["filtered"]
    assert set(trained(trainer.batches).values()) == {1}
    # One that was being opened when the run ended never entered the iterate that closes it.
    missed = environments.opened - environments.closed
    assert environments.closed + missed == environments.opened
    assert missed.total() <= result.exits["cancelled"]
    assert max(result.lags["policy"]) <= 1


@pytest.mark.parametrize("executor", ["thread", InlineExecutor])
def test_what_is_no_executor_is_refused(executor: Any) -> None:
    with pytest.raises(TypeError, match=r"run\(\) takes an executor, such as ThreadExecutor\(\)"):
        run(collecting(same, 1), executor)


def test_what_is_no_graph_is_refused() -> None:
    graph: Any = InlineExecutor()
    with pytest.raises(TypeError, match=r"takes a Graph first"):
        run(graph, InlineExecutor())
