"""What a stage's callable looks like from outside: P12 and P13 of the cases."""

import asyncio
import dataclasses
import functools
import inspect
import operator
import subprocess
import sys
import types
import typing
from collections import abc
from pathlib import Path
from typing import Annotated, Any, Generic, NamedTuple, Self, TypeVar

import pytest

from rlgraph.errors import GraphError
from rlgraph.hints.callables import Parameter, Signature, owner_of, signature_of
from rlgraph.ports import Batch

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
P = typing.ParamSpec("P")

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD = inspect.Parameter.KEYWORD_ONLY


def port(name: str, hint: Any = Any, *, default: bool = False) -> Parameter:
    return Parameter(name=name, kind=POSITIONAL, hint=hint, has_default=default)


def plain(*ports: Parameter, result: Any = Any) -> Signature:
    return Signature(parameters=ports, result=result, kind="plain")


def score(item: int, scale: float = 1.0) -> str:
    return str(item * scale)


async def fetch(item: int) -> str:
    return str(item)


def pages(item: int) -> abc.Iterator[str]:
    yield str(item)


async def events(item: int) -> abc.AsyncIterator[str]:
    yield str(item)


def logged(fn: abc.Callable[P, R]) -> abc.Callable[P, R]:
    @functools.wraps(fn)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        return fn(*args, **kwargs)

    return inner


class Base(Generic[T, U]):
    def act(self, item: T) -> U:
        raise NotImplementedError

    def again(self) -> Self:
        return self

    @classmethod
    def make(cls, item: T) -> Self:
        return cls()

    @logged
    def timed(self, item: T) -> U:
        raise NotImplementedError

    @staticmethod
    def shout(item: str) -> str:
        return item.upper()

    async def act_later(self, item: Batch[T]) -> list[U]:
        return []


class Half(Base[int, U]):
    pass


class Whole(Half[str]):
    pass


class Overrides(Whole):
    def act(self, item: bool) -> str:  # type: ignore[override]
        return super().act(item)


class Scorer:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, item: int) -> float:
        return item * self.scale


class Fetcher:
    async def __call__(self, item: int) -> float:
        return item


class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item


class Token:
    def __new__(cls, item: int) -> "Token":
        return super().__new__(cls)


@dataclasses.dataclass
class Row:
    item: int
    note: str = ""


class Pair(NamedTuple):
    left: int
    right: str = ""


class Later(NamedTuple):
    left: "int"
    row: "Row"


class Bare:
    pass


class Odd:
    """Shows what `inspect` refuses as a signature."""

    __signature__ = 5

    def __call__(self, item: int) -> str:
        return ""


def test_a_function_shows_its_ports_and_its_result() -> None:
    shown = plain(port("item", int), port("scale", float, default=True), result=str)
    assert signature_of(score) == shown


def test_a_lambda_takes_anything() -> None:
    assert signature_of(lambda item: item) == plain(port("item"))


def test_annotated_metadata_is_kept() -> None:
    def tagged(item: Annotated[int, "f32"]) -> Annotated[int, "bf16"]:
        return item

    shown = plain(port("item", Annotated[int, "f32"]), result=Annotated[int, "bf16"])
    assert signature_of(tagged) == shown


def test_a_partial_shows_what_remains() -> None:
    assert signature_of(functools.partial(score, 1)) == plain(
        port("scale", float, default=True), result=str
    )
    named = signature_of(functools.partial(functools.partial(score), scale=2.0))
    scale = Parameter(name="scale", kind=KEYWORD, hint=float, has_default=True)
    assert named == plain(port("item", int), scale, result=str)


def test_a_wrapped_function_shows_the_function_inside() -> None:
    assert signature_of(logged(score)) == signature_of(score)
    assert signature_of(logged(Whole().act)) == signature_of(Whole().act)
    assert signature_of(functools.lru_cache(score)) == signature_of(score)


@pytest.mark.parametrize(
    ("fn", "shown"),
    [
        (Scorer(2.0), plain(port("item", int), result=float)),
        (Whole().act, plain(port("item", int), result=str)),
        (Half[bytes]().act, plain(port("item", int), result=bytes)),
        (Half().act, plain(port("item", int), result=Any)),
        (Base[int, str]().act, plain(port("item", int), result=str)),
        (Overrides().act, plain(port("item", bool), result=str)),
        (super(Overrides, Overrides()).act, plain(port("item", int), result=str)),
        (functools.partial(Whole().act), plain(port("item", int), result=str)),
        (Whole().again, plain(result=Whole)),
        (Whole.make, plain(port("item", int), result=Whole)),
        (Whole.shout, plain(port("item", str), result=str)),
        (Base.again, plain(port("self"))),
        (Box, plain(port("item", T), result=Box)),
        (Box[int], plain(port("item", int), result=Box[int])),
        (functools.partial(Row, 1), plain(port("note", str, default=True), result=Row)),
        (Row, plain(port("item", int), port("note", str, default=True), result=Row)),
        (Pair, plain(port("left", int), port("right", str, default=True), result=Pair)),
        (Later, plain(port("left", int), port("row", Row), result=Later)),
        (Token, plain(port("item", int), result=Token)),
        (Bare, plain(result=Bare)),
    ],
)
def test_methods_classes_and_callable_objects_show_their_ports(
    fn: abc.Callable[..., Any], shown: Signature
) -> None:
    assert signature_of(fn) == shown


def test_an_unbound_generic_keeps_its_variables() -> None:
    assert signature_of(Base().act) == plain(port("item", T), result=U)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="callable object, got 5"):
        signature_of(5)  # type: ignore[arg-type]


