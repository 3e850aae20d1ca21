from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rlgraph import Graph, RunError
from rlgraph.graph.node import Node
from rlgraph.running.sources import items_of
from rlgraph.scheduling import Snapshot

FRESH = Snapshot()


def source(read: Callable[[], Iterable[Any]]) -> Node:
    g = Graph("sources")
    g.source(read).named("tasks")
    return g.nodes[0]


def letters() -> Iterator[str]:
    yield from "abcdef"


def resumed(cursor: int, *unfinished: int) -> Snapshot:
    return Snapshot(cursors={"tasks": cursor}, unfinished={"tasks": unfinished})


def test_every_item_of_a_fresh_run_is_new() -> None:
    assert list(items_of(source(letters), FRESH)) == [
        (None, letter, "default") for letter in "abcdef"
    ]


def test_a_resumed_run_gets_what_was_unfinished_by_its_number_and_then_what_is_new() -> None:
    assert list(items_of(source(letters), resumed(4, 1, 3))) == [
        (1, "b", "default"),
        (3, "d", "default"),
        (None, "e", "default"),
        (None, "f", "default"),
    ]


def test_a_run_resumed_at_the_end_of_its_source_gets_nothing_new() -> None:
    assert list(items_of(source(letters), resumed(6))) == []


def test_a_source_shorter_than_it_was_is_refused() -> None:
    message = "'tasks' gave 6 items, but the run that is resumed had read 7; to mend: let it give"
    with pytest.raises(RunError, match=message):
        list(items_of(source(letters), resumed(7)))


def test_an_empty_source_is_refused() -> None:
    with pytest.raises(RunError, match="source 'tasks' gave no item; to mend: look at what it"):
        list(items_of(source(list), FRESH))


def test_a_source_is_opened_at_its_first_item() -> None:
    opened: list[str] = []

    def read() -> list[int]:
        opened.append("now")
        return [1]

    items = items_of(source(read), FRESH)
    assert opened == []
    assert (next(items), opened) == ((None, 1, "default"), ["now"])


def test_a_source_is_read_no_further_than_it_is_asked_for() -> None:
    given: list[str] = []

    def read() -> Iterator[str]:
        for letter in letters():
            given.append(letter)
            yield letter

    items = items_of(source(read), FRESH)
    next(items)
    assert given == ["a"]


def test_what_a_source_raises_says_after_which_item() -> None:
    def read() -> Iterator[int]:
        yield from range(3)
        raise OSError("disk gone")

    items = items_of(source(read), FRESH)
    assert [next(items)[1] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="disk gone") as raised:
        next(items)
    assert raised.value.__notes__ == ["while source 'tasks' was read, after 3 items"]


def test_what_opening_a_source_raises_says_so_too() -> None:
    def read() -> list[int]:
        raise FileNotFoundError("tasks.jsonl")

    with pytest.raises(FileNotFoundError) as raised:
        next(items_of(source(read), FRESH))
    assert raised.value.__notes__ == ["while source 'tasks' was read, after 0 items"]


def test_a_source_that_returns_no_iterable_is_refused() -> None:
    node = source(lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(RunError, match="'tasks' returned NoneType, which is not iterable; to mend"):
        next(items_of(node, FRESH))


def test_an_item_may_name_its_domain() -> None:
    named = [SimpleNamespace(domain="maths"), SimpleNamespace(domain=7), SimpleNamespace()]
    domains = [domain for _, _, domain in items_of(source(lambda: named), FRESH)]
    assert domains == ["maths", "default", "default"]


def test_an_item_whose_domain_cannot_be_read_is_refused() -> None:
    class Task:
        @property
        def domain(self) -> str:
            raise KeyError("unknown")

    items = items_of(source(lambda: ["fine", Task()]), FRESH)
    next(items)
    message = "item 2 of source 'tasks', a Task, raised KeyError when its domain was read; to mend"
    with pytest.raises(RunError, match=message) as raised:
        next(items)
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_source_that_exits_does_not_pass_for_one_that_ended_well() -> None:
    def read() -> Iterator[int]:
        yield 1
        sys.exit(0)

    items = items_of(source(read), FRESH)
    next(items)
    with pytest.raises(RunError, match="'tasks' called for an exit after 1 items; to mend: raise"):
        next(items)
