"""Type hints as edges: may a value of one hint flow into a port of another?

Pure functions over hints as `typing.get_type_hints` resolves them. They follow what a type checker
would say where the interpreter can know it, and let pass what it cannot. Must not know graphs.
"""

from __future__ import annotations

import collections.abc as abc
from collections.abc import Iterable
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    NoReturn,
    TypeVar,
    get_args,
    get_origin,
    is_typeddict,
)

from rlgraph.hints.generics import (
    arguments,
    as_base,
    derives,
    field_hints,
    has_member,
    is_protocol,
    is_union,
    is_variadic,
    members,
    protocol_members,
    substitute,
    unannotated,
    union_of,
    variances,
)


def fits(source: Any, target: Any) -> bool:
    """Tell whether a value hinted source may flow into a port hinted target.

    As a type checker would say: ``bool`` fits ``int`` fits ``float``; ``list`` is invariant,
    ``Sequence`` and ``tuple`` are covariant; ``Any`` fits both ways. The metadata of ``Annotated``
    must be equal where both hints carry some. A protocol asks that its members exist, not their
    types. Type variables of target may stand for anything within their bound, the same thing
    wherever they occur.

    >>> fits(list[bool], list[int]), fits(list[bool], abc.Sequence[int])
    (False, True)
    """
    return _Matcher().fits(source, target)


def solve(param: Any, source: Any, result: Any) -> Any:
    """Return the result hint of a generic function whose param is given a source.

    Type variables that source does not settle become ``Any``.

    >>> Item = TypeVar("Item")
    >>> solve(tuple[Item, ...], tuple[int, ...], Item)
    <class 'int'>
    """
    matcher = _Matcher()
    matcher.fits(source, param)
    return substitute(result, lambda name: matcher.solution.get(name, Any))


def show(hint: Any) -> str:
    """Return a short readable text of the hint.

    >>> show(tuple[int, ...]), show(None | str)
    ('Batch[int]', 'str | None')
    """
    if hint is None or hint is type(None):
        return "None"
    if hint is ...:
        return "..."
    if isinstance(hint, list):
        return f"[{', '.join(show(each) for each in hint)}]"
    if is_union(hint):
        ordered = sorted(get_args(hint), key=lambda each: each is type(None))
        return " | ".join(show(each) for each in ordered)
    args = arguments(hint)
    if get_origin(hint) in (Literal, Annotated):
        shown = [repr(arg) for arg in args or ()]
        if get_origin(hint) is Annotated:
            shown[0] = show(get_args(hint)[0])
        return f"{get_origin(hint).__name__}[{', '.join(shown)}]"
    if args is None:
        return _name(hint)
    if is_variadic(hint):
        return f"Batch[{show(args[0])}]"
    inside = ", ".join(show(arg) for arg in args) or "()"
    return f"{_name(get_origin(hint))}[{inside}]"