def test_a_builtin_takes_what_the_interpreter_tells_of_it() -> None:
    anything = (
        Parameter(name="args", kind=inspect.Parameter.VAR_POSITIONAL),
        Parameter(name="kwargs", kind=inspect.Parameter.VAR_KEYWORD),
    )
    assert signature_of(max) == plain(*anything)
    assert signature_of(str) == plain(*anything, result=str)
    assert signature_of(Odd()) == plain(*anything, result=str)
    assert signature_of(types.GenericAlias).result is types.GenericAlias
    assert signature_of(functools.lru_cache(len)) == signature_of(len)
    assert [each.hint for each in signature_of(len).parameters] == [Any]
    assert [each.name for each in signature_of(str.upper).parameters] == ["self"]


def later(item: int) -> abc.Awaitable[str]:
    return fetch(item)


def later_bare(item: int) -> abc.Awaitable:
    return fetch(item)


def opened(item: int) -> abc.Iterator[str]:
    return iter(str(item))


def opened_async(item: int) -> abc.AsyncGenerator[str, None]:
    return events(item)


@pytest.mark.parametrize(
    ("fn", "kind", "result"),
    [
        (score, "plain", str),
        (fetch, "coroutine", str),
        (functools.partial(fetch), "coroutine", str),
        (Whole().act_later, "coroutine", list[str]),
        (Fetcher(), "coroutine", float),
        (later, "coroutine", str),
        (later_bare, "coroutine", Any),
        (pages, "generator", abc.Iterator[str]),
        (opened, "generator", abc.Iterator[str]),
        (events, "async generator", abc.AsyncIterator[str]),
        (opened_async, "async generator", abc.AsyncGenerator[str, None]),
        (asyncio.Queue, "plain", asyncio.Queue),
    ],
)
def test_what_a_call_gives_is_told_before_it_is_made(
    fn: abc.Callable[..., Any], kind: str, result: Any
) -> None:
    signature = signature_of(fn)
    assert (signature.kind, signature.result) == (kind, result)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs type parameter lists")
def test_the_variables_of_a_type_parameter_list_are_resolved() -> None:
    source = """
class Keeper[T]:
    def keep(self, item: "T") -> "list[T]": ...

class Keeps[T](Keeper[T]):
    pass

def first[S](items: "list[S]") -> "S": ...
"""
    names: dict[str, Any] = {"__name__": __name__}
    exec(source, names)  # older interpreters cannot read it
    keep = names["Keeps"][int]().keep
    assert signature_of(keep) == plain(port("item", int), result=list[int])
    variable = signature_of(names["first"]).result
    assert signature_of(names["first"]) == plain(port("items", list[variable]), result=variable)


def test_a_name_that_only_a_checker_knows_is_named_with_its_function() -> None:
    def stage(item: int, other: "Missing") -> str:  # type: ignore[name-defined]  # noqa: F821
        return ""

    with pytest.raises(GraphError) as caught:
        signature_of(stage)
    (problem,) = caught.value.problems
    line = inspect.getsourcelines(stage)[1]
    assert problem.where == f"{__file__}:{line}"
    assert problem.what == (
        "stage: the annotation 'Missing' of its parameter 'other' cannot be resolved: "
        "name 'Missing' is not defined"
    )
    assert "TYPE_CHECKING" in problem.mend


def test_a_result_without_meaning_is_named_too() -> None:
    def stage(item: int) -> "list[int":  # type: ignore[valid-type]  # noqa: F722
        return []

    with pytest.raises(GraphError, match="the annotation 'list\\[int' of its result"):
        signature_of(functools.partial(stage))


def test_a_class_of_the_enclosing_function_is_found_where_the_stage_uses_it() -> None:
    class Local:
        pass

    def stage(item: "Local") -> "Local":
        return Local()

    assert signature_of(stage) == plain(port("item", Local), result=Local)


def test_the_object_of_a_method_owns_its_state() -> None:
    whole, scorer = Whole(), Scorer(1.0)
    assert owner_of(whole.act) is whole
    assert owner_of(functools.partial(functools.partial(whole.act), 1)) is whole
    assert owner_of(logged(whole.act)) is whole
    assert owner_of(whole.timed) is whole
    assert owner_of(scorer) is scorer
    rows: list[int] = []
    assert owner_of(rows.append) is rows


def test_a_decorated_method_of_a_generic_base_shows_what_its_class_binds() -> None:
    whole = Whole()
    assert signature_of(whole.timed) == signature_of(whole.act)


@pytest.mark.parametrize(
    "fn",
    [score, len, str.upper, operator.add, Whole.make, Whole.shout, Row, Box[int], logged(score)],
)
def test_what_has_no_object_has_no_owner(fn: abc.Callable[..., Any]) -> None:
    assert owner_of(fn) is None
    assert owner_of(functools.partial(fn)) is None


def test_what_a_script_defines_in_main_shows_its_ports_and_can_be_sent(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from __future__ import annotations\n"
        "import threading\n"
        "from rlgraph.hints.anatomy import uncarriable\n"
        "from rlgraph.hints.callables import owner_of, signature_of\n"
        "class Item: pass\n"
        "class Stage:\n"
        "    def __call__(self, item: Item) -> list[Item]: return [item]\n"
        "    def guarded(self, item: Item) -> object: return lock\n"
        "lock = threading.Lock()\n"
        "def guarded(item: Item) -> object: return lock\n"
        "stage = Stage()\n"
        "signature = signature_of(stage)\n"
        "assert signature.parameters[0].hint is Item and signature.result == list[Item]\n"
        "assert owner_of(stage) is stage\n"
        "print(uncarriable(lambda item: item), uncarriable(guarded), sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (["None", "lock (lock)"], "")
