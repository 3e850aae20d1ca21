"""P3: a float into list[float]."""

from rlgraph.graph import Graph


def read() -> list[float]:
    return [0.5]


def mean(rewards: list[float]) -> float:
    return sum(rewards) / len(rewards)


def declare(graph: Graph) -> None:
    rewards = graph.source(read)
    rewards.map(mean).collect("mean")  # E: mypy: expected "Callable[[float], float]" # E: pyright: "float" is not assignable to "list[float]"
