"""What is published is not what version 0 was."""

from rlgraph.graph import Graph
from rlgraph.ports import Latest


def read() -> list[str]:
    return ["a"]


def start() -> bytes:
    return b""


def train(prompt: str, policy: Latest[bytes]) -> float:
    return float(len(prompt) + len(policy.value))


def declare(graph: Graph) -> None:
    policy = graph.latest("policy", init=start)
    losses = graph.source(read).map(train, policy=policy)
    losses.publish_to(policy)  # E: mypy: has incompatible type "Feedback[bytes]"; expected "Latest[float]" # E: pyright: "Feedback[bytes]" is not assignable to "Latest[float]"
