"""Feedback: who publishes and reads it, how late it comes, and what closes a cycle (P1)."""

from typing import Any

from rlgraph.errors import Problem
from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch, Latest
from tests.declarations import here, problem, problems, read


class Policy:
    def weights(self) -> bytes:
        return b""

    def generate(self, number: int, policy: Latest[bytes]) -> int:
        return number

    def step(self, numbers: Batch[int]) -> bytes:
        return b""


def same(number: int) -> int:
    return number


def is_done(number: int) -> bool:
    return number > 9


def pack(numbers: Batch[int]) -> bytes:
    return bytes(len(numbers))


def use(number: int, weights: Latest[bytes]) -> int:
    return number


def numbers() -> tuple[Graph, Stream[int]]:
    graph = Graph("g")
    return graph, graph.source(read)


def test_a_latest_is_published_and_read() -> None:
    graph, stream = numbers()
    place = here(lines_below=1)
    graph.latest("policy", init=Policy().weights)
    stream.collect("out")
    assert problems(graph) == [
        Problem(
            what="nothing publishes 'policy'",
            where=place,
            mend="end a stream with .publish_to(policy)",
        ),
        Problem(
            what="no stage reads 'policy'",
            where=place,
            mend="pass it to a stage: .map(fn, policy=policy)",
        ),
    ]


def test_two_latests_for_one_are_told_by_their_names() -> None:
    graph, stream = numbers()
    policy = Policy()
    read_one = graph.latest("policy", init=policy.weights)
    published_one = graph.latest("polcy", init=policy.weights)
    stream.map(policy.generate, read_one).batch(2).map(policy.step).publish_to(published_one)
    assert [p.what for p in problems(graph)] == [
        "nothing publishes 'policy'; did you mean 'polcy'?",
        "no stage reads 'polcy'; did you mean 'policy'?",
    ]


def test_a_latest_has_one_producer() -> None:
    graph, stream = numbers()
    policy = Policy()
    weights = graph.latest("policy", init=policy.weights)
    generated = stream.map(policy.generate, weights)
    first = here(lines_below=1)
    generated.batch(2).map(policy.step).publish_to(weights)
    second = here(lines_below=1)
    generated.batch(4).map(pack).publish_to(weights)
    generated.map(lambda number: b"").publish_to(weights)
    assert problem(graph) == Problem(
        what=f"'policy' has 3 producers; also at {first}, {second}",
        where=here(lines_below=-3),
        mend="publish to it once; give the other streams latests of their own",
    )


def test_staleness_below_what_the_rates_force_is_refused() -> None:
    graph, stream = numbers()
    policy = Policy()
    place = here(lines_below=1)
    weights = graph.latest("policy", init=policy.weights)
    members = stream.fan_out(8).map(policy.generate, weights).group().unbatch()
    members.batch(8).unbatch().batch(2).map(policy.step).publish_to(weights)
    assert [p.what for p in problems(graph)] == [
        "batch of 2 is not a multiple of group of 8: 2 = 0 x 8 + 2",
        "one item of the source feeds 4 versions of 'policy', so the last is trained on 3 "
        "versions late, but max_staleness is 0",
    ]
    assert problems(graph)[1].where == place
    assert problems(graph)[1].mend == "use max_staleness=3 or more, or larger batches"


def loop(graph: Graph, weights: Any) -> None:
    stream = graph.source(read).map(use, weights=weights)
    stream.map(same).batch(2).map(pack).publish_to(weights)


def test_a_path_that_closes_a_cycle_is_named() -> None:
    graph = Graph("g")
    place = here(lines_below=1)
    loop(graph, graph.latest("weights"))
    assert problem(graph) == Problem(
        what="a path closes a cycle: 'use' -> 'same' -> 'batch' -> 'pack' -> 'publish weights' -> "
        "'use': 'weights' has no version 0, so none of these can ever start",
        where=place,
        mend="give it one: graph.latest('weights', init=...)",
    )


def test_the_same_loop_through_a_feedback_with_a_version_0_is_right() -> None:
    graph = Graph("g")
    loop(graph, graph.latest("weights", init=Policy().weights))
    graph.check()


def test_a_cycle_through_an_iterate_is_named() -> None:
    graph, stream = numbers()
    weights: Any = graph.latest("weights")
    done = stream.iterate(lambda s: s.map(use, weights=weights), until=is_done, limit=2)
    done.named("play").map(lambda number: b"").publish_to(weights)
    assert problem(graph).what.startswith(
        "a path closes a cycle: 'use' -> 'play' -> '<lambda>' -> 'publish weights' -> 'use'"
    )


def test_a_latest_without_a_version_0_is_refused_even_where_no_path_closes() -> None:
    graph, stream = numbers()
    weights: Any = graph.latest("weights")
    stream.map(use, weights=weights).collect("used")
    stream.batch(2).map(pack).publish_to(weights)
    assert problem(graph).what == "'weights' has no version 0 for its first readers"
