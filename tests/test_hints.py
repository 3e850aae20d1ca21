"""Type hints as edges: P3 of the cases."""

import collections
import collections.abc as abc
import enum
import types
import typing
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NoReturn,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
)

import pytest
from typing_extensions import TypeAliasType, TypeIs
from typing_extensions import TypeVar as TypingTypeVar

from rlgraph.hints import fits
from rlgraph.ports import Batch, Latest

T = TypeVar("T")
U = TypeVar("U")
P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
Inferred = TypingTypeVar("Inferred", infer_variance=True)


class Animal:
    legs: int = 4

    def speak(self) -> str:
        return ""


class Dog(Animal):
    def __init__(self) -> None:
        self.tail = True


class Speaks(Protocol):
    def speak(self) -> str: ...


class SpeaksAndFlies(Speaks, Protocol):
    def fly(self) -> None: ...


class HasLegs(Protocol):
    legs: int


class HasTail(Protocol):
    tail: bool


class HasName(Protocol):
    name: str


@typing.runtime_checkable
class Calls(Protocol):
    def __call__(self, item: int) -> str: ...


class Caller:
    def __call__(self, item: int) -> str:
        return ""


class Crate(Generic[T]):
    pass


class DogCrate(Crate[Dog]):
    pass


class DogCrateAgain(DogCrate):
    pass


class Reads(Generic[T_co]):
    pass


class Writes(Generic[T_contra]):
    pass


class Both(Generic[T, U]):
    pass


class Swapped(Both[U, T]):
    pass


class Handler(Generic[P, T]):
    pass


class Guesses(Generic[Inferred]):
    pass


class Stack(abc.Sized):
    def __len__(self) -> int:
        return 0

    def __iter__(self) -> abc.Iterator[int]:
        return iter(())


class Ints(list[int]):
    pass


class Rows(list[T]):
    pass


class Name(str):
    __slots__ = ()


class Point(NamedTuple):
    x: int
    label: str


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


class Movie(TypedDict):
    title: str


class LongMovie(Movie):
    minutes: int


class Show(TypedDict):
    title: str


class LooseMovie(TypedDict, total=False):
    title: str


class Unresolvable(TypedDict):
    title: "Missing"  # type: ignore[name-defined]  # noqa: F821


class Tree(TypedDict):
    children: "list[Tree]"


class OtherTree(TypedDict):
    children: "list[OtherTree]"


class Meta(type):
    pass


class Made(metaclass=Meta):
    pass


UserId = NewType("UserId", int)
AdminId = NewType("AdminId", UserId)
Tokens = TypeAliasType("Tokens", list[int])
Pair = TypeAliasType("Pair", tuple[T, T], type_params=(T,))
Hurdle = TypeVar("Hurdle", bound=Animal)

# Under names of their own, so that nobody modernises them.
OldOptional: Any = typing.Optional
OldUnion: Any = typing.Union
OldList: Any = typing.List  # noqa: UP006

F32 = Annotated[bytes, "f32"]
BF16 = Annotated[bytes, "bf16"]

