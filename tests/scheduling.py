"""Graphs, orders of events and behaviours that the tests of the scheduler share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch, Latest
from rlgraph.profile import Profile
from rlgraph.scheduling import Exit, Failure, Outcome, Task
from rlgraph.testing import Behaviour, Driven, call_it


@dataclass(frozen=True)
class Prompt:
    text: str
    domain: str = "default"


class Model:
    """Counts its steps: the weights of version n are n."""

    def __init__(self) -> None:
        self.steps = 0

    def weights(self) -> int:
        return 0

    def step(self, batch: Batch[Any]) -> int:
        self.steps += 1
        return self.steps


def prompts(count: int = 10_000, domains: tuple[str, ...] = ("default",)) -> list[Prompt]:
    return [Prompt(str(n), domains[n % len(domains)]) for n in range(count)]


def sample(item: Any, policy: Latest[int], seed: int = 0) -> Any:
    return item


def act(item: Any) -> Any:
    return item


def also(item: Any) -> Any:
    return item


def good(item: Any) -> bool:
    return True


def halve(item: Any) -> tuple[Any, ...]:
    return (item, item)


def score(group: Batch[Any]) -> Batch[Any]:
    return group


def grpo(
    *,
    staleness: int = 0,
    when_stale: Any = "drop",
    group: int = 2,
    spare: int = 0,
    batch: int = 4,
    spare_items: int = 0,
    attempts: int = 1,
    source: Sequence[Any] | None = None,
) -> Graph:
    """source -> fan_out -> sample -> group -> score -> unbatch -> batch -> step -> policy."""
    g, model = Graph("grpo"), Model()
    policy = g.latest("policy", model.weights, max_staleness=staleness, when_stale=when_stale)
    read = prompts if source is None else lambda: list(source)
    items: Stream[Any] = g.source(read)
    members = items.fan_out(group, redundancy=spare)
    sampled = members.map(sample, policy=policy, seed=g.seed).needs(Profile(attempts=attempts))
    samples = sampled.group().map(score).unbatch()
    samples.batch(batch, redundancy=spare_items).map(model.step).publish_to(policy)
    return g


def flat(*, staleness: int, when_stale: Any = "drop", batch: int, spare: int = 0) -> Graph:
    """source -> sample -> batch -> step -> policy, prompts of domains "fast" and "slow"."""
    g, model = Graph("flat"), Model()
    policy = g.latest("policy", model.weights, max_staleness=staleness, when_stale=when_stale)
    sampled = g.source(prompts, domains=("fast", "slow")).map(sample, policy=policy)
    sampled.batch(batch, redundancy=spare).map(model.step).publish_to(policy)
    return g


class Clock:
    """Ends calls in the order in which they would end if each took ``seconds(task)``."""

    def __init__(self, seconds: Callable[[Task], float]) -> None:
        self.seconds, self.now = seconds, 0.0
        self.ends: dict[Task, float] = {}

    def __call__(self, running: Sequence[Task]) -> int:
        for task in running:
            self.ends.setdefault(task, self.now + self.seconds(task))
            if task.item is not None and task.item.exit is not None:
                self.ends[task] = self.now  # cancelled
        index = min(range(len(running)), key=lambda i: self.ends[running[i]])
        self.now = self.ends[running[index]]
        return index


def first(running: Sequence[Task]) -> int:
    return 0


def last(running: Sequence[Task]) -> int:
    return len(running) - 1


def slow(*lineages: tuple[int, ...], stage: str = "sample") -> Clock:
    """Some items take a thousand times as long in a stage."""
    return Clock(lambda t: 1000.0 if t.lineage in lineages and t.stage == stage else 1.0)


def failing(*keys: str, kind: str = "error") -> Behaviour:
    """Fail the calls whose keys start so; really make the others."""

    def behave(task: Task) -> Outcome | Failure:
        if task.key.startswith(keys):
            return Failure(stage=task.stage, key=task.key, kind=kind, error="ValueError: no")
        return call_it(task)

    return behave


def rejecting(wanted: Callable[[tuple[int, ...]], bool]) -> Behaviour:
    """Let filters keep the items whose lineage is wanted."""

    def behave(task: Task) -> Outcome:
        if task.node.verb == "filter":
            return Outcome(value=True, verdict=wanted(task.lineage))
        return call_it(task)

    return behave


def exits(trace: Driven) -> dict[Exit, int]:
    return dict(trace.scheduler.exits)


def left(trace: Driven, exit_: Exit) -> list[tuple[int, ...]]:
    return sorted(event.lineage for event in trace.exited if event.exit is exit_)


def lags(trace: Driven, name: str = "policy") -> Counter[int]:
    return Counter(
        event.consumed_versions[name] - event.start_versions[name]
        for event in trace.exited
        if event.exit is Exit.CONSUMED
    )
