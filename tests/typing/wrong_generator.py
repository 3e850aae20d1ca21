"""P13: a generator function in map: what comes next would be given the iterator."""

from collections.abc import Iterator

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def count(number: int) -> Iterator[int]:
    yield from range(number)


def double(number: int) -> int:
    return 2 * number


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.map(count).map(double).collect("doubled")  # E: mypy: expected "Callable[[Iterator[int]], int]" # E: pyright: "Iterator[int]" is not assignable to "int"
