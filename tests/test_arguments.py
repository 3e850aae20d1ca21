"""What is passed to a stage besides its item: ports misspelt, empty, given twice (P2), types."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NewType, ParamSpec, Protocol, TypedDict, TypeVar, cast
from unittest import mock

import pytest

from rlgraph.errors import GraphError
from rlgraph.graph import Graph, Stream
from rlgraph.ports import Latest
from tests.declarations import collected, read, refused, told

T = TypeVar("T")
P = ParamSpec("P")
UserId = NewType("UserId", int)


class Sizes(TypedDict):
    width: int


class Scales(Protocol):
    factor: float

    def scale(self, value: float) -> float: ...


class Doubles:
    def __init__(self) -> None:
        self.factor = 2.0

    def scale(self, value: float) -> float:
        return self.factor * value


def onward(number: int) -> int:
    return number


def start() -> bytes:
    return b""


def score(number: int, *, scale: float, offset: float = 0.0) -> float:
    return number * scale + offset


def spell(number: int) -> str:
    return str(number)


def numbers() -> Stream[int]:
    return Graph("g").source(read)


def test_a_misspelt_port_is_answered_with_the_one_that_was_meant() -> None:
    assert collected(lambda s: s.map(score, scael=2.0)) == [
        (
            "stage 'score' has no port 'scael', which is given 2.0; did you mean 'scale'?",
            "its ports still free are 'scale', 'offset'",
        )
    ]


def test_a_port_that_resembles_none_is_reported_beside_the_empty_one() -> None:
    assert [what for what, _ in collected(lambda s: s.map(score, q=2.0))] == [
        "stage 'score' has no port 'q', which is given 2.0",
        "port 'scale' of stage 'score' gets nothing, and has no default",
    ]


def test_a_slip_is_not_taken_for_a_port_that_is_given_besides() -> None:
    assert collected(lambda s: s.map(score, scael=2.0, scale=1.0, offset=0.0)) == [
        ("stage 'score' has no port 'scael', which is given 2.0", "drop it: no port of it is free")
    ]


def test_a_port_that_gets_nothing_is_named() -> None:
    assert collected(lambda s: s.map(score)) == [
        (
            "port 'scale' of stage 'score' gets nothing, and has no default",
            "pass it: .map(score, scale=...)",
        )
    ]


def test_a_port_with_two_producers_is_named() -> None:
    def add(number: int, other: int) -> int:
        return number + other

    assert collected(lambda s: s.map(add, 1, other=2)) == [
        (
            "port 'other' of stage 'add' has two producers",
            "pass 'other' once; the item itself fills the first parameter",
        )
    ]
    assert [what for what, _ in collected(lambda s: s.map(add, 1, number=2))] == [
        "port 'number' of stage 'add' has two producers"
    ]


def test_surplus_arguments_are_counted() -> None:
    assert collected(lambda s: s.map(spell, 1, 2)) == [
        ("stage 'spell' takes 0 arguments besides its item, 2 are given", "drop the surplus ones")
    ]


def test_a_source_has_no_item_besides_its_arguments() -> None:
    def read_some(path: str) -> list[int]:
        return [len(path)]

    graph = Graph("g")
    graph.source(read_some, "a", path="b", more=1).collect("out")
    with pytest.raises(GraphError) as caught:
        graph.check()
    assert [(problem.what, problem.mend) for problem in caught.value.problems] == [
        ("port 'path' of source 'read_some' has two producers", "pass 'path' once"),
        (
            "source 'read_some' has no port 'more', which is given 1",
            "drop it: no port of it is free",
        ),
    ]


def takes(hint: Any) -> Callable[..., int]:
    def stage(number: int, port: Any) -> int:
        return number

    stage.__annotations__["port"] = hint
    return stage


RIGHT_VALUES: list[tuple[Any, Any]] = [
    (float, 1),
    (Sequence[str], ["a"]),
    (str | None, None),
    (int | str, "a"),
    (UserId, 3),
    (UserId | None, 3),
    (Literal["drop", "wait"], "wait"),
    (Annotated[int, "seconds"], 3),
    (Sizes, {"width": 1}),
    (Scales, Doubles()),
    (Doubles, mock.Mock(spec=Doubles)),
    (Callable[[int], str], spell),
    (type[Doubles], Doubles),
    (T, "anything"),
    (Latest[bytes], Latest(name="fixed", version=0, value=b"")),
]
WRONG_VALUES: list[tuple[Any, Any, str]] = [
    (float, "1", "float, but is given '1'"),
    (int, 1.5, "int, but is given 1.5"),
    (str, None, "str, but is given None"),
    (int | None, "a", "int | None, but is given 'a'"),
    (UserId, "a", "UserId, but is given 'a'"),
    (Literal["drop", "wait"], "dorp", "Literal['drop', 'wait'], but is given 'dorp'"),
    (Sizes, 3, "Sizes, but is given 3"),
    (Scales, 3.0, "Scales, but is given 3.0"),
    (list[int], (1, 2), "list[int], but is given (1, 2)"),
    (Latest[bytes], b"x" * 99, "Latest[bytes], but is given b'xxxxxxxxxxx...xxxxxxxxxxxxx'"),
]


@pytest.mark.parametrize(("hint", "value"), RIGHT_VALUES)
def test_a_constant_that_its_port_takes_is_taken(hint: Any, value: Any) -> None:
    assert collected(lambda s: s.map(takes(hint), port=value)) == []


@pytest.mark.parametrize(("hint", "value", "end"), WRONG_VALUES)
def test_a_constant_of_a_wrong_type_is_refused(hint: Any, value: Any, end: str) -> None:
    for args, kwargs in (((value,), {}), ((), {"port": value})):
        problem = refused(
            lambda args=args, kwargs=kwargs: numbers().map(takes(hint), *args, **kwargs)
        )
        assert problem.what == f"stage 'stage': port 'port' takes {end}"


def test_a_plain_parameter_given_a_latest_is_mended_by_annotating_it() -> None:
    def generate(number: int, policy: bytes) -> str:
        return str(number)

    graph = Graph("g")
    policy = graph.latest("policy", init=start)
    stream = graph.source(read)
    assert told(lambda: stream.map(generate, policy=cast("bytes", policy))) == (
        "stage 'generate': port 'policy' takes bytes, but latest 'policy' gives Latest[bytes]",
        "annotate it as policy: Latest[bytes], and read policy.value",
    )


def test_a_latest_of_another_type_is_refused() -> None:
    def generate(number: int, policy: Latest[str]) -> str:
        return str(number)

    graph = Graph("g")
    policy: Any = graph.latest("policy", init=start)
    what, _ = told(lambda: graph.source(read).map(generate, policy=policy))
    assert what.endswith("takes Latest[str], but latest 'policy' gives Latest[bytes]")


def test_a_latest_of_another_graph_is_refused() -> None:
    def generate(number: int, policy: Latest[bytes]) -> str:
        return str(number)

    foreign = Graph("other").latest("policy", init=start)
    stream = numbers()
    what, mend = told(lambda: stream.map(generate, policy=foreign))
    assert what.startswith("stage 'generate' is given latest 'policy' of another graph, declared ")
    assert mend == "declare it with latest() of this graph"
    what, _ = told(lambda: stream.map(lambda number: b"").publish_to(foreign))
    assert what.startswith("publish_to 'policy' is given latest 'policy' of another graph")


def test_a_seed_goes_to_a_number_only() -> None:
    graph = Graph("g")
    stream = graph.source(read)
    assert refused(lambda: stream.map(takes(str), port=graph.seed)).what == (
        "stage 'stage': port 'port' takes str, but is given graph.seed"
    )
    stream.map(takes(int), port=graph.seed).collect("out")
    graph.check()


def test_a_stream_given_as_an_argument_is_mended_by_a_join() -> None:
    stream = numbers()
    other: Any = stream.map(spell)
    for give in (lambda: stream.map(takes(str), other), lambda: stream.map(takes(Any), port=other)):
        assert told(give) == (
            "stage 'stage': port 'port' is given a stream, that of 'spell'",
            "a stage takes the items of one stream: pair two with .join(other), and take the pair",
        )


def test_a_stream_given_to_a_port_that_does_not_exist_is_told_as_one() -> None:
    def wrong(stream: Stream[int]) -> Stream[int]:
        return stream.map(lambda number, *, other=0: number, q=stream)  # type: ignore[call-arg]

    assert [what for what, _ in collected(wrong)] == [
        "stage '<lambda>' has no port 'q', which is given the stream of 'read'"
    ]


def test_a_source_is_given_no_stream() -> None:
    def read_from(other: Any) -> list[int]:
        return [1]

    graph = Graph("g")
    other = graph.source(read)
    assert refused(lambda: graph.source(read_from, other)).what == (
        "source 'read_from': port 'other' is given a stream, that of 'read'"
    )


def test_version_0_is_made_of_nothing() -> None:
    def load(path: str) -> bytes:
        return path.encode()

    graph = Graph("g")
    graph.latest("policy", init=load)  # type: ignore[arg-type]
    with pytest.raises(GraphError) as caught:
        graph.check()
    assert caught.value.problems[0].what == (
        "port 'path' of latest 'policy' gets nothing, and has no default"
    )


def test_what_asks_after_a_round_is_given_the_item_alone() -> None:
    def is_late(number: int, limit: int) -> bool:
        return number > limit

    wrong: Any = is_late
    assert [
        what
        for what, _ in collected(
            lambda s: s.iterate(lambda live: live.map(onward), until=wrong, limit=2)
        )
    ] == ["port 'limit' of until 'is_late' gets nothing, and has no default"]
