"""What only the whole graph can tell: each rule, and all of them in one error (P1, P2)."""

from typing import Any

import pytest

from rlgraph.errors import GraphError, Problem, not_a_multiple
from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch, Latest
from rlgraph.profile import Profile
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


def log(number: int) -> None: ...


def is_done(number: int) -> bool:
    return number > 9


def total(numbers: Batch[int]) -> int:
    return sum(numbers)


def pairs(number: int) -> Batch[int]:
    return (number, number)


def pack(numbers: Batch[int]) -> bytes:
    return bytes(len(numbers))


def use(number: int, weights: Latest[bytes]) -> int:
    return number


def numbers() -> tuple[Graph, Stream[int]]:
    graph = Graph("g")
    return graph, graph.source(read)


def test_a_graph_without_a_stage_is_refused() -> None:
    assert problem(Graph("g")) == Problem(
        what="the graph has no stage",
        where="the graph",
        mend="open a stream with graph.source(...)",
    )


def test_what_nothing_takes_is_an_orphan() -> None:
    graph, stream = numbers()
    stream.map(log)
    stream.map(same)
    assert problem(graph) == Problem(
        what="nothing takes what 'same' gives",
        where=here(lines_below=-3),
        mend="publish it, .collect(name) it, drop the stage, or annotate its function with -> None",
    )


def test_a_body_that_ignores_its_items_leaves_an_orphan() -> None:
    graph, stream = numbers()
    stream.iterate(lambda live: stream.map(same), until=is_done, limit=2).collect("out")
    assert "nothing takes what '<lambda> round' gives" in [p.what for p in problems(graph)]


def test_an_unbatch_of_unknown_length_is_mended_by_saying_it() -> None:
    graph, stream = numbers()
    stream.map(pairs).unbatch().collect("out")
    assert problem(graph) == Problem(
        what="unbatch after 'pairs' cannot tell how many items each batch holds",
        where=here(lines_below=-3),
        mend="say it: .unbatch(size)",
    )


def test_an_unbatch_of_another_length_than_the_batch_is_refused() -> None:
    graph, stream = numbers()
    stream.batch(4).unbatch(2).collect("out")
    assert problem(graph) == Problem(
        what="unbatch(2) after 'batch', whose batches hold 4 items",
        where=here(lines_below=-3),
        mend="write .unbatch(), or see to it that 'batch' gets 2",
    )


def test_a_group_needs_siblings() -> None:
    graph, stream = numbers()
    stream.group().collect("out")
    assert problem(graph) == Problem(
        what="group has no siblings to bring together: no fan_out is open above it",
        where=here(lines_below=-3),
        mend="put .fan_out(size) above it",
    )


@pytest.mark.parametrize(
    ("end", "name"),
    [
        (lambda stream: stream.collect("out"), "out"),
        (lambda stream: stream.batch(4).map(total).collect("out"), "batch"),
    ],
)
def test_siblings_are_grouped_before_they_leave(end: Any, name: str) -> None:
    graph, stream = numbers()
    place = here(lines_below=1)
    members = stream.fan_out(4)
    end(members.map(same))
    found = problem(graph)
    assert found.what == (f"the siblings of fan_out(4) at {place} reach {name!r} without a group")
    assert found.mend == (
        "bring them together with .group(), and take them apart again with .unbatch() where "
        "single items are wanted"
    )


def test_siblings_are_grouped_before_they_are_published() -> None:
    graph, stream = numbers()
    weights = graph.latest("policy", init=Policy().weights, max_staleness=3)
    spread = stream.fan_out(2).map(use, weights)
    spread.map(lambda number: b"").publish_to(weights)
    assert problem(graph).what.endswith("reach 'publish policy' without a group")


def test_a_batch_holds_whole_groups() -> None:
    graph, stream = numbers()
    stream.fan_out(16).group().unbatch().batch(60).map(total).collect("out")
    assert problem(graph) == Problem(
        what="batch of 60 is not a multiple of group of 16: 60 = 3 x 16 + 12",
        where=here(lines_below=-3),
        mend="use 48 or 64",
    )


def test_a_batch_smaller_than_a_group_is_mended_by_the_size_of_the_group() -> None:
    found = not_a_multiple("batch of ", 5, "group of ", 16, where="here:1")
    assert found is not None
    assert (found.what, found.mend) == (
        "batch of 5 is not a multiple of group of 16: 5 = 0 x 16 + 5",
        "use 16",
    )


def test_a_multiple_is_no_problem() -> None:
    assert not_a_multiple("batch of ", 64, "group of ", 16, where="here:1") is None


def test_a_stream_is_not_joined_with_itself() -> None:
    graph, stream = numbers()
    stream.join(stream).collect("out")
    assert problem(graph) == Problem(
        what="'read' is joined with itself",
        where=here(lines_below=-3),
        mend="join two different streams",
    )


