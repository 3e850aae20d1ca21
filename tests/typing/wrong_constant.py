"""A constant of the wrong type."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def scale(number: int, factor: float) -> float:
    return number * factor


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.map(scale, factor="2").collect("scaled")  # E: mypy: Argument "factor" to "map" of "Stream" has incompatible type "str"; expected "float" # E: pyright: parameter "factor" of type "float"
