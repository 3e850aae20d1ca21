"""A stage for one member is given the whole group."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def double(number: int) -> int:
    return 2 * number


def declare(graph: Graph) -> None:
    groups = graph.source(read).fan_out(4).group()
    groups.map(double).collect("doubled")  # E: mypy: expected "Callable[[tuple[int, ...]], int]" # E: pyright: "tuple[int, ...]" is not assignable to "int"