def test_only_items_of_the_same_lineage_are_joined() -> None:
    graph, stream = numbers()
    members = stream.fan_out(2).map(same)
    stream.join(members).collect("pairs")
    assert problem(graph) == Problem(
        what="'read' and 'same' cannot be joined: their items have other lineages (rates 1 and 2, "
        "lineage read and lineage read x fan_out)",
        where=here(lines_below=-4),
        mend="join streams that come from the same source through the same fan_outs, groups and "
        "iterates",
    )


@pytest.mark.parametrize(
    "other",
    [
        lambda graph, stream: graph.source(lambda: [2]),
        lambda graph, stream: stream.batch(2),
        lambda graph, stream: stream.fan_out(2).group().unbatch(),
        lambda graph, stream: stream.fan_out(2),
    ],
)
def test_sources_batches_and_fan_outs_number_their_items_apart(other: Any) -> None:
    graph, stream = numbers()
    stream.join(other(graph, stream)).map(lambda pair: None).collect("out")
    assert "cannot be joined" in problems(graph)[0].what


def test_groups_of_two_fan_outs_of_one_source_can_be_joined() -> None:
    graph, stream = numbers()
    left, right = stream.fan_out(2).group(), stream.fan_out(3).group()
    left.join(right).collect("out")
    graph.check()


def test_a_body_that_changes_the_rate_is_refused() -> None:
    graph, stream = numbers()
    threes = stream.fan_out(3)
    place = here(lines_below=1)
    threes.iterate(lambda live: live.fan_out(2).map(same), until=is_done, limit=2).map(log)
    assert problem(graph) == Problem(
        what="the body of '<lambda>' must give one item for each it takes, from its own stream: "
        "rate 2, lineage read x fan_out x fan_out 2 x <lambda> instead of "
        "lineage read x fan_out x <lambda>",
        where=place,
        mend="return a stream that starts from the body's argument, with every fan_out closed by "
        "a group",
    )


def test_a_body_that_gives_back_a_foreign_stream_is_refused() -> None:
    graph, stream = numbers()

    def turn(live: Stream[int]) -> Stream[int]:
        live.map(log)
        return stream.map(same)

    stream.iterate(turn, until=is_done, limit=2).collect("out")
    assert problem(graph).what.endswith(
        "from its own stream: rate 1, lineage read instead of lineage read x turn"
    )


def test_a_foreign_stream_cannot_be_joined_in_a_body() -> None:
    graph, stream = numbers()

    def turn(live: Stream[int]) -> Stream[int]:
        return live.join(stream).map(lambda pair: pair[0])

    stream.iterate(turn, until=is_done, limit=2).collect("out")
    assert problem(graph).what.startswith("'turn round' and 'read' cannot be joined")


@pytest.mark.parametrize(
    ("body", "last"),
    [
        (lambda live: live.fan_out(2).group(), "group"),
        (lambda live: live.map(same).filter(is_done), "is_done"),
        (lambda live: live.fan_out(2).group().unbatch().map(same).group(), "group 2"),
    ],
)
def test_a_body_ends_with_a_call(body: Any, last: str) -> None:
    graph = Graph("g")
    untyped: Stream[Any] = graph.source(lambda: [1])
    place = here(lines_below=1)
    untyped.iterate(body, until=lambda item: True, limit=2).named("play").collect("out")
    assert problem(graph) == Problem(
        what=f"the body of 'play' ends with {last!r}; only after a call can it be asked whether "
        "the round was the last",
        where=place,
        mend="end the body with .map(fn)",
    )


def test_a_body_that_does_nothing_is_refused() -> None:
    graph, stream = numbers()
    stream.iterate(lambda live: live, until=is_done, limit=2).named("play").collect("out")
    assert problem(graph) == Problem(
        what="the body of 'play' gives back what it takes: no round changes it",
        where=here(lines_below=-3),
        mend="call something in the body: live.map(fn)",
    )


def test_a_stream_that_leaks_out_of_a_body_cannot_end_there() -> None:
    leaked: list[Stream[int]] = []

    def turn(live: Stream[int]) -> Stream[int]:
        leaked.append(live.map(same))
        return leaked[0].map(lambda number: number + 1)

    graph, stream = numbers()
    stream.iterate(turn, until=is_done, limit=2).collect("last")
    leaked[0].collect("every")
    assert problem(graph) == Problem(
        what="collect of 'same' takes items out of the body of iterate 'turn': how many rounds "
        "give one cannot be known",
        where=here(lines_below=-4),
        mend="return the stream from the body, and collect what iterate returns",
    )


