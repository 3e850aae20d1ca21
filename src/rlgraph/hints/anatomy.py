"""What a callable is made of: the function inside, its name, the variables that it captured.

Knows nothing of hints, stages or executors.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# What pickling raises is up to the classes of the objects that it meets; these are the usual ones.
_PICKLING_ERRORS = (
    AttributeError,
    NotImplementedError,
    OSError,
    pickle.PicklingError,
    RuntimeError,
    TypeError,
    ValueError,
)


def uncarriable(fn: Callable[..., Any]) -> str | None:
    """Name the captured variable that keeps the callable from being sent to another process.

    None where it can be sent. Pickles the callable with everything that it captures.

    >>> import threading
    >>> lock = threading.Lock()
    >>> uncarriable(functools.partial(print, end=lock))
    'end (lock)'
    """
    if _carries(fn):
        return None
    found = _blame(fn, {id(fn)}) or (callable_name(fn), type(fn).__name__)
    *path, kind = (callable_name(fn), *found) if len(found) == 1 else found
    return f"{'.'.join(path).replace('.[', '[')} ({kind})"


def core_of(fn: Any) -> Any:
    """Return the callable inside partials and wrappers, the one whose signature shows.

    A bound method stays bound to its object.
    """
    while True:
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif isinstance(fn, types.MethodType):
            # Not fn.__wrapped__: that is the function's, and would leave the object behind.
            inner = core_of(fn.__func__)
            return fn if inner is fn.__func__ else types.MethodType(inner, fn.__self__)
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        else:
            return fn


def callable_name(fn: Any) -> str:
    """Name a callable as its author would: ``step``, ``Generator.generate``, ``<lambda>``.

    A method is named after the class of its object, a callable object after its own. The module is
    left out: it differs where a file is run.
    """
    fn = core_of(fn)
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    if isinstance(fn, types.MethodType) and not isinstance(fn.__self__, type):
        name = f"{type(fn.__self__).__qualname__}.{name.rpartition('.')[2]}"
    return str(name).rpartition("<locals>.")[2]


def cells_of(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables that a function took from around it and that are set."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        if _is_set(cell):
            yield name, cell.cell_contents


def _blame(value: Any, seen: set[int]) -> tuple[str, ...] | None:
    """Return the way to what cannot be pickled, then its type; None where it only leads back."""
    wrong = [(name, part) for name, part in _captured(value) if not _carries(part)]
    if not wrong:
        return (type(value).__name__,)
    for name, part in wrong:
        if id(part) not in seen:
            seen.add(id(part))
            found = _blame(part, seen)
            if found:
                return (name, *found)
    return None


def _captured(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the named parts of a callable, or of an object that one captured."""
    if isinstance(value, functools.partial):
        yield from ((f"argument {i}", each) for i, each in enumerate(value.args))
        yield from value.keywords.items()
        yield "function", value.func
    elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        yield "self", value.__self__
    elif isinstance(value, types.FunctionType):
        yield from cells_of(value)
        ports = inspect.signature(value).parameters.values()
        yield from ((each.name, each.default) for each in ports)
        scope = value.__globals__
        yield from ((name, scope[name]) for name in value.__code__.co_names if name in scope)
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", each) for key, each in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{i}]", each) for i, each in enumerate(value))
    else:
        yield from getattr(value, "__dict__", {}).items()
        slots = (name for part in type(value).__mro__ for name in getattr(part, "__slots__", ()))
        yield from ((name, getattr(value, name)) for name in slots if hasattr(value, name))


def _is_set(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading is the only way to ask
    except ValueError:
        return False
    return True


def _carries(value: Any) -> bool:
    # Imported here: dask's own pickler, which only what crosses processes needs.
    cloudpickle = importlib.import_module("cloudpickle")
    try:
        cloudpickle.dumps(value)
    except _PICKLING_ERRORS:
        return False
    return True