FIT = [
    # classes
    (int, int),
    (Dog, Animal),
    (Dog, object),
    (int, Any),
    (Any, int),
    (None, None),
    (None, type(None)),
    (NoReturn, int),
    (typing.Never, int),
    (Meta, type),
    # the numeric tower
    (bool, int),
    (int, float),
    (float, complex),
    (int, complex),
    (bool, float),
    (Number, int),
    # unions
    (int, int | str),
    (OldOptional[int], int | None),
    (OldUnion[int, str], OldUnion[str, int, None]),
    (int | bool, float),
    (list[int] | list[str], list[Any]),
    # literals
    (Literal[1], int),
    (Literal[1], Literal[1, 2]),
    (Literal["a", 1], int | str),
    (Literal[Colour.RED], Colour),
    (Literal[None], None),
    # annotated
    (F32, F32),
    (F32, bytes),
    (bytes, BF16),
    (list[F32], list[bytes]),
    # NewType
    (UserId, int),
    (AdminId, UserId),
    (AdminId, int),
    # built-in generics
    (list[int], list[int]),
    (list[int], list),
    (list, list[int]),
    (list[int], list[Any]),
    (OldList[int], list[int]),
    (OldList, list[int]),
    (list[bool], abc.Sequence[int]),
    (list[int], abc.Iterable[float]),
    (dict[str, bool], abc.Mapping[str, int]),
    (dict[str, int], abc.Iterable[str]),
    (collections.Counter[str], dict[str, int]),
    (collections.OrderedDict[str, int], dict[str, int]),
    (dict[str, int], abc.Mapping),
    (set[int], abc.Collection[int]),
    (str, abc.Sequence[str]),
    (Name, abc.Iterable[str]),
    (bytes, abc.Iterable[int]),
    (range, abc.Sequence[int]),
    (abc.ItemsView[str, int], abc.Iterable[tuple[str, int]]),
    (abc.Generator[int, str, None], abc.Iterator[int]),
    (abc.Generator[int, float, None], abc.Generator[int, int, None]),
    (abc.Coroutine[Any, Any, int], abc.Awaitable[int]),
    (Ints, list[int]),
    (Ints, abc.Sequence[float]),
    (Rows[int], list[int]),
    (Rows[int], Rows[int]),
    (Rows, list[int]),
    # tuples
    (tuple[int, str], tuple[float, str]),
    (tuple[int, int], tuple[int, ...]),
    (tuple[bool, ...], Batch[int]),
    (tuple[()], tuple[int, ...]),
    (tuple[()], tuple[()]),
    (tuple[()], abc.Sequence[int]),
    (tuple, tuple[int, str]),
    (tuple[int, str], tuple),
    (tuple[Any, ...], tuple[int, str]),
    (tuple[int, str], abc.Sequence[int | str]),
    (tuple[int, ...], abc.Sequence[int]),
    (Point, tuple[int, str]),
    (Point, abc.Iterable[int | str]),
    # user generics
    (Crate[int], Crate[int]),
    (Crate[int], Crate),
    (Crate, Crate[int]),
    (DogCrate, Crate[Dog]),
    (DogCrateAgain, Crate[Dog]),
    (Reads[Dog], Reads[Animal]),
    (Writes[Animal], Writes[Dog]),
    (Swapped[int, str], Both[int, str]),
    (Latest[bool], Latest[int]),
    (Latest[int], abc.Hashable),
    (types.GenericAlias, object),
    (Guesses[bool], Guesses[int]),
    (Guesses[int], Guesses[bool]),
    (Handler[[int], str], Handler[[int, int], str]),
    (Stack, abc.Iterable[str]),
    # callables
    (abc.Callable[[Animal], Dog], abc.Callable[[Dog], Animal]),
    (abc.Callable[[int], str], abc.Callable[..., str]),
    (abc.Callable[..., str], abc.Callable[[int], str]),
    (abc.Callable[P, str], abc.Callable[[int], str]),
    (abc.Callable[[int], str], abc.Callable),
    (abc.Callable, abc.Callable[[int], str]),
    (abc.Callable[[int], str], abc.Hashable),
    (Caller, abc.Callable[[int], str]),
    (type[Dog], abc.Callable[..., Dog]),
    (abc.Callable[[int], str], Calls),
    # type[...]
    (type[Dog], type[Animal]),
    (type[Dog], type),
    (type, type[Dog]),
    (Meta, type[Made]),
    # protocols
    (Dog, Speaks),
    (Animal, HasLegs),
    (Dog, HasTail),
    (SpeaksAndFlies, Speaks),
    (Caller, Calls),
    (int, typing.SupportsInt),
    (list[int], abc.Sized),
    # typed dictionaries
    (LongMovie, Movie),
    (Show, Movie),
    (Movie, abc.Mapping[str, object]),
    (Movie, abc.Mapping),
    (Movie, object),
    (Tree, OtherTree),
    (Unresolvable, Movie),
    # type variables
    (int, T),
    (list[int], T),
    (tuple[int, int], tuple[T, T]),
    (dict[str, str], dict[T, T]),
    (tuple[int, str], tuple[T, T]),
    (tuple[list[int], bool], tuple[list[T], T]),
    (list[list[int]], list[list[T]]),
    (Dog, Hurdle),
    (Any, Hurdle),
    (str, typing.AnyStr),
    (Name, typing.AnyStr),
    (tuple[Name, str], tuple[typing.AnyStr, typing.AnyStr]),
    (None, T | None),
    (int, None | T),
    (T, T),
    (T, int),
    (abc.Callable[[int], str], abc.Callable[[T], U]),
    (abc.Callable[[int, int], str], abc.Callable[[T, T], U]),
    (abc.Callable[[typing.AnyStr], typing.AnyStr], abc.Callable[[str], str]),
    # spelling
    (Tokens, list[int]),
    (Pair[int], tuple[int, int]),
    (typing.Final[int], int),
    (typing.LiteralString, str),
    (int, typing.Self),
    (TypeIs[Dog], bool),
    ("Unresolved", int),
]

