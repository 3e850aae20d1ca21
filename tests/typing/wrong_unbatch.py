"""What is taken apart is not a batch."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.unbatch().collect("parts")  # E: mypy: Invalid self argument "Stream[int]" to attribute function "unbatch" # E: pyright: "Stream[int]" is not assignable to "Stream[Batch[U@unbatch]]"
