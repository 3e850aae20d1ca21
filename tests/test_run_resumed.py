from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rlgraph import Batch
from rlgraph.executors.inline import InlineExecutor
from rlgraph.running.execution import Executor
from rlgraph.running.loop import Watch, run
from rlgraph.scheduling import Published, Scheduler, Snapshot
from rlgraph.scheduling.records import Event
from tests.training import StoppedError, Trainer, executors, trained, training


def stopped_at(version: int, trainer: Trainer, executor: Executor, **options: Any) -> Snapshot:
    """Run until a version is published, break off there, and return where it stood."""
    snapshots: list[Snapshot] = []

    def stop(event: Event, scheduler: Scheduler) -> None:
        if isinstance(event, Published) and event.version == version:
            snapshots.append(scheduler.snapshot())
            raise StoppedError

    with pytest.raises(StoppedError):
        run(training(trainer, **options), executor, versions=6, watches=[Watch(on_event=stop)])
    return snapshots[0]


def keep_most(group: Batch[int]) -> bool:
    return group[0] % 3 != 0


@executors
@pytest.mark.parametrize("version", [1, 2, 5])
def test_a_resumed_synchronous_run_trains_on_what_the_whole_run_would_have(
    make: Callable[[], Executor], version: int
) -> None:
    whole, broken = Trainer(), Trainer()
    run(training(whole, keep=keep_most), make(), versions=6)
    snapshot = stopped_at(version, broken, make(), keep=keep_most)
    result = run(training(broken, keep=keep_most), make(), versions=6, resume=snapshot)
    assert result.versions == {"policy": 6}
    assert broken.batches == whole.batches


@executors
@pytest.mark.parametrize("version", [1, 2, 5])
def test_a_resumed_asynchronous_run_never_trains_on_an_item_twice(
    make: Callable[[], Executor], version: int
) -> None:
    trainer = Trainer()
    snapshot = stopped_at(version, trainer, make(), keep=keep_most, max_staleness=1)
    before = len(trainer.batches)
    graph = training(trainer, keep=keep_most, max_staleness=1)
    result = run(graph, make(), versions=6, resume=snapshot)
    assert (before, len(trainer.batches)) == (version, 6)
    assert set(trained(trainer.batches).values()) == {2}  # a group of two
    assert result.lags["policy"].keys() <= {0, 1}


def test_a_run_that_was_resumed_goes_on_counting() -> None:
    whole = run(training(Trainer()), InlineExecutor(), versions=6)
    snapshot = stopped_at(2, trainer := Trainer(), InlineExecutor())
    resumed = run(training(trainer), InlineExecutor(), versions=6, resume=snapshot)
    assert (resumed.exits, resumed.launched) == (whole.exits, whole.launched)


def test_a_finished_run_that_is_resumed_ends_at_once() -> None:
    trainer = Trainer()
    snapshot = stopped_at(5, trainer, InlineExecutor())
    result = run(training(trainer), InlineExecutor(), versions=5, resume=snapshot)
    assert (result.versions, len(trainer.batches)) == ({"policy": 5}, 5)


def test_a_run_resumed_for_fewer_versions_than_it_has_ends_at_once() -> None:
    snapshot = stopped_at(5, trainer := Trainer(), InlineExecutor())
    result = run(training(trainer), InlineExecutor(), versions=3, resume=snapshot)
    assert (result.versions, result.shortfall) == ({"policy": 5}, "")


def test_a_run_resumed_where_its_source_ended_is_short_but_not_starved() -> None:
    snapshot = stopped_at(2, trainer := Trainer(), InlineExecutor(), read=lambda: range(4))
    graph = training(trainer, lambda: range(4))
    result = run(graph, InlineExecutor(), versions=6, resume=snapshot)
    assert result.versions == {"policy": 2}
    assert result.shortfall.startswith("the sources ended at version 2 of 'policy', 6 were asked")
