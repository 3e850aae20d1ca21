"""What a generic stage returns for the item it is given, and how a hint is shown."""

import dataclasses
import typing
from collections import abc
from typing import Annotated, Any, AnyStr, Generic, Literal, NewType, NoReturn, Self, TypeVar

import pytest
from typing_extensions import TypeIs

from rlgraph.hints import show, solve
from rlgraph.ports import Batch, Latest

T = TypeVar("T")
U = TypeVar("U")
Real = TypeVar("Real", float, int)


class Animal:
    pass


class Crate(Generic[T]):
    pass


class AnimalCrate(Crate[Animal]):
    pass


class Name(str):
    __slots__ = ()


UserId = NewType("UserId", int)
F32 = Annotated[bytes, "f32"]
# Under names of their own, so that nobody modernises them.
OldOptional: Any = typing.Optional
OldList: Any = typing.List  # noqa: UP006


@pytest.mark.parametrize(
    ("param", "source", "result", "solved"),
    [
        (tuple[T, ...], Batch[int], T, int),
        (T, int, list[T], list[int]),
        (T, Batch[int], tuple[T, T], tuple[Batch[int], Batch[int]]),
        (abc.Sequence[T], list[int], T, int),
        (abc.Iterable[T], tuple[int, str], T, int | str),
        (abc.Awaitable[T], abc.Coroutine[Any, Any, int], T, int),
        (abc.Iterable[T], abc.Generator[int, None, None], T, int),
        (T | None, int | None, T, int),
        (T | None, int, T, int),
        (Crate[T], AnimalCrate, T, Animal),
        (Crate[T], Crate, T, Any),
        (abc.Callable[[T], U], abc.Callable[[int], str], dict[T, U], dict[int, str]),
        (abc.Mapping[str, T], dict[str, int], abc.Callable[[T], None], abc.Callable[[int], None]),
        (T, int, Annotated[list[T], "f32"], Annotated[list[int], "f32"]),
        (T, int, T | None, int | None),
        (T, int, abc.Callable[..., T], abc.Callable[..., int]),
        (T, int, Literal["a"], Literal["a"]),
        (T, int, TypeIs[T], TypeIs[int]),
        (T, int, U, Any),
        (T, int, list[U], list[Any]),
        (Any, int, T, Any),
        (int, int, str, str),
        (AnyStr, Name, AnyStr, str),
        (tuple[T, T], tuple[bool, int], T, int),
        (tuple[T, T], tuple[int, str], T, int | str),
        (Real, int, Real, int),
        (Real, bool, Real, float),
        (tuple[T, T], tuple[int, bool], T, int),
    ],
)
def test_the_item_settles_what_a_generic_function_returns(
    param: Any, source: Any, result: Any, solved: Any
) -> None:
    assert solve(param, source, result) == solved


@pytest.mark.parametrize(
    ("hint", "text"),
    [
        (int, "int"),
        (None, "None"),
        (type(None), "None"),
        (Any, "Any"),
        (tuple[Animal, ...], "Batch[Animal]"),
        (tuple[int, str], "tuple[int, str]"),
        (tuple[()], "tuple[()]"),
        (OldOptional[Animal], "Animal | None"),
        (None | int | str, "int | str | None"),
        (list[Batch[int]], "list[Batch[int]]"),
        (Latest[Animal], "Latest[Animal]"),
        (abc.Callable[[int], str], "Callable[[int], str]"),
        (abc.Callable[..., str], "Callable[..., str]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (F32, "Annotated[bytes, 'f32']"),
        (T, "T"),
        (UserId, "UserId"),
        (NoReturn, "NoReturn"),
        (Self, "Self"),
        (typing.ForwardRef("Later"), "Later"),
        (OldList[int], "list[int]"),
        (dataclasses.make_dataclass("Made", ["x"]), "Made"),
    ],
)
def test_a_hint_is_shown_short(hint: Any, text: str) -> None:
    assert show(hint) == text


def test_a_class_made_in_a_function_is_shown_by_its_own_name() -> None:
    class Local:
        pass

    assert show(list[Local]) == "list[Local]"
