"""Every verb, used rightly, with the type that comes out of it."""

from collections.abc import Iterator, Sequence

from typing_extensions import assert_type

from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch, Latest


class Policy:
    def __init__(self) -> None:
        self.weights = b""

    def initial(self) -> bytes:
        return self.weights

    async def generate(self, text: str, policy: Latest[bytes], seed: int) -> str:
        return f"{text}{len(policy.value)}{seed}"

    def step(self, batch: Sequence[float]) -> bytes:
        return bytes(len(batch))


def read(num: int) -> Iterator[str]:
    yield from map(str, range(num))


def is_short(text: str) -> bool:
    return len(text) < 9


def is_done(text: str) -> bool:
    return text.endswith("0")


def score(text: str, *, scale: float = 1.0) -> int:
    return int(len(text) * scale)


def centre(rewards: Batch[float]) -> Batch[float]:
    return tuple(reward - sum(rewards) / len(rewards) for reward in rewards)


def is_good(reward: float) -> bool:
    return reward > 0.0


def first(pair: tuple[float, object]) -> float:
    return pair[0]


def declare(graph: Graph) -> None:
    policy = Policy()
    weights = graph.latest("policy", init=policy.initial, max_staleness=1)

    def turn(live: Stream[str]) -> Stream[str]:
        return live.map_async(policy.generate, policy=weights, seed=graph.seed).named("generate")

    tasks = assert_type(graph.source(read, 3), Stream[str])
    started = assert_type(tasks.fan_out(4), Stream[str])
    spoken = assert_type(started.iterate(turn, until=is_done, limit=2), Stream[str])
    kept = assert_type(spoken.filter(is_short), Stream[str])
    scored = assert_type(kept.map(score, scale=2.0), Stream[int])
    groups = assert_type(scored.group(), Stream[Batch[int]])
    centred = assert_type(groups.map(centre), Stream[Batch[float]])
    rewards = assert_type(centred.unbatch(), Stream[float])
    pairs = assert_type(rewards.join(rewards.map(is_good)), Stream[tuple[float, bool]])
    batches = assert_type(pairs.map(first).batch(8), Stream[Batch[float]])
    batches.map(policy.step).publish_to(weights)
