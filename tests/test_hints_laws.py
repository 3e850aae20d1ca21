"""Laws of fitting, over random hints: reflexive, transitive, unions, what takes all."""

import typing
from collections import abc
from typing import (
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NoReturn,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
)

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlgraph.hints import fits

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Animal:
    pass


class Dog(Animal):
    pass


class Crate(Generic[T]):
    pass


class DogCrate(Crate[Dog]):
    pass


class Reads(Generic[T_co]):
    pass


class Writes(Generic[T_contra]):
    pass


class Both(Generic[T, U]):
    pass


class Swapped(Both[U, T]):
    pass


class Ints(list[int]):
    pass


class Rows(list[T]):
    pass


class Point(NamedTuple):
    x: int
    label: str


class Movie(TypedDict):
    title: str


class LongMovie(Movie):
    minutes: int


UserId = NewType("UserId", int)
AdminId = NewType("AdminId", UserId)
# On a busy machine an example may take any time.
untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Under a name of its own, so that nobody modernises it.
OldUnion: Any = Union

CLASSES = [int, bool, float, complex, str, bytes, Animal, Dog, object, None, UserId, AdminId]
CLASSES += [Ints, DogCrate, Point, Literal[1], Literal[1, "a"], range, Movie, LongMovie]


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    one = [
        list,
        set,
        abc.Sequence,
        abc.Iterable,
        abc.Collection,
        abc.Iterator,
        Crate,
        Reads,
        Writes,
        Rows,
        type,
    ]
    two = [dict, abc.Mapping, Both, Swapped]
    few = st.lists(inner, max_size=3)
    return st.one_of(
        st.builds(lambda cls, hint: cls[hint], st.sampled_from(one), inner),
        st.builds(lambda cls, k, v: cls[k, v], st.sampled_from(two), inner, inner),
        inner.map(lambda hint: tuple[hint, ...]),
        few.map(lambda hints: tuple[tuple(hints)]),
        st.builds(lambda takes, gives: abc.Callable[takes, gives], few, inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda hints: OldUnion[tuple(hints)]),
    )


HINTS = st.recursive(st.sampled_from(CLASSES), larger, max_leaves=5)


def test_what_only_a_checker_can_count_is_let_pass() -> None:
    assert fits(tuple[int, str, str], tuple[int, *tuple[str, ...]])
    assert fits(tuple[int, *tuple[str, ...]], tuple[int])
    assert fits(int, Unpack[Movie])


@untimed
@given(HINTS)
def test_every_hint_fits_itself_and_whatever_takes_all(hint: Any) -> None:
    assert fits(hint, hint)
    assert fits(hint, object)
    assert fits(hint, Any)
    assert fits(Any, hint)
    assert fits(hint, T)
    assert fits(NoReturn, hint)


@untimed
@given(HINTS, HINTS)
def test_a_union_takes_its_members_and_flows_where_all_of_them_do(a: Any, b: Any) -> None:
    assert fits(a, OldUnion[a, b])
    assert fits(b, OldUnion[a, b])
    for target in (a, b, abc.Sequence[int], object, float):
        assert fits(OldUnion[a, b], target) == (fits(a, target) and fits(b, target))


@st.composite
def wider(draw: st.DrawFn, hint: Any) -> Any:
    """Draw a hint that takes the given one, or, now and then, any other."""
    ways = [
        st.just(object),
        HINTS.map(lambda other: OldUnion[hint, other]),
        st.just(tuple[hint, ...]),
        HINTS,
    ]
    if typing.get_origin(hint) is list:
        ways += [st.just(abc.Sequence[typing.get_args(hint)])]
    above = {bool: int, int: float, float: complex, Dog: Animal, AdminId: UserId, UserId: int}
    if isinstance(hint, abc.Hashable) and hint in above:
        ways += [st.just(above[hint])] * 3
    return draw(st.one_of(ways))


@untimed
@given(st.data())
def test_fitting_is_transitive(data: st.DataObject) -> None:
    first = data.draw(HINTS)
    second = data.draw(wider(first))
    third = data.draw(wider(second))
    if fits(first, second) and fits(second, third):
        assert fits(first, third)