class _Matcher:
    """One question of fit, and what its type variables turned out to be."""

    def __init__(self) -> None:
        self.solution: dict[Any, Any] = {}
        self._exact: set[Any] = set()
        """Variables met where nothing may be widened, as in ``list[T]``."""
        self._assumed: set[tuple[Any, Any]] = set()
        """Pairs of typed dictionaries under comparison: these may contain themselves."""

    def fits(self, source: Any, target: Any) -> bool:
        source, said = unannotated(source)
        target, asked = unannotated(target)
        if said and asked and said != asked:
            return False
        if source == target or source is Any or target is Any:
            return True
        if isinstance(target, TypeVar):
            return self._bind(target, source)
        if isinstance(source, TypeVar):
            # The variable of a port that takes a function: what the function takes settles it.
            if source in self.solution:
                return self.fits(self.solution[source], target)
            return self._bind(source, target)
        if target is object or source is NoReturn:
            return True
        return self._fits_parts(source, target)

    def _fits_parts(self, source: Any, target: Any) -> bool:
        parts = members(source)
        if len(parts) > 1:
            return all(self.fits(part, target) for part in parts)
        if is_union(target):
            # A variable takes whatever comes, so it comes last.
            ordered = sorted(get_args(target), key=lambda part: isinstance(part, TypeVar))
            return any(self._attempt(source, part) for part in ordered)
        if get_origin(source) is Literal:
            value = get_args(source)[0]
            if get_origin(target) is Literal:
                return source in members(target)
            return self.fits(type(value), target)
        if isinstance(source, NewType):
            return self.fits(source.__supertype__, target)
        return self._fits_class(source, target)

    def _fits_class(self, source: Any, target: Any) -> bool:
        cls, args = get_origin(source) or source, arguments(source)
        base, asked = get_origin(target) or target, arguments(target)
        if is_typeddict(cls) or is_typeddict(base):
            return self._fits_typed_dict(cls, base, asked)
        if base is abc.Callable and isinstance(cls, type):
            return self._fits_callable(cls, args, asked)
        if base is type and cls is not type:
            return derives(cls, type)
        if derives(cls, base):
            seen = as_base(cls, args, base)
            if seen is None or asked is None:
                return True
            if base is tuple:
                return self._fits_tuple(seen, asked)
            return self._fits_arguments(variances(base), seen, asked)
        if isinstance(cls, type) and is_protocol(base):
            return all(has_member(cls, name) for name in protocol_members(base))
        return _promotes(cls, base)

    def _fits_arguments(self, kinds: str, seen: Iterable[Any], asked: Iterable[Any]) -> bool:
        for kind, source, target in zip(kinds, seen, asked, strict=False):
            ok = (
                kind == "*"
                or (kind == "+" and self.fits(source, target))
                or (kind == "-" and self.fits(target, source))
                or (kind == "=" and self._same(source, target))
                or (kind == "?" and (self.fits(source, target) or self.fits(target, source)))
            )
            if not ok:
                return False
        return True

    def _fits_tuple(self, seen: tuple[Any, ...], asked: tuple[Any, ...]) -> bool:
        if asked[1:] == (...,):
            return all(self.fits(part, asked[0]) for part in seen if part is not ...)
        if seen[1:] == (...,):
            return seen[0] is Any
        return len(seen) == len(asked) and all(map(self.fits, seen, asked))

    def _fits_callable(
        self, cls: Any, args: tuple[Any, ...] | None, asked: tuple[Any, ...] | None
    ) -> bool:
        if cls is not abc.Callable:
            return has_member(cls, "__call__")
        if args is None or asked is None:
            return True
        (takes, gives), (given, wanted) = args, asked
        if not isinstance(takes, list) or not isinstance(given, list):
            return self.fits(gives, wanted)
        accepted = len(takes) == len(given) and all(map(self.fits, given, takes))
        return accepted and self.fits(gives, wanted)

    def _fits_typed_dict(self, cls: Any, base: Any, asked: tuple[Any, ...] | None) -> bool:
        if not is_typeddict(cls):
            return False
        if not is_typeddict(base):
            # Not a dict: that one could be given any key. So typing says, too.
            seen = (str, object) if derives(abc.Mapping, base) else None
            return seen is not None and self._fits_arguments("+++", seen, asked or ())
        if (cls, base) in self._assumed:
            return True
        self._assumed.add((cls, base))
        has, wants = field_hints(cls), field_hints(base)
        return all(
            name in has
            and (name in cls.__required_keys__) == (name in base.__required_keys__)
            and self._same(has[name], hint)
            for name, hint in wants.items()
        )

    def _same(self, source: Any, target: Any) -> bool:
        """Tell whether the hints fit each other, as an invariant parameter asks."""
        for variable, hint in ((target, source), (source, target)):
            if isinstance(variable, TypeVar) and hint != variable and hint is not Any:
                had = self.solution.get(variable, hint)
                if not self.fits(had, hint) or not self._bind(variable, hint):
                    return False
                self._exact.add(variable)
                return True
        return self.fits(source, target) and self.fits(target, source)

    def _bind(self, variable: TypeVar, hint: Any) -> bool:
        if variable.__constraints__:
            allowed = [each for each in variable.__constraints__ if self.fits(hint, each)]
            if not allowed:
                return False
            hint = hint if hint in allowed else allowed[0]
        elif variable.__bound__ is not None and not self.fits(hint, variable.__bound__):
            return False
        had = self.solution.get(variable, NoReturn)
        if self.fits(hint, had):
            return True
        if variable in self._exact or (variable.__constraints__ and had is not NoReturn):
            return False
        self.solution[variable] = hint if self.fits(had, hint) else union_of((had, hint))
        return True

    def _attempt(self, source: Any, target: Any) -> bool:
        before = dict(self.solution), set(self._exact)
        if self.fits(source, target):
            return True
        self.solution, self._exact = before
        return False


def _promotes(cls: Any, base: Any) -> bool:
    """Tell whether the numeric tower leads from cls to base (PEP 484)."""
    return (base is float and derives(cls, int)) or (
        base is complex and (derives(cls, int) or derives(cls, float))
    )


def _name(hint: Any) -> str:
    name = getattr(hint, "__qualname__", None) or getattr(hint, "__name__", None)
    text = str(name or getattr(hint, "__forward_arg__", None) or hint)
    return text.rpartition("<locals>.")[2].removeprefix("typing.")
