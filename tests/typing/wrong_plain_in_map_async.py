"""A plain function in map_async."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def double(number: int) -> int:
    return 2 * number


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.map_async(double).collect("doubled")  # E: mypy: expected "Callable[[int], Awaitable[ # E: pyright: "int" is incompatible with protocol "Awaitable
