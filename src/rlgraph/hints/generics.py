"""What a type hint is made of: its members, its type variables, and how a class looks as its base.

Knows nothing of graphs, and of hints only how they are built; whether one fits another is said in
`rlgraph.hints`.
"""

from __future__ import annotations

import collections
import collections.abc as abc
import inspect
import types
from collections.abc import Callable
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Generic,
    Literal,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

# Named as values, so that what is built at run time is not read as an annotation.
_CALLABLE: Any = abc.Callable
_TUPLE: Any = tuple
_UNION: Any = Union

# What one meets when iterating over a class that the interpreter does not describe.
_ELEMENTS: dict[type, Any] = {
    str: str,
    bytes: int,
    bytearray: int,
    memoryview: int,
    range: int,
}
# "=" invariant, "+" covariant, "-" contravariant, one a parameter, as typeshed declares them.
# What is missing here and not a class of the user is covariant.
_VARIANCES: dict[type, str] = {
    **dict.fromkeys((list, set, collections.deque, collections.Counter), "="),
    **dict.fromkeys((abc.MutableSequence, abc.MutableSet), "="),
    **dict.fromkeys((dict, collections.defaultdict, collections.OrderedDict), "=="),
    **dict.fromkeys((abc.MutableMapping, collections.ChainMap), "=="),
    abc.Mapping: "=+",
    abc.Generator: "+-+",
    abc.Coroutine: "+-+",
    abc.AsyncGenerator: "+-",
}
_WRAPPERS = {"ClassVar", "Final", "NotRequired", "ReadOnly", "Required"}


def special_name(hint: Any) -> str:
    """Return the bare name of a special form (``"Self"``), or an empty string.

    By name because the form of ``typing`` and that of ``typing_extensions`` are two objects.
    """
    module, _, name = str(hint).rpartition(".")
    return name if module in ("typing", "typing_extensions") else ""


def simplify(hint: Any) -> Any:
    """Return the hint without spelling: no alias, no ``Final``, ``None`` as its class.

    What says nothing at run time (an unresolved reference, ``Self``, a parameter specification)
    becomes ``Any``.
    """
    if hint is None:
        return type(None)
    if isinstance(hint, (str, ForwardRef, ParamSpec)):
        return Any
    origin = get_origin(hint)
    if hasattr(origin or hint, "__value__") and hasattr(origin or hint, "__type_params__"):
        alias = origin or hint
        values = dict(zip(alias.__type_params__, get_args(hint), strict=False))
        return simplify(substitute(alias.__value__, lambda name: values.get(name, Any)))
    if origin is not None:
        name = special_name(origin)
        if name in _WRAPPERS:
            return simplify(get_args(hint)[0])
        named = {"TypeGuard": bool, "TypeIs": bool, "Unpack": Any}
        return named.get(name, hint)
    bare: dict[str, Any] = {"Self": Any, "LiteralString": str, "Never": NoReturn, "TypeAlias": Any}
    return bare.get(special_name(hint), hint)


