"""What each verb makes of rates, lengths and scopes, against a naive interpreter of the verbs."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlgraph.graph import Graph, Stream
from rlgraph.graph.node import Node
from rlgraph.ports import Batch


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


def halve(numbers: Batch[int]) -> Batch[int]:
    return numbers[::2]


def pairs(number: int) -> Batch[int]:
    return (number, number)


def total(numbers: Batch[int]) -> int:
    return sum(numbers)


def batches(numbers: Batch[Batch[int]]) -> int:
    return len(numbers)


def numbers() -> tuple[Graph, Stream[int]]:
    graph = Graph("g")
    return graph, graph.source(read)


def named(graph: Graph, name: str) -> Node:
    (node,) = [node for node in graph.nodes if node.name == name]
    return node


CHAINS: list[tuple[Callable[[Stream[int]], Any], str, int]] = [
    (lambda s: s, "1", 0),
    (lambda s: s.map(same), "1", 0),
    (lambda s: s.filter(is_done), "1", 0),
    (lambda s: s.fan_out(8), "8", 0),
    (lambda s: s.fan_out(8, redundancy=2), "8", 0),
    (lambda s: s.fan_out(8).group(), "1", 8),
    (lambda s: s.fan_out(8).group().unbatch(), "8", 0),
    (lambda s: s.fan_out(8).group().unbatch().batch(64), "1/8", 64),
    (lambda s: s.fan_out(2).fan_out(3).group(), "2", 3),
    (lambda s: s.fan_out(2).fan_out(3).group().map(total).group(), "1", 2),
    (lambda s: s.batch(6), "1/6", 6),
    (lambda s: s.batch(6).map(halve), "1/6", 6),
    (lambda s: s.batch(6).map(total), "1/6", 0),
    (lambda s: s.batch(6).map(total).map(pairs), "1/6", 0),
    (lambda s: s.batch(6).filter(lambda batch: True), "1/6", 6),
    (lambda s: s.batch(6).fan_out(2), "1/3", 6),
    (lambda s: s.batch(6).fan_out(2).unbatch(), "2", 0),
    (lambda s: s.batch(6).unbatch(), "1", 0),
    (lambda s: s.batch(6).unbatch().batch(4), "1/4", 4),
    (lambda s: s.batch(6).batch(4), "1/24", 4),
    (lambda s: s.map(pairs).unbatch(2), "2", 0),
    (lambda s: s.map(pairs).unbatch(), "1", 0),
    (lambda s: s.join(s.map(spell)), "1", 0),
    (lambda s: s.fan_out(4).iterate(lambda live: live.map(same), until=is_done, limit=3), "4", 0),
    (lambda s: s.batch(5).iterate(lambda live: live.map(halve), until=any, limit=3), "1/5", 5),
]


@pytest.mark.parametrize(("chain", "rate", "length"), CHAINS)
def test_every_verb_has_a_known_rate_and_length(
    chain: Callable[[Stream[int]], Stream[Any]], rate: str, length: int
) -> None:
    graph, stream = numbers()
    chain(stream).collect("out")
    assert (named(graph, "out").rate, named(graph, "out").length) == (Fraction(rate), length)


Verbs = list[tuple[str, int]]
SIZES = st.integers(1, 4)
VERBS = st.lists(
    st.tuples(st.sampled_from(["map", "fan_out", "group", "batch", "unbatch"]), SIZES), max_size=8
)


def possible(verbs: Verbs) -> Verbs:
    """Drop what no item could pass: a group without siblings, an unbatch of no batch."""
    kept: Verbs = []
    depth, frames = 0, 0
    for verb, size in verbs:
        if (verb == "group" and not frames) or (verb == "unbatch" and not depth):
            continue
        depth += {"group": 1, "batch": 1, "unbatch": -1}.get(verb, 0)
        frames = (
            0
            if verb == "batch"
            else frames + {"fan_out": 1, "unbatch": 1, "group": -1}.get(verb, 0)
        )
        kept.append((verb, size))
    return kept


def applied(verbs: Verbs, num_items: int) -> int:
    """Send items through the verbs, each as the path by which it came and its value."""
    items: list[tuple[tuple[int, ...], Any]] = [((i,), 0) for i in range(num_items)]
    for verb, size in verbs:
        if verb == "fan_out":
            items = [((*path, i), value) for path, value in items for i in range(size)]
        elif verb == "unbatch":
            items = [((*path, i), part) for path, value in items for i, part in enumerate(value)]
        elif verb == "group":
            families: dict[tuple[int, ...], list[Any]] = {}
            for path, value in items:
                families.setdefault(path[:-1], []).append(value)
            items = [(path, tuple(members)) for path, members in families.items()]
        elif verb == "batch":
            values = [value for _, value in items]
            starts = range(0, len(values) - size + 1, size)
            items = [((n,), tuple(values[i : i + size])) for n, i in enumerate(starts)]
    return len(items)


def declared(stream: Stream[Any], verbs: Verbs) -> Stream[Any]:
    lengths: list[int] = []
    """Of the batches around an item, outermost last; ``frames`` of the siblings it has."""
    frames: list[int] = []
    for verb, size in verbs:
        if verb == "map":
            stream = stream.map(lambda item: item)
        elif verb == "fan_out":
            stream, frames = stream.fan_out(size), [*frames, size]
        elif verb == "batch":
            stream, frames = stream.batch(size), []
            lengths.append(size)
        elif verb == "group":
            stream = stream.group()
            lengths.append(frames.pop())
        else:
            frames.append(lengths[-1])
            stream = stream.unbatch(lengths.pop())
    return stream


@given(VERBS)
def test_the_declared_rate_is_what_a_naive_interpreter_of_the_verbs_counts(verbs: Verbs) -> None:
    verbs = possible(verbs)
    graph, stream = numbers()
    declared(stream.map(lambda number: number), verbs).collect("out")
    rate = named(graph, "out").rate
    num_items = 1
    for verb, size in verbs:
        num_items *= size if verb == "batch" else 1
    assert rate * num_items == applied(verbs, num_items)


def test_items_are_known_by_their_source_and_the_siblings_that_are_still_open() -> None:
    graph, stream = numbers()
    members = stream.fan_out(2).map(same)
    members.group().collect("groups")
    members.group().unbatch().collect("apart")
    assert named(graph, "groups").scope == named(graph, "read").scope
    assert named(graph, "same").scope.frames == (named(graph, "fan_out").index,)
    assert named(graph, "apart").scope.frames == (named(graph, "unbatch").index,)


def test_a_batch_numbers_its_items_anew() -> None:
    graph, stream = numbers()
    stream.batch(2).collect("out")
    assert named(graph, "out").scope.origin == named(graph, "batch").index


def test_a_body_is_inside_its_iterate_and_nested_bodies_inside_both() -> None:
    def outer(live: Stream[int]) -> Stream[int]:
        return live.iterate(inner, until=is_done, limit=2).map(same)

    def inner(live: Stream[int]) -> Stream[int]:
        return live.map(Verifier(strict=True).verify)

    graph, stream = numbers()
    stream.iterate(outer, until=is_done, limit=3).collect("out")
    graph.check()
    outside, inside = named(graph, "outer"), named(graph, "inner")
    assert named(graph, "Verifier.verify").scope.inside == (outside.index, inside.index)
    assert named(graph, "same").scope == named(graph, "outer round").scope
    assert named(graph, "out").scope == outside.scope


def test_what_was_a_pair_can_be_joined_after_an_iterate() -> None:
    graph, stream = numbers()
    started = stream.fan_out(2)
    done = started.iterate(lambda live: live.map(same), until=is_done, limit=2)
    started.join(done).group().collect("pairs")
    graph.check()
