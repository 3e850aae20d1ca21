"""A coroutine function in map: what comes next would be given a coroutine."""

from rlgraph.graph import Graph


def read() -> list[int]:
    return [1]


async def fetch(number: int) -> str:
    return str(number)


def show(text: str) -> str:
    return text


def declare(graph: Graph) -> None:
    numbers = graph.source(read)
    numbers.map(fetch).map(show).collect("shown")  # E: mypy: expected "Callable[[Coroutine[Any, Any, str]], str]" # E: pyright: "CoroutineType[Any, Any, str]" is not assignable to "str"
