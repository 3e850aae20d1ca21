"""P3: Optional into required."""

from rlgraph.graph import Graph


def read() -> list[str]:
    return ["7"]


def parse(text: str) -> int | None:
    return int(text) if text else None


def double(number: int) -> int:
    return 2 * number


def declare(graph: Graph) -> None:
    numbers = graph.source(read).map(parse)
    numbers.map(double).collect("doubled")  # E: mypy: expected "Callable[[int | None], int]" # E: pyright: "None" is not assignable to "int"
