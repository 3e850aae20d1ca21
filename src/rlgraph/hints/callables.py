"""What a stage's callable looks like from outside: its parameters, its result, its state.

Reads signatures and hints, calls nothing. Must not know graphs, nor judge whether hints fit.
"""

from __future__ import annotations

import collections.abc as abc
import functools
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from rlgraph.errors import GraphError, Problem
from rlgraph.hints.anatomy import callable_name, cells_of, core_of
from rlgraph.hints.generics import arguments, as_base, derives, parameters, substitute

CallKind = Literal["plain", "coroutine", "generator", "async generator"]
"""What a call gives: the value, an awaitable of it, an iterator, an asynchronous iterator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One port of a callable."""

    name: str
    kind: inspect._ParameterKind
    hint: Any = Any
    has_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The ports of a callable, ``self`` and what a partial settled left out."""

    parameters: tuple[Parameter, ...]
    result: Any
    """Of a coroutine: what awaiting it gives. Of a generator: the iterator, as it was hinted."""
    kind: CallKind


def signature_of(fn: Callable[..., Any]) -> Signature:
    """Read the signature of anything callable, its hints resolved.

    A missing hint is ``Any``. A method inherited from a generic base has the base's variables
    replaced by what the class of its object binds them to. A callable that the interpreter cannot
    describe (some built-ins) takes anything.

    Raises GraphError where an annotation names what does not exist at run time, TypeError where fn
    cannot be called.
    """
    if not callable(fn):
        raise TypeError(f"a stage is a function or another callable object, got {fn!r}")
    function, receiver = _anatomy(fn)
    home = _home(function, receiver)
    hints = _resolved(function, home, fn)
    bind = _binder(home, receiver)
    try:
        described = tuple(inspect.signature(get_origin(fn) or fn).parameters.values())
    except (TypeError, ValueError):
        described = _ANYTHING
    ports = tuple(
        Parameter(
            name=each.name,
            kind=each.kind,
            hint=substitute(hints.get(each.name, Any), bind),
            has_default=each.default is not inspect.Parameter.empty,
        )
        for each in described
    )
    made = _constructed(fn)
    if made is not None:
        return Signature(parameters=ports, result=made, kind="plain")
    kind, result = _outcome(fn, substitute(hints.get("return", Any), bind))
    return Signature(parameters=ports, result=result, kind=kind)


def owner_of(fn: Callable[..., Any]) -> object | None:
    """Return the object whose state a call may use, or None for a function or a class.

    The object of a bound method, or the callable object itself; through partials and wrappers.
    """
    fn = core_of(fn)
    if isinstance(fn, (types.MethodType, types.BuiltinMethodType)):
        owner: object = fn.__self__
        return None if isinstance(owner, (type, types.ModuleType)) else owner
    return None if inspect.isroutine(fn) or _constructed(fn) is not None else fn


_ANYTHING = (
    inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
    inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
)


def _anatomy(fn: Any) -> tuple[Any, Any]:
    """Return the function that a call runs and the class, parametrized if known, it runs for."""
    fn = core_of(fn)
    made = _constructed(fn)
    if made is not None:
        cls = get_origin(made) or made
        name = "__new__" if cls.__init__ is object.__init__ else "__init__"
        return getattr(cls, name), made
    if isinstance(fn, types.MethodType):
        owner = fn.__self__
        return fn.__func__, owner if isinstance(owner, type) else _class_of(owner)
    if inspect.isroutine(fn):
        return fn, None
    return type(fn).__call__, _class_of(fn)


def _class_of(owner: object) -> Any:
    # typing leaves the arguments on the instance made by ``Base[int]()``.
    return getattr(owner, "__orig_class__", type(owner))


def _constructed(fn: Any) -> Any:
    """Return the class, parametrized if so written, that calling fn constructs; else None."""
    fn = core_of(fn)
    return fn if isinstance(get_origin(fn) or fn, type) else None


def _resolved(function: Any, home: Any, fn: Any) -> dict[str, Any]:
    """Return the hints of the function, each read by itself so that a wrong one can be named."""
    scope, captured = getattr(function, "__globals__", {}), dict(cells_of(function))
    captured |= {each.__name__: each for each in getattr(home, "__type_params__", ())}
    if hasattr(home, "_fields"):
        # A named tuple has its constructor made in a scope without names.
        scope = vars(sys.modules[home.__module__])
    hints: dict[str, Any] = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        alone = types.SimpleNamespace(
            __annotations__={name: annotation},
            __type_params__=getattr(function, "__type_params__", ()),
        )
        try:
            hints |= get_type_hints(alone, scope, captured, include_extras=True)
        except (AttributeError, NameError, SyntaxError, TypeError) as error:
            place = "its result" if name == "return" else f"its parameter {name!r}"
            problem = Problem(
                what=f"{callable_name(fn)}: the annotation {annotation!r} of {place} "
                f"cannot be resolved: {error}",
                where=_place_of(fn),
                mend="import the name at run time, not only under TYPE_CHECKING, and define it "
                "where the module can see it, not inside a function",
            )
            raise GraphError("a stage has an annotation without meaning", [problem]) from error
    return hints


def _home(function: Any, receiver: Any) -> Any:
    """Return the class, of those that the receiver derives from, that defines the function."""
    for base in getattr(get_origin(receiver) or receiver, "__mro__", ()):
        own = base.__dict__.get(getattr(function, "__name__", None))
        # A class method and __new__ are wrapped in the namespace of the class.
        if own is not None and core_of(getattr(own, "__func__", own)) is function:
            return base
    return None


def _binder(home: Any, receiver: Any) -> Callable[[Any], Any]:
    """Return what replaces ``Self`` and the variables of a generic base."""
    values: dict[Any, Any] = {}
    if home is not None:
        args = as_base(get_origin(receiver) or receiver, arguments(receiver), home)
        values = dict(zip(parameters(home), args or (), strict=False))

    def replace(name: Any) -> Any:
        if isinstance(name, TypeVar):
            return values.get(name, name)
        return Any if receiver is None else receiver

    return replace


def _outcome(fn: Any, result: Any) -> tuple[CallKind, Any]:
    """Tell what a call gives, from how the function is written and what it says it returns."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    code = fn if inspect.isroutine(fn) else type(fn).__call__
    if inspect.iscoroutinefunction(code):
        return "coroutine", result
    if inspect.isasyncgenfunction(code):
        return "async generator", result
    if inspect.isgeneratorfunction(code):
        return "generator", result
    cls = get_origin(result) or result
    if cls in (abc.Awaitable, abc.Coroutine):
        return "coroutine", (get_args(result) or (Any,))[-1]
    if derives(cls, abc.AsyncIterator):
        return "async generator", result
    return ("generator" if derives(cls, abc.Iterator) else "plain"), result


def _place_of(fn: Callable[..., Any]) -> str:
    """Return ``file:line`` where the callable is defined, or its name where no source is known."""
    function, _ = _anatomy(fn)
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else callable_name(fn)
