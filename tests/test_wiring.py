"""A function that does not fit is refused on its line: P3, P12 and P13."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated, Any, NewType, ParamSpec, TypeVar

import pytest

from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch, Latest
from tests.declarations import collected, read, refused, told

T = TypeVar("T")
P = ParamSpec("P")
UserId = NewType("UserId", int)


class Scorer:
    def __call__(self, number: int) -> float:
        return float(number)

    def score(self, number: int, scale: float = 1.0) -> float:
        return number * scale


class AsyncScorer:
    async def __call__(self, number: int) -> float:
        return float(number)


def start() -> bytes:
    return b""


def score(number: int, *, scale: float, offset: float = 0.0) -> float:
    return number * scale + offset


def spell(number: int) -> str:
    return str(number)


def shout(text: str) -> str:
    return text.upper()


def total(numbers: Batch[int]) -> int:
    return sum(numbers)


def is_even(number: int) -> bool:
    return number % 2 == 0


async def fetch(number: int) -> str:
    return str(number)


def numbers() -> Stream[int]:
    return Graph("g").source(read)


BETWEEN = "or put a stage between that turns the one into the other"


def test_an_item_of_another_type_is_refused_naming_both_ends() -> None:
    assert told(lambda: numbers().map(shout)) == (  # type: ignore[arg-type]
        "stage 'shout': its first parameter 'text' takes str, but 'read' gives int",
        f"make 'shout' take int, {BETWEEN}",
    )


def test_a_single_item_for_a_batch_is_mended_by_batching() -> None:
    what, mend = told(lambda: numbers().map(total))  # type: ignore[arg-type]
    assert what.endswith("takes Batch[int], but 'read' gives int")
    assert mend == "put .group() or .batch(size) before it"


def test_a_batch_for_a_single_item_is_mended_by_taking_it_apart() -> None:
    what, mend = told(lambda: numbers().batch(2).map(spell))  # type: ignore[arg-type]
    assert what.endswith("takes int, but 'batch' gives Batch[int]")
    assert mend == "put .unbatch() before it"


def test_what_may_be_missing_does_not_fit_where_it_must_not() -> None:
    def look_up(number: int) -> str | None:
        return None

    what, _ = told(lambda: numbers().map(look_up).map(shout))  # type: ignore[arg-type]
    assert what.endswith("takes str, but 'look_up' gives str | None")


def test_a_subclass_fits_where_its_base_is_taken() -> None:
    def widen(number: float) -> float:
        return number

    assert collected(lambda s: s.map(is_even).map(widen)) == []


def test_another_shape_tag_does_not_fit() -> None:
    def rows(number: int) -> Annotated[list[float], "rows"]:
        return [number]

    def take(columns: Annotated[list[float], "columns"]) -> int:
        return len(columns)

    what, _ = told(lambda: numbers().map(rows).map(take))
    assert "takes Annotated[list[float], 'columns']" in what


def test_a_stage_without_a_parameter_takes_no_item() -> None:
    assert told(lambda: numbers().map(read)) == (  # type: ignore[arg-type]
        "stage 'read' takes no item: it has no positional parameter",
        "give it a first parameter for the item",
    )


def test_a_list_is_no_stage() -> None:
    assert told(lambda: numbers().map([1])) == (  # type: ignore[arg-type]
        "map takes a function, but is given [1]",
        "pass a function or another callable object, without calling it",
    )


@pytest.mark.parametrize("stage", [fetch, AsyncScorer(), functools.partial(fetch)])
def test_map_awaits_nothing(stage: Any) -> None:
    what, mend = told(lambda: numbers().map(stage))
    assert what.endswith("is a coroutine function, which map does not await")
    assert mend.startswith("use .map_async(")


def test_map_refuses_a_function_that_returns_an_awaitable() -> None:
    def later(number: int) -> Awaitable[str]:
        return asyncio.sleep(0, str(number))

    what, _ = told(lambda: numbers().map(later))
    assert what == "stage 'later' is a coroutine function, which map does not await"
    assert collected(lambda s: s.map_async(later).map(shout)) == []


def test_map_async_refuses_an_ordinary_function() -> None:
    assert told(lambda: numbers().map_async(spell)) == (  # type: ignore[arg-type]
        "stage 'spell' is not a coroutine function; map_async would await str",
        "use .map(spell)",
    )


def test_map_async_takes_a_coroutine_function_a_callable_object_and_what_it_cannot_tell() -> None:
    for stage in (fetch, AsyncScorer(), lambda number: fetch(number)):
        assert collected(lambda s, stage=stage: s.map_async(stage)) == []  # type: ignore[misc]


def test_a_predicate_answers_yes_or_no() -> None:
    assert told(lambda: numbers().filter(spell)) == (  # type: ignore[arg-type]
        "stage 'spell' decides whether an item is kept, but returns str",
        "make it return bool",
    )


def test_a_predicate_is_not_awaited() -> None:
    async def is_good(number: int) -> bool:
        return True

    assert told(lambda: numbers().filter(is_good)) == (  # type: ignore[arg-type]
        "stage 'is_good' is a coroutine function, which filter does not await",
        "make it an ordinary function; what must be awaited belongs in a .map_async(fn) before",
    )


def test_a_predicate_without_hints_is_taken() -> None:
    assert collected(lambda s: s.filter(lambda number: number > 1)) == []


def split(number: int) -> Iterator[int]:
    yield number


async def stream(number: int) -> AsyncIterator[int]:
    yield number


def lazy(number: int) -> Iterator[int]:
    return iter([number])


async def late(number: int) -> Iterator[int]:
    return iter([number])


@pytest.mark.parametrize(
    ("verb", "stage"),
    [
        ("map", split),
        ("map", stream),
        ("map", lazy),
        ("map_async", late),
        ("map", lambda n: (yield n)),
    ],
)
def test_a_generator_is_refused_when_declared(verb: str, stage: Any) -> None:
    what, mend = told(lambda: getattr(numbers(), verb)(stage))
    assert what.endswith(
        "is a generator or returns an iterator, which cannot travel between workers"
    )
    assert mend == "return a Batch (a tuple) and follow it with .unbatch(size)"


def test_lambdas_partials_methods_and_objects_are_stages() -> None:
    lock = threading.Lock()

    def guarded(number: int) -> str:
        with lock:
            return str(number)

    stages: list[Any] = [
        lambda number: number,
        functools.partial(score, scale=2.0),
        functools.partial(functools.partial(score, scale=2.0), offset=1.0),
        Scorer(),
        Scorer().score,
        guarded,
        float,
        print,
        max,
    ]
    for stage in stages:
        assert collected(lambda s, stage=stage: s.map(stage)) == []  # type: ignore[misc]


def test_a_decorated_stage_that_hides_its_ports_takes_anything() -> None:
    def logged(fn: Callable[..., T]) -> Callable[..., T]:
        def inner(*args: Any, **kwargs: Any) -> T:
            return fn(*args, **kwargs)

        return inner

    assert collected(lambda s: s.map(logged(shout), 1, more=2)) == []


def test_a_decorated_stage_with_a_parameter_specification_takes_anything() -> None:
    def logged(fn: Any) -> Any:
        def inner(*args: P.args, **kwargs: P.kwargs) -> str:
            return str(fn(*args, **kwargs))

        return inner

    assert collected(lambda s: s.map(logged(shout), more=2)) == []


def test_what_a_generic_stage_gives_follows_from_what_it_takes() -> None:
    def first(items: Batch[T]) -> T:
        return items[0]

    what, _ = told(lambda: numbers().batch(2).map(first).map(shout))  # type: ignore[arg-type]
    assert what.endswith("but 'first' gives int")


def test_a_source_must_give_something_to_iterate_over() -> None:
    def count() -> int:
        return 3

    assert told(lambda: Graph("g").source(count)) == (  # type: ignore[arg-type]
        "source takes an iterable, but 'count' gives int",
        "make it return an iterable of items",
    )


async def read_later() -> list[int]:
    return [1]


async def read_on() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("source", [read_later, read_on])
def test_a_source_is_not_awaited(source: Any) -> None:
    assert told(lambda: Graph("g").source(source)) == (
        f"source {source.__name__!r} is asynchronous",
        "make it an ordinary function",
    )


def test_a_source_is_given_no_latest_and_no_seed() -> None:
    def read_seeded(value: Any) -> list[int]:
        return [value]

    graph = Graph("g")
    for value in (graph.seed, graph.latest("policy", init=start)):
        what, mend = told(lambda value=value: graph.source(read_seeded, value))
        assert what.endswith("which is new for each call of a stage")
        assert mend == "pass it to a stage, and a plain value to the source"


def test_only_a_batch_can_be_taken_apart() -> None:
    assert told(lambda: numbers().unbatch()) == (  # type: ignore[misc]
        "unbatch takes a Batch, but 'read' gives int",
        "make it return a Batch of items",
    )


@pytest.mark.parametrize(
    ("init", "what"),
    [
        (fetch, "latest 'policy' is a coroutine function, which latest does not await"),
        (split, "latest 'policy' is a generator or returns an iterator, which cannot travel "),
    ],
)
def test_version_0_is_made_by_an_ordinary_function(init: Any, what: str) -> None:
    assert refused(lambda: Graph("g").latest("policy", init=init)).what.startswith(what)


def test_a_latest_or_a_seed_settled_in_a_partial_is_refused() -> None:
    def generate(number: int, policy: Latest[bytes], seed: int) -> str:
        return str(number)

    graph = Graph("g")
    policy, stream = graph.latest("policy", init=start), graph.source(read)
    inner = functools.partial(generate, policy=policy)
    assert told(lambda: stream.map(functools.partial(inner, seed=1))) == (
        "stage 'generate': latest 'policy' is settled in a partial, where no call sees it",
        "pass it to .map(...) as an argument of its own",
    )
    seeded = functools.partial(generate, policy=None, seed=graph.seed)  # type: ignore[arg-type]
    assert told(lambda: stream.map(seeded))[0].startswith("stage 'generate': graph.seed is settled")


def test_map_async_awaits_a_future() -> None:
    def later(number: int) -> asyncio.Future[str]:
        raise NotImplementedError

    assert collected(lambda s: s.map_async(later).map(shout)) == []
