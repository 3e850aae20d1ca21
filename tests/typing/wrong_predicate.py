"""A filter that does not answer yes or no."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def parity(number: int) -> str:
    return "odd" if number % 2 else "even"


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.filter(parity).collect("kept")  # E: mypy: expected "Callable[[int], bool]" # E: pyright: "str" is not assignable to "bool"
