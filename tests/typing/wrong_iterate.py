"""A body that gives another type than it takes."""

from rlgraph.graph import Graph, Stream


def read() -> list[int]:
    return [1]


def spell(number: int) -> str:
    return str(number)


def is_large(number: int) -> bool:
    return number > 9


def turn(numbers: Stream[int]) -> Stream[str]:
    return numbers.map(spell)


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.iterate(turn, until=is_large, limit=3).collect("last")  # E: mypy: expected "Callable[[Stream[int]], Stream[int]]" # E: pyright: "Stream[str]" is not assignable to "Stream[int]"
