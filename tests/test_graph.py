"""Verbs as a user meets them: names, owners, places of declarations, and what they refuse."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rlgraph.errors import GraphError, Problem
from rlgraph.graph import Feedback, Graph, Stream
from rlgraph.graph.node import Node
from rlgraph.ports import Batch, Latest
from rlgraph.profile import Fixed, Profile


class Policy:
    def weights(self) -> bytes:
        return b""

    def generate(self, number: int, policy: Latest[bytes], seed: int = 0) -> int:
        return number

    def step(self, numbers: Batch[int]) -> bytes:
        return b""

    def close(self, number: int) -> None: ...


@dataclass(frozen=True)
class Verifier:
    strict: bool

    def verify(self, number: int) -> int:
        return number


def read() -> list[int]:
    return [1]


def same(number: int) -> int:
    return number


def is_done(number: int) -> bool:
    return number > 9


def spell(number: int) -> str:
    return str(number)


def pairs(number: int) -> Batch[int]:
    return (number, number)


def total(numbers: Batch[int]) -> int:
    return sum(numbers)


def here(lines_below: int = 0) -> str:
    """Return the place of the line that calls this, as a declaration there is reported."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno + lines_below}"


def numbers() -> tuple[Graph, Stream[int]]:
    graph = Graph("g")
    return graph, graph.source(read)


def named(graph: Graph, name: str) -> Node:
    (node,) = [node for node in graph.nodes if node.name == name]
    return node


def refused(declare: Callable[[], object]) -> Problem:
    with pytest.raises(GraphError) as caught:
        declare()
    (problem,) = caught.value.problems
    return problem


def test_a_stage_is_named_as_its_function_unless_it_is_named_otherwise() -> None:
    graph, stream = numbers()
    policy = Policy()
    weights = graph.latest("policy", init=policy.weights)
    stream.map(policy.generate, policy=weights).named("speak").batch(2).map(policy.step).publish_to(
        weights
    )
    assert [node.name for node in graph.nodes] == [
        "read",
        "speak",
        "batch",
        "Policy.step",
        "publish policy",
    ]


def test_routing_stages_are_numbered_from_the_second_on() -> None:
    graph, stream = numbers()
    stream.batch(2).batch(2).batch(2)
    assert [node.name for node in graph.nodes] == ["read", "batch", "batch 2", "batch 3"]


def test_lambdas_are_numbered_as_nobody_named_them() -> None:
    graph, stream = numbers()
    body: Any = lambda live: live.map(lambda number: number)  # noqa: E731
    stream.map(lambda number: number).iterate(body, until=is_done, limit=2).collect("out")
    graph.check()
    assert [node.name for node in graph.nodes] == [
        "read",
        "<lambda>",
        "<lambda> 2",
        "<lambda> 2 round",
        "<lambda> 3",
        "out",
    ]


def test_naming_an_iterate_names_its_rounds() -> None:
    graph, stream = numbers()
    stream.iterate(lambda live: live.map(same), until=is_done, limit=2).named("play")
    assert [node.name for node in graph.nodes] == ["read", "play", "play round", "same"]


def test_a_feedback_knows_who_reads_and_who_publishes_it() -> None:
    graph, stream = numbers()
    policy = Policy()
    weights = graph.latest("policy", policy.weights, max_staleness=2, when_stale="wait")
    generated = stream.map(policy.generate, weights, seed=graph.seed)
    generated.batch(2).map(policy.step).publish_to(weights)
    graph.check()
    (feedback,) = graph.feedbacks
    assert (feedback.item, feedback.max_staleness, feedback.when_stale) == (bytes, 2, "wait")
    assert feedback.readers == [named(graph, "Policy.generate")]
    assert feedback.publishers == [named(graph, "publish policy")]


def test_a_stage_that_is_given_a_latest_twice_reads_it_once() -> None:
    def compare(number: int, old: Latest[bytes], new: Latest[bytes]) -> int:
        return number

    graph, stream = numbers()
    weights = graph.latest("policy", init=Policy().weights)
    stream.map(compare, weights, new=weights)
    assert graph.feedbacks[0].readers == [named(graph, "compare")]


