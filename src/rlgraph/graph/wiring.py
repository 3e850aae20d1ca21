"""Whether one stage's function fits where it is put: its first parameter and its result.

Looks at signatures only; what is passed besides the item is judged in ``arguments``. Knows nothing
of scopes or rates.
"""

from __future__ import annotations

import functools
import inspect
import reprlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, ParamSpecArgs, TypeVar, get_args, get_origin

from rlgraph import hints
from rlgraph.errors import GraphError, Problem
from rlgraph.graph.node import Feedback, Node
from rlgraph.hints.callables import Signature, signature_of
from rlgraph.hints.generics import is_variadic
from rlgraph.ports import Seed

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A verb on its line, and the function that it is given."""

    verb: str
    stage: str
    where: str
    upstream: str = ""
    """Name of the stage whose items it takes."""

    @property
    def title(self) -> str:
        """What errors call it."""
        return f"{self.verb if self.verb in _ALONE else 'stage'} {self.stage!r}"

    def error(self, what: str, mend: str) -> GraphError:
        """Make the error that this line raises."""
        return GraphError("wrong declaration", [self.problem(what, mend)])

    def require_int(self, name: str, value: object, *, least: int) -> None:
        """Raise ``GraphError`` unless the value is an int that large."""
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(
                f"{name} of {self.title} must be an int >= {least}, got {value!r}",
                f"pass an int >= {least}",
            )

    def problem(self, what: str, mend: str) -> Problem:
        """Make a problem of this line."""
        return Problem(what=what, where=self.where, mend=mend)


def read(call: Call, fn: Callable[..., Any]) -> Signature:
    """Return the signature of the function, or raise ``GraphError`` where it cannot be a stage."""
    if not callable(fn):
        raise call.error(
            f"{call.verb} takes a function, but is given {reprlib.repr(fn)}",
            "pass a function or another callable object, without calling it",
        )
    inner: Any = fn
    while isinstance(inner, functools.partial):
        for value in (*inner.args, *inner.keywords.values()):
            if isinstance(value, Feedback | Seed):
                raise call.error(
                    f"{call.title}: {told(value)} is settled in a partial, where no call sees it",
                    f"pass it to .{call.verb}(...) as an argument of its own",
                )
        inner = inner.func
    return signature_of(fn)


def result_of(call: Call, signature: Signature, item: Any) -> Any:
    """Return the hint of what the stage gives for an item, or raise ``GraphError``."""
    first = next((p for p in signature.parameters if p.kind in _TAKING), None)
    if first is None:
        raise call.error(
            f"{call.title} takes no item: it has no positional parameter",
            "give it a first parameter for the item",
        )
    # What a decorator without functools.wraps takes says nothing.
    wanted = Any if isinstance(first.hint, ParamSpecArgs) else first.hint
    if not hints.fits(item, wanted):
        raise call.error(
            f"{call.title}: its first parameter {first.name!r} takes {hints.show(wanted)}, "
            f"but {call.upstream!r} gives {hints.show(item)}",
            _mend(call, item, wanted),
        )
    result = hints.solve(wanted, item, signature.result)
    return _RESULTS.get(call.verb, plain)(call, signature, result)


def item_of(hint: Any, call: Call) -> Any:
    """Return the hint of what a source's iterable yields, or of a batch's members."""
    batch = call.verb == "unbatch"
    whole = GenericAlias(tuple, (T, ...)) if batch else GenericAlias(Iterable, (T,))
    if not hints.fits(hint, whole):
        wanted = "a Batch" if batch else "an iterable"
        raise call.error(
            f"{call.verb} takes {wanted}, but {call.upstream or call.stage!r} gives "
            f"{hints.show(hint)}",
            f"make it return {wanted} of items",
        )
    return hints.solve(whole, hint, T)


def plain(call: Call, signature: Signature, result: Any) -> Any:
    """Return the result hint of a function that is called and not awaited."""
    if signature.kind == "coroutine" or _is_a(result, Awaitable):
        raise call.error(
            f"{call.title} is a coroutine function, which {call.verb} does not await",
            f"use .map_async({call.stage})" if call.verb == "map" else _ORDINARY,
        )
    return _no_iterator(call, signature, result)


def told(value: Any) -> str:
    """Name what was passed as its author would."""
    if isinstance(value, Feedback):
        return f"latest {value.name!r}"
    if isinstance(value, Node):
        return f"the stream of {value.name!r}"
    return "graph.seed" if isinstance(value, Seed) else reprlib.repr(value)


def _awaited(call: Call, signature: Signature, result: Any) -> Any:
    if signature.kind == "coroutine":
        return _no_iterator(call, signature, result)
    if _is_a(result, Awaitable):
        return hints.solve(GenericAlias(Awaitable, (T,)), result, T)
    if signature.kind == "plain" and result is Any:
        return Any
    raise call.error(
        f"{call.title} is not a coroutine function; map_async would await {hints.show(result)}",
        f"use .map({call.stage})",
    )


def _predicate(call: Call, signature: Signature, result: Any) -> Any:
    result = plain(call, signature, result)
    if not hints.fits(result, bool):
        decides = "an item is kept" if call.verb == "filter" else "the round was the last"
        raise call.error(
            f"{call.title} decides whether {decides}, but returns {hints.show(result)}",
            "make it return bool",
        )
    return result


def _no_iterator(call: Call, signature: Signature, result: Any) -> Any:
    lazy = _is_a(result, Iterator) or _is_a(result, AsyncIterator)
    if lazy or signature.kind in ("generator", "async generator"):
        raise call.error(
            f"{call.title} is a generator or returns an iterator, which cannot travel between "
            "workers",
            "return a Batch (a tuple) and follow it with .unbatch(size)",
        )
    return result


def _is_a(hint: Any, base: type) -> bool:
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, base)


def _mend(call: Call, item: Any, wanted: Any) -> str:
    if hints.fits(GenericAlias(tuple, (item, ...)), wanted):
        return "put .group() or .batch(size) before it"
    if is_variadic(item) and hints.fits(get_args(item)[0], wanted):
        return "put .unbatch() before it"
    between = "put a stage between that turns the one into the other"
    return f"make {call.stage!r} take {hints.show(item)}, or {between}"


_ORDINARY = "make it an ordinary function; what must be awaited belongs in a .map_async(fn) before"
_ALONE = ("source", "until", "release", "latest", "iterate", "publish_to")
_RESULTS: Mapping[str, Callable[[Call, Signature, Any], Any]] = {
    "map_async": _awaited,
    "filter": _predicate,
    "until": _predicate,
}
_TAKING = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
