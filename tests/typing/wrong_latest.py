"""A port that wants one published type is given another."""

from rlgraph.graph import Graph
from rlgraph.ports import Latest


def read() -> list[str]:
    return ["a"]


def start() -> bytes:
    return b""


def generate(prompt: str, policy: Latest[str]) -> str:
    return prompt + policy.value


def declare(graph: Graph) -> None:
    weights = graph.latest("policy", init=start)
    graph.source(read).map(generate, policy=weights).collect("texts")  # E: mypy: has incompatible type "Feedback[bytes]"; expected "Latest[str]" # E: pyright: "bytes" is not assignable to "str"