def test_a_latest_has_no_value_while_the_graph_is_declared() -> None:
    weights, place = Graph("g").latest("policy", init=Policy().weights), here()
    assert refused(lambda: weights.value) == Problem(
        what="latest 'policy' has no value while the graph is declared",
        where=place,
        mend="pass it to a stage as an argument of its own: each call is given the newest",
    )


def test_latests_are_told_apart_though_they_are_named_alike() -> None:
    graph = Graph("g")
    first, second = (graph.latest("policy", init=Policy().weights) for _ in range(2))
    assert first == first
    assert len({first, second}) == 2
    assert repr(first) == "<latest 'policy'>"


def test_stages_of_one_object_know_their_owner() -> None:
    graph, stream = numbers()
    policy = Policy()
    stream.batch(2).map(policy.step)
    stream.iterate(lambda live: live.map(same), until=is_done, limit=2, release=policy.close).named(
        "play"
    )
    assert named(graph, "Policy.step").owner is policy
    assert named(graph, "play").owner is policy
    assert named(graph, "same").owner is None


def test_each_call_in_a_chain_of_many_lines_is_reported_on_its_own_line() -> None:
    graph = Graph("g")
    first = here()
    (
        graph.source(read)
        .map(same)
        .fan_out(
            4,
        )
        .group()
        .map(total)
        .collect("out")
    )
    path, line = first.rsplit(":", 1)
    lines = [int(node.where.removeprefix(f"{path}:")) - int(line) for node in graph.nodes]
    assert lines == [2, 3, 4, 7, 8, 9]


def test_a_graph_built_by_helper_functions_is_reported_in_the_helper() -> None:
    def helper(stream: Stream[int]) -> tuple[Stream[int], str]:
        return stream.map(same), here()

    def turn(live: Stream[int]) -> Stream[int]:
        nonlocal place
        moved, place = helper(live)
        return moved

    place = ""
    graph, stream = numbers()
    stream.iterate(turn, until=is_done, limit=2)
    assert named(graph, "same").where == place


def test_a_wrong_edge_in_a_body_is_reported_on_the_line_in_the_body() -> None:
    def shout(text: str) -> str:
        return text

    def turn(live: Stream[int]) -> Stream[int]:
        nonlocal place
        place = here(lines_below=1)
        return live.map(shout)  # type: ignore[arg-type, return-value]

    place = ""
    _, stream = numbers()
    assert refused(lambda: stream.iterate(turn, until=is_done, limit=2)).where == place


@pytest.mark.parametrize("size", [0, -1, True, 2.0, "2", None])
def test_a_size_is_a_whole_number_from_one(size: Any) -> None:
    _, stream = numbers()
    for verb in ("fan_out", "batch"):
        assert refused(lambda verb=verb: getattr(stream, verb)(size)).what == (
            f"size of stage {verb!r} must be an int >= 1, got {size!r}"
        )


def test_no_redundancy_and_no_length_is_below_zero() -> None:
    _, stream = numbers()
    assert refused(lambda: stream.fan_out(2, redundancy=-1)).what == (
        "redundancy of stage 'fan_out' must be an int >= 0, got -1"
    )
    assert refused(lambda: stream.map(pairs).unbatch(-2)).what == (
        "size of stage 'unbatch' must be an int >= 0, got -2"
    )


def test_an_iterate_has_a_limit_of_one_round_at_least() -> None:
    _, stream = numbers()
    problem = refused(lambda: stream.iterate(lambda s: s.map(same), until=is_done, limit=0))
    assert problem.what == "limit of iterate '<lambda>' must be an int >= 1, got 0"


def test_staleness_is_a_number_of_versions_and_its_policy_one_of_two() -> None:
    latest: Any = Graph("g").latest
    assert refused(lambda: latest("policy", max_staleness=-1)).what == (
        "max_staleness of latest 'policy' must be an int >= 0, got -1"
    )
    assert refused(lambda: latest("policy", when_stale="dorp")).what == (
        "when_stale of latest 'policy' must be 'drop' or 'wait', got 'dorp'"
    )


