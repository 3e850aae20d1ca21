"""A misspelt port."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def scale(number: int, factor: float = 1.0) -> float:
    return number * factor


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.map(scale, factr=2.0).collect("scaled")  # E: mypy: did you mean "factor"? # E: pyright: No parameter named "factr"
