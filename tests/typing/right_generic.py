"""Generic stages, subclasses, partials: what comes out follows from what goes in."""

import functools
from typing import Generic, TypeVar

from typing_extensions import assert_type

from rlgraph.graph import Graph, Stream
from rlgraph.ports import Batch

T = TypeVar("T")


class Animal:
    pass


class Dog(Animal):
    pass


class Keeper(Generic[T]):
    def keep(self, item: T) -> T:
        return item


class DogKeeper(Keeper[Dog]):
    pass


def read() -> list[Dog]:
    return [Dog()]


def name(animal: Animal, prefix: str) -> str:
    return prefix + type(animal).__name__


def longest(texts: Batch[str]) -> str:
    return max(texts, key=len)


def first(items: Batch[T]) -> T:
    return items[0]


def declare(graph: Graph) -> None:
    dogs = assert_type(graph.source(read), Stream[Dog])
    kept = assert_type(dogs.map(DogKeeper().keep), Stream[Dog])
    one = assert_type(kept.batch(2).map(first), Stream[Dog])
    one.map(name, prefix="a ").collect("names")
    named = one.map(functools.partial(name, prefix="the ")).named("again")
    named.batch(2).map(longest).collect("longest")