def test_a_body_that_gives_another_type_is_refused() -> None:
    _, stream = numbers()
    body: Any = lambda live: live.map(spell)  # noqa: E731
    assert refused(lambda: stream.iterate(body, until=is_done, limit=2)).what == (
        "iterate '<lambda>': a round takes int, but its body gives str"
    )


def test_what_asks_and_what_releases_must_take_the_item() -> None:
    def is_long(text: str) -> bool:
        return len(text) > 9

    _, stream = numbers()
    turn: Any = lambda live: live.map(same)  # noqa: E731
    wrong: Any = is_long
    assert refused(lambda: stream.iterate(turn, until=wrong, limit=2)).what == (
        "until 'is_long': its first parameter 'text' takes str, but 'read' gives int"
    )
    problem = refused(lambda: stream.iterate(turn, until=is_done, limit=2, release=wrong))
    assert problem.what.startswith("release 'is_long': its first parameter 'text' takes str")
    assert refused(lambda: stream.iterate(turn, until=same, limit=2)).what == (  # type: ignore[arg-type]
        "until 'same' decides whether the round was the last, but returns int"
    )


def test_a_body_must_return_a_stream_of_its_graph() -> None:
    _, stream = numbers()
    _, foreign = numbers()
    nothing: Any = lambda live: None  # noqa: E731
    assert refused(lambda: stream.iterate(nothing, until=is_done, limit=2)).what == (
        "the body of iterate '<lambda>' must return a stream, got None"
    )
    problem = refused(lambda: stream.iterate(lambda live: foreign, until=is_done, limit=2))
    assert problem.what.endswith(
        "must return a stream of the same graph, got <stream of 'read'> of another"
    )


def test_only_a_stream_of_the_same_graph_can_be_joined() -> None:
    _, stream = numbers()
    _, foreign = numbers()
    wrong: Any = same
    assert refused(lambda: stream.join(wrong)).what.startswith("join takes a stream, got <function")
    place = here(lines_below=1)
    assert refused(lambda: stream.join(foreign)) == Problem(
        what="join takes a stream of the same graph, got <stream of 'read'> of another",
        where=place,
        mend="pass one, made by this graph",
    )


def test_only_a_latest_of_the_graph_is_published_to() -> None:
    _, stream = numbers()
    fixed = Latest(name="policy", version=0, value=1)
    assert refused(lambda: stream.publish_to(fixed)).what == (
        f"publish_to takes what graph.latest(...) returned, got {fixed!r}"
    )


def test_what_is_published_must_be_what_version_0_was() -> None:
    graph, stream = numbers()
    weights: Feedback[Any] = graph.latest("policy", init=Policy().weights)
    assert refused(lambda: stream.map(spell).publish_to(weights)).what == (
        "latest 'policy' takes bytes, as its init gives, but 'spell' gives str"
    )


def test_a_stage_carries_its_profiles_by_domain() -> None:
    graph, stream = numbers()
    maths, other = Profile(cpu_s=2.0), Profile(cpu_s=1.0, turns=Fixed(3.0))
    stream.map(same).needs({"maths": maths, "default": other}).map(spell).needs(maths)
    assert named(graph, "same").profiles == {"maths": maths, "default": other}
    assert named(graph, "spell").profiles == {"default": maths}


def test_a_need_is_a_profile() -> None:
    _, stream = numbers()
    wrong: Any = {"maths": 3}
    assert refused(lambda: stream.map(same).needs(wrong)).what == (
        "needs of stage 'same' takes a Profile or one for each domain, got 3"
    )


def test_a_method_of_an_object_with_state_is_not_stateless() -> None:
    graph, stream = numbers()
    stateless = Profile(stateless=True)
    batched = stream.batch(2).map(Policy().step)
    assert refused(lambda: batched.needs({"maths": stateless})).what == (
        "stage 'Policy.step' claims stateless=True for domain 'maths', but is a method of a "
        "Policy, an object with state"
    )
    stream.map(same).needs(stateless).map(Verifier(strict=True).verify).needs(stateless)
    assert named(graph, "Verifier.verify").profile().stateless