def unannotated(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Split ``Annotated[X, ...]`` into X and its metadata, () where there is none."""
    hint = simplify(hint)
    if get_origin(hint) is Annotated:
        return simplify(hint.__origin__), hint.__metadata__
    return hint, ()


def is_union(hint: Any) -> bool:
    """Tell whether the hint is a union, in either spelling."""
    return get_origin(hint) in (Union, types.UnionType)


def is_variadic(hint: Any) -> bool:
    """Tell whether the hint is ``tuple[X, ...]``: a ``Batch``."""
    return get_origin(hint) is tuple and get_args(hint)[1:] == (...,)


def members(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or of a ``Literal`` of several values; else the hint alone."""
    if is_union(hint):
        return get_args(hint)
    if get_origin(hint) is Literal:
        return tuple(Literal[value] for value in get_args(hint))
    return (hint,)


def union_of(parts: tuple[Any, ...]) -> Any:
    """Return the union of the hints, ``NoReturn`` of none."""
    return _UNION[parts] if parts else NoReturn


def arguments(hint: Any) -> tuple[Any, ...] | None:
    """Return what the hint is parametrized with; None for a bare class, () for ``tuple[()]``."""
    args = get_args(hint)
    if any(getattr(arg, "__unpacked__", False) for arg in args):
        # ``tuple[int, *tuple[str, ...]]``: how many there are of which is left open.
        return (Any, ...)
    return args or (() if hint == tuple[()] else None)


def substitute(hint: Any, replace: Callable[[Any], Any]) -> Any:
    """Rebuild the hint with each type variable, and each ``Self``, replaced by what is given."""
    if isinstance(hint, TypeVar) or special_name(hint) == "Self":
        return replace(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is None or origin is Literal or not args:
        return hint
    if origin is Annotated:
        return Annotated[(substitute(args[0], replace), *args[1:])]
    if origin is abc.Callable:
        params, result = args
        if isinstance(params, list):
            params = [substitute(param, replace) for param in params]
        return _CALLABLE[params, substitute(result, replace)]
    new = tuple(substitute(arg, replace) for arg in args)
    if is_union(hint):
        return union_of(new)
    # Some special forms refuse a tuple of one.
    return origin[new[0] if len(new) == 1 else new]


def parameters(cls: Any) -> tuple[Any, ...]:
    """Return the type parameters of a class, in order; () when it has none."""
    declared = cls.__dict__.get("__parameters__")
    if isinstance(declared, tuple):
        return declared
    # A class such as ``class Rows(list[T])`` does not derive from Generic and lists none itself.
    found: dict[Any, None] = {}
    for base in cls.__dict__.get("__orig_bases__", ()):
        found.update(dict.fromkeys(getattr(base, "__parameters__", ())))
    return tuple(found)


def field_hints(cls: Any) -> dict[str, Any]:
    """Return the hints of a record's fields; all ``Any`` where a name exists for checkers only."""
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError:
        return dict.fromkeys(inspect.get_annotations(cls), Any)


def variances(cls: Any) -> str:
    """Return a character a type parameter: "=", "+", "-".

    Or "?" where a checker infers one of them, and "*" for the parameters of a function.
    """
    own = parameters(cls)
    if not own:
        return _VARIANCES.get(cls, "+++")
    return "".join(_variance(variable) for variable in own)


def is_protocol(cls: Any) -> bool:
    """Tell whether the class is a Protocol itself, not one that implements it."""
    return bool(getattr(cls, "_is_protocol", False))


def derives(cls: Any, base: Any) -> bool:
    """Tell whether cls is a subclass of base, by declaration or by registration."""
    if not isinstance(cls, type) or not isinstance(base, type):
        return False
    if base in cls.__mro__:
        return True
    # issubclass refuses protocols that are not runtime_checkable.
    return not is_protocol(base) and issubclass(cls, base)


def as_base(cls: Any, args: tuple[Any, ...] | None, base: Any) -> tuple[Any, ...] | None:
    """Return the arguments of base that ``cls[args]`` stands for; None where nothing tells.

    ``cls`` derives from ``base``: ``class Ints(list[int])`` as a Sequence gives ``(int,)``.
    """
    if cls is base:
        return args
    if cls in _ELEMENTS:
        return (_ELEMENTS[cls],)
    if cls is tuple:
        return None if args is None else (_element(args),)
    own = parameters(cls)
    if args is not None and not own:
        return _by_position(cls, args)
    values = dict(zip(own, args or (), strict=False))
    for parent in _parents(cls):
        origin = get_origin(parent) or parent
        if origin is not Generic and derives(origin, base):
            seen = substitute(parent, lambda name: values.get(name, Any))
            return as_base(origin, arguments(seen), base)
    return None


@runtime_checkable
class _Nothing(Protocol):
    """A protocol without members, to tell what every protocol has."""


def protocol_members(protocol: Any) -> set[str]:
    """Return the names a class must have to follow the protocol."""
    names: set[str] = set()
    for cls in protocol.__mro__:
        if is_protocol(cls) and cls not in (Protocol, Generic):
            names.update(cls.__dict__, inspect.get_annotations(cls))
    ours = set(dir(_Nothing)) | {"__annotations__", "__orig_bases__", "__annotate_func__"}
    return names - ours - {"__annotations_cache__", "__type_params__", "__dict__", "__weakref__"}


def has_member(cls: type, name: str) -> bool:
    """Tell whether instances of cls have the attribute, as far as the class shows."""
    for part in cls.__mro__:
        # An attribute may be set in the constructor and declared nowhere.
        code = getattr(part.__dict__.get("__init__"), "__code__", None)
        if name in part.__dict__ or name in inspect.get_annotations(part):
            return True
        if code is not None and name in code.co_names:
            return True
    return False


def _variance(variable: Any) -> str:
    if not isinstance(variable, TypeVar):
        return "*"
    if getattr(variable, "__infer_variance__", False):
        return "?"
    if variable.__covariant__:
        return "+"
    return "-" if variable.__contravariant__ else "="


def _parents(cls: Any) -> tuple[Any, ...]:
    if tuple in cls.__bases__ and hasattr(cls, "_fields"):
        hints = field_hints(cls)
        return (_TUPLE[tuple(hints.get(name, Any) for name in cls._fields)],)
    parents: tuple[Any, ...] = cls.__dict__.get("__orig_bases__", cls.__bases__)
    return parents


def _element(args: tuple[Any, ...]) -> Any:
    return union_of(tuple(arg for arg in args if arg is not ...))


def _by_position(cls: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Pass the arguments of a class of the standard library on to its base."""
    if derives(cls, abc.Coroutine):
        return (args[-1],)
    if cls is abc.ItemsView:
        return (_TUPLE[args],)
    if cls is collections.Counter:
        return (*args, int)
    return args
