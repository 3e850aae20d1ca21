"""A port without a default that gets nothing."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def scale(number: int, factor: float) -> float:
    return number * factor


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.map(scale).collect("scaled")  # E: mypy: Missing positional argument "factor" # E: pyright: Argument missing for parameter "factor"