def test_a_leaked_stream_cannot_be_joined_outside() -> None:
    leaked: list[Stream[int]] = []

    def turn(live: Stream[int]) -> Stream[int]:
        leaked.append(live.map(same))
        return leaked[0].map(lambda number: number + 1)

    graph, stream = numbers()
    stream.iterate(turn, until=is_done, limit=2).join(leaked[0]).collect("pairs")
    assert problem(graph).what.startswith("'turn' and 'same' cannot be joined")


def test_no_batch_is_made_in_a_body() -> None:
    graph, stream = numbers()

    def turn(live: Stream[int]) -> Stream[int]:
        live.batch(2).map(pack).map(lambda packed: None).collect("packed")
        return live.map(same)

    stream.iterate(turn, until=is_done, limit=2).collect("out")
    assert [p.what.partition(":")[0] for p in problems(graph)] == [
        "batch of 'turn round' takes items out of the body of iterate 'turn'",
        "collect of '<lambda>' takes items out of the body of iterate 'turn'",
    ]


def test_what_logs_in_a_body_is_no_orphan() -> None:
    def turn(live: Stream[int]) -> Stream[int]:
        live.map(log)
        return live.map(same)

    graph, stream = numbers()
    stream.iterate(turn, until=is_done, limit=2).collect("out")
    graph.check()


def test_two_stages_of_one_name_are_told_with_both_places() -> None:
    graph, stream = numbers()
    first = here(lines_below=1)
    stream.map(same).collect("first")
    stream.map(same).collect("second")
    assert problem(graph) == Problem(
        what=f"2 stages are named 'same'; also at {first}",
        where=here(lines_below=-3),
        mend="give one another name: .named('same_2')",
    )


def test_a_name_is_asked_for_once_though_many_share_it() -> None:
    graph, stream = numbers()
    for _ in range(3):
        stream.map(log)
    stream.batch(2).named("log").map(total).map(log)
    (found,) = problems(graph)
    assert found.what.startswith("5 stages are named 'log'; also at ")


def test_outputs_and_latests_have_names_of_their_own() -> None:
    graph, stream = numbers()
    policy = Policy()
    for number in range(2):
        weights = graph.latest("policy", init=policy.weights)
        generated = stream.map(policy.generate, weights).named(f"generate {number}")
        generated.batch(2).map(policy.step).named(f"step {number}").publish_to(weights)
        stream.collect("policy")
    assert [(p.what.partition(";")[0], p.mend) for p in problems(graph)] == [
        ("2 outputs are named 'policy'", "give one another name: .collect('policy_2')"),
        ("2 latests are named 'policy'", "give one another name: graph.latest('policy_2', ...)"),
    ]


def test_an_output_may_be_named_as_the_stage_that_gives_it() -> None:
    graph, stream = numbers()
    stream.map(same).collect("same")
    graph.check()


def test_everything_wrong_is_told_in_one_error() -> None:
    graph, stream = numbers()
    first = here(lines_below=1)
    graph.latest("policy", init=Policy().weights)
    stream.map(same, extra=1).group().unbatch(2).collect("out")
    stream.batch(2).map(total)
    path, line = first.rsplit(":", 1)
    places = [f"{path}:{int(line) + below}" for below in range(3)]
    with pytest.raises(GraphError) as caught:
        graph.check()
    assert (
        str(caught.value)
        == f"""graph 'g' has 5 problems
  1. stage 'same' has no port 'extra', which is given 1
    at {places[1]}
    to mend: drop it: no port of it is free
  2. group has no siblings to bring together: no fan_out is open above it
    at {places[1]}
    to mend: put .fan_out(size) above it
  3. nothing takes what 'total' gives
    at {places[2]}
    to mend: publish it, .collect(name) it, drop the stage, or annotate its function with -> None
  4. nothing publishes 'policy'
    at {places[0]}
    to mend: end a stream with .publish_to(policy)
  5. no stage reads 'policy'
    at {places[0]}
    to mend: pass it to a stage: .map(fn, policy=policy)"""
    )


def test_one_problem_is_counted_as_one() -> None:
    with pytest.raises(GraphError, match=r"graph 'empty' has 1 problem\n"):
        Graph("empty").check()


def test_needs_of_a_stage_that_calls_nothing_are_refused() -> None:
    graph, stream = numbers()
    stream.fan_out(2).needs(Profile(cpu_s=1.0)).map(same).group().collect("out")
    assert problem(graph) == Problem(
        what="stage 'fan_out' is a fan_out: it calls nothing, so it needs nothing",
        where=here(lines_below=-3),
        mend="put .needs(...) behind the stage that calls the function",
    )


def test_a_source_and_every_call_may_have_needs() -> None:
    some = Profile(cpu_s=1.0)
    graph, stream = numbers()
    stream.needs(some).map(same).needs(some).filter(is_done).needs(some).collect("out")
    graph.check()


def test_a_graph_may_be_checked_twice() -> None:
    graph, stream = numbers()
    stream.map(same)
    assert problems(graph) == problems(graph)
