"""Small graphs of numbers that train, and a log of all that a run tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from rlgraph import Batch, Graph, Latest, Profile, Stream
from rlgraph.executors.inline import InlineExecutor
from rlgraph.executors.thread import ThreadExecutor
from rlgraph.running.loop import Result, Watch
from rlgraph.scheduling import Exited, Failure, Outcome, Task
from rlgraph.scheduling.records import Event

BOUND_S = 20.0
"""Ends a test that would hang; nothing waits that long."""
executors = pytest.mark.parametrize("make", [InlineExecutor, ThreadExecutor])


class Trainer:
    """Publishes how many batches it has seen."""

    def __init__(self) -> None:
        self.batches: list[Batch[int]] = []

    def init(self) -> int:
        return 0

    def step(self, batch: Batch[int]) -> int:
        self.batches.append(batch)
        return len(self.batches)


class StoppedError(Exception):
    """Ends a run from a watch."""


@dataclass
class Log:
    """Everything that a run tells."""

    tasks: list[tuple[Task, Outcome | Failure]]
    events: list[Event]

    @property
    def watch(self) -> Watch:
        return Watch(
            on_task=lambda task, result: self.tasks.append((task, result)),
            on_event=lambda event, _: self.events.append(event),
        )

    @property
    def exits(self) -> dict[str, int]:
        return dict(Counter(e.exit.value for e in self.events if isinstance(e, Exited)))


def log() -> Log:
    return Log([], [])


def same(item: int) -> int:
    return item


def collecting(stage: Callable[..., object], count: int = 8, needs: Profile | None = None) -> Graph:
    g = Graph("collecting")
    stream = g.source(lambda: range(count)).named("tasks").map(stage).named("stage")
    stream.needs(needs or Profile()).collect("done")
    return g


def training(
    trainer: Trainer,
    read: Callable[[], Any] = lambda: range(1_000_000),
    *,
    keep: Callable[[Batch[int]], bool] = lambda group: True,
    max_staleness: int = 0,
) -> Graph:
    """Groups of 2, batches of 4."""
    g = Graph("training")
    policy = g.latest("policy", init=trainer.init, max_staleness=max_staleness)

    def play(item: int, policy: Latest[int]) -> int:
        return item

    tasks: Stream[int] = g.source(read).named("tasks")
    groups = tasks.fan_out(2).map(play, policy=policy).group().filter(keep).named("keep")
    groups.unbatch().batch(4).map(trainer.step).publish_to(policy)
    return g


def left(result: Result) -> dict[str, int]:
    return {name: count for name, count in result.exits.items() if count}


def trained(batches: Sequence[Batch[int]]) -> Counter[int]:
    return Counter(item for batch in batches for item in batch)