NO_FIT = [
    (int, str),
    (Animal, Dog),
    (object, int),
    (int, NoReturn),
    (None, int),
    (int, Meta),
    (float, int),
    (int, bool),
    (complex, float),
    (int | None, int),
    (int | str, int | None),
    (Literal[1, "a"], int),
    (int, Literal[1]),
    (Literal[1], Literal[2]),
    (Literal[1], Literal[True]),
    (F32, BF16),
    (list[F32], list[BF16]),
    (Batch[F32], Batch[BF16]),
    (int, UserId),
    (UserId, AdminId),
    (float, list[float]),
    (list[bool], list[int]),
    (list[int], abc.Sequence[str]),
    (abc.Sequence[int], list[int]),
    (dict[str, bool], dict[str, int]),
    (abc.Mapping[bool, int], abc.Mapping[int, int]),
    (dict[str, int], abc.Iterable[int]),
    (collections.Counter[str], dict[str, str]),
    (set[bool], set[int]),
    (str, abc.Sequence[int]),
    (abc.Generator[int, int, None], abc.Generator[int, float, None]),
    (abc.Coroutine[int, int, str], abc.Awaitable[int]),
    (Ints, list[str]),
    (Ints, Rows[int]),
    (Rows[int], list[str]),
    (Rows[bool], Rows[int]),
    (tuple[int, str], tuple[int, int]),
    (tuple[int, str], tuple[int]),
    (tuple[int, ...], tuple[int, int]),
    (tuple[int, str], tuple[int, ...]),
    (tuple[int, ...], tuple[()]),
    (tuple[int, str], abc.Sequence[int]),
    (tuple[int, ...], int),
    (Point, tuple[int, int]),
    (Crate[bool], Crate[int]),
    (DogCrate, Crate[Animal]),
    (DogCrateAgain, Crate[str]),
    (Reads[Animal], Reads[Dog]),
    (Writes[Dog], Writes[Animal]),
    (Swapped[int, str], Both[str, int]),
    (Latest[int], Latest[str]),
    (Guesses[int], Guesses[str]),
    (Handler[[int], str], Handler[[int], int]),
    (abc.Callable[[Dog], Dog], abc.Callable[[Animal], Dog]),
    (abc.Callable[[Dog], Animal], abc.Callable[[Dog], Dog]),
    (abc.Callable[[int, int], str], abc.Callable[[int], str]),
    (abc.Callable[..., int], abc.Callable[..., str]),
    (abc.Callable[[int], str], Speaks),
    (int, abc.Callable[..., Any]),
    (type[Animal], type[Dog]),
    (int, type[int]),
    (type[int], int),
    (Animal, HasTail),
    (Animal, HasName),
    (Animal, SpeaksAndFlies),
    (int, Calls),
    (int, abc.Sized),
    (Movie, LongMovie),
    (Movie, LooseMovie),
    (Unresolvable, LongMovie),
    (LooseMovie, Movie),
    (Movie, Tree),
    (Movie, dict[str, Any]),
    (Movie, abc.Mapping[str, str]),
    (dict[str, str], Movie),
    (dict[str, int], dict[T, T]),
    (tuple[list[int], list[str]], tuple[list[T], list[T]]),
    (tuple[bool, list[int], str], tuple[T, list[T], T]),
    (tuple[str, list[int]], tuple[T, list[T]]),
    (tuple[list[bool], list[int]], tuple[list[T], list[T]]),
    (list[int] | list[str], list[T]),
    (int, Hurdle),
    (list[int], list[Hurdle]),
    (int, typing.AnyStr),
    (tuple[str, bytes], tuple[typing.AnyStr, typing.AnyStr]),
    (abc.Callable[[int, str], str], abc.Callable[[T, T], list[T]]),
    (abc.Callable[[typing.AnyStr], typing.AnyStr], abc.Callable[[str], bytes]),
    (Tokens, list[str]),
    (Pair[int], tuple[str, str]),
    (5, int),
    (int, 5),
]


@pytest.mark.parametrize(("source", "target"), FIT)
def test_a_value_flows_into_a_port_that_takes_its_hint(source: Any, target: Any) -> None:
    assert fits(source, target)


@pytest.mark.parametrize(("source", "target"), NO_FIT)
def test_a_value_is_kept_from_a_port_of_another_hint(source: Any, target: Any) -> None:
    assert not fits(source, target)


def test_a_failed_union_member_leaves_no_trace_in_the_solution() -> None:
    # list[T] binds T to int before str is refused; then only the second member fits.
    source = tuple[tuple[list[int], str], int]
    assert fits(source, tuple[tuple[list[T], int] | tuple[list[int], T], T])


def test_fitting_is_transitive_over_every_three_of_the_table() -> None:
    untold = {"Unresolved"}
    table = [each for pair in FIT + NO_FIT for each in pair if each not in untold]
    hints = [hint for hint in table if _is_certain(hint)]
    hints = [hint for i, hint in enumerate(hints) if hint not in hints[:i]]
    above = {i: {j for j, b in enumerate(hints) if fits(a, b)} for i, a in enumerate(hints)}
    broken = [
        (hints[i], hints[j], hints[k])
        for i, reached in above.items()
        for j in reached
        for k in above[j] - reached
    ]
    assert broken == []


def _is_certain(hint: Any) -> bool:
    """Tell whether the hint leaves nothing open: no Any, no bare generic, no variable, no tag."""
    bare = (list, OldList, tuple, type, abc.Callable, abc.Mapping, Crate, Rows)
    loose = (Any, ..., typing.Self, typing.Final, Meta, Stack, Unresolvable)
    if hint in bare or hint in loose or getattr(hint, "_is_protocol", False):
        return False
    if isinstance(hint, (TypeVar, ParamSpec)) or hasattr(hint, "__metadata__") or hint == 5:
        return False
    if typing.get_origin(hint) in (Guesses, Handler):
        return False
    if isinstance(hint, list):
        return all(map(_is_certain, hint))
    if typing.get_origin(hint) is Literal or hint in (abc.Hashable, object):
        return hint is object
    return all(map(_is_certain, typing.get_args(hint)))
