"""What a callable is made of, and what of it cannot be sent: P12 of the cases."""

import functools
import threading
from collections import abc
from typing import Any

import pytest

from rlgraph.hints.anatomy import callable_name, core_of, uncarriable


def score(item: int, scale: float = 1.0) -> str:
    return str(item * scale)


class Scorer:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, item: int) -> float:
        return item * self.scale


LOCK = threading.Lock()


class Engine:
    def __init__(self, lock: object) -> None:
        self.parts = {"lock": [lock]}

    def act(self, item: int) -> int:
        return item


class Slotted:
    __slots__ = ("empty", "lock")

    def __init__(self, lock: object) -> None:
        self.lock = lock

    def __call__(self, item: int) -> int:
        return item


class Stubborn:
    def __call__(self, item: int) -> int:
        return item

    def __reduce__(self) -> str:
        raise NotImplementedError


class Ring(Stubborn):
    def __init__(self) -> None:
        self.ring = self


def closing(value: Any) -> abc.Callable[[int], Any]:
    def middle(item: int) -> Any:
        return value, item

    def outer(item: int) -> Any:
        return middle(item), unset

    if value is None:
        unset = 0
    return outer


def defaulting(value: Any) -> abc.Callable[..., Any]:
    def stage(item: int, guard: Any = value) -> Any:
        return guard

    return stage


def test_what_can_be_sent_captures_nothing_that_cannot() -> None:
    assert uncarriable(score) is None
    assert uncarriable(lambda item: item + 1) is None
    assert uncarriable(closing(3)) is None
    assert uncarriable(Scorer(1.0)) is None
    assert uncarriable(functools.partial(Engine(None).act)) is None


@pytest.mark.parametrize(
    ("fn", "named"),
    [
        (closing(LOCK), "middle.value (lock)"),
        (closing(x for x in ()), "middle.value (generator)"),
        (defaulting(LOCK), "guard (lock)"),
        (functools.partial(score, scale=LOCK), "scale (lock)"),
        (functools.partial(score, LOCK), "argument 0 (lock)"),
        (functools.partial(closing(LOCK)), "function.middle.value (lock)"),
        (Engine(LOCK).act, "self.parts['lock'][0] (lock)"),
        (Slotted(LOCK), "lock (lock)"),
        (LOCK.acquire, "self (lock)"),
        (Stubborn(), "Stubborn (Stubborn)"),
        (Ring(), "Ring (Ring)"),
    ],
)
def test_the_captured_variable_that_cannot_be_sent_is_named(
    fn: abc.Callable[..., Any], named: str
) -> None:
    assert uncarriable(fn) == named


def test_an_object_that_holds_itself_does_not_hold_up_the_search() -> None:
    engine = Engine(LOCK)
    engine.parts = {"self": [engine], "lock": [LOCK]}  # type: ignore[list-item]
    assert uncarriable(engine.act) == "self.parts['lock'][0] (lock)"


def test_the_function_inside_partials_and_wrappers_is_found_and_named() -> None:
    wrapped = functools.partial(functools.lru_cache(functools.partial(score, 1)))
    assert core_of(wrapped) is score
    assert callable_name(wrapped) == "score"
    assert callable_name(functools.partial(Scorer(1.0))) == "Scorer"
    assert callable_name(defaulting(1)) == "stage"
    assert callable_name(Engine(None).act) == "Engine.act"
    assert callable_name(len) == "len"
