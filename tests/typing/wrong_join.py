"""A pair the wrong way round."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def spell(number: int) -> str:
    return str(number)


def compare(pair: tuple[str, int]) -> bool:
    return pair[0] == str(pair[1])


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    pairs = numbers.join(numbers.map(spell))
    pairs.map(compare).collect("equal")  # E: mypy: expected "Callable[[tuple[int, str]], bool]" # E: pyright: "tuple[int, str]" is not assignable to "tuple[str, int]"
