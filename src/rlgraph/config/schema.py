"""What a schema (a dataclass, nested or not) asks for, and how text becomes its values.

Knows nothing of files, overrides and omegaconf: it is given one tree of plain values. Field types:
int, float, bool, str, Path, Enum, Literal, X | None, list, tuple, Sequence, dict[str, X], Mapping,
and dataclasses of these.
"""

from __future__ import annotations

import ast
import collections.abc
import dataclasses
import enum
import inspect
import itertools
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlgraph.config.merge import Keys

_SEQUENCES = (list, tuple, collections.abc.Sequence)
_MAPPINGS = (dict, collections.abc.Mapping)
_BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NON_FINITE = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One field of a schema, at any depth."""

    keys: Keys
    hint: Any
    """Its type."""
    default: object
    """A plain value; ``dataclasses.MISSING`` where the setting is required."""
    doc: str
    """The string under the field; empty where there is none."""

    @property
    def key(self) -> str:
        """Dotted name: ``optim.lr``."""
        return ".".join(self.keys)


class MismatchError(Exception):
    """A value is not of the type that the schema asks for."""

    def __init__(
        self, expected: str, value: object, *, choices: Sequence[str] = (), at: Keys = ()
    ) -> None:
        """Say in words what was expected and, where there is a list of them, the choices."""
        super().__init__(expected)
        self.expected = expected
        self.value = value
        self.choices = choices
        self.at = at
        """Path inside the value: ``("1",)`` is its second item."""


def settings(schema: type, around: Keys = ()) -> Iterator[Setting]:
    """Yield every setting of the schema, sections opened, in the order of declaration."""
    docs = _field_docs(schema)
    for field, hint in fields_of(schema):
        keys = (*around, field.name)
        section = section_of(hint)
        if section is not None:
            yield from settings(section, keys)
        else:
            yield Setting(
                keys=keys, hint=hint, default=_default(field), doc=docs.get(field.name, "")
            )


def fields_of(schema: type) -> list[tuple[dataclasses.Field[Any], Any]]:
    """Pair the fields that the constructor takes with their types."""
    hints = typing.get_type_hints(schema)
    return [(f, hints[f.name]) for f in dataclasses.fields(schema) if f.init]


def section_of(hint: Any) -> type | None:
    """Return the dataclass behind ``Section`` or ``Section | None``; None for other types."""
    inner = _without_none(hint)
    return inner if isinstance(inner, type) and dataclasses.is_dataclass(inner) else None


def is_mapping(hint: Any) -> bool:
    """Tell whether the type is a mapping, or one or None."""
    return typing.get_origin(_without_none(hint)) in _MAPPINGS


def is_required(field: dataclasses.Field[Any]) -> bool:
    """Tell whether the field has no default."""
    return _default(field) is dataclasses.MISSING


def defaults(schema: type) -> dict[str, Any]:
    """Return the tree of plain defaults; what is required is absent."""
    tree: dict[str, Any] = {}
    for field, hint in fields_of(schema):
        default = _default(field)
        if default is not dataclasses.MISSING:
            tree[field.name] = default
        elif dataclasses.is_dataclass(hint) and isinstance(hint, type):
            tree[field.name] = defaults(hint)
    return tree


def plain(value: Any) -> Any:
    """Turn a value of a configuration into what YAML holds: dicts, lists and scalars."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {f.name: plain(getattr(value, f.name)) for f in fields if f.init}
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def convert(hint: Any, value: Any) -> Any:
    """Turn a plain value, often still text, into one of the type.

    Raises MismatchError where it is not one, TypeError on a type that no setting can have.
    """
    inner = _without_none(hint)
    if value is None and inner is not hint:
        return None
    origin = typing.get_origin(inner)
    if origin is typing.Literal:
        return _choice(inner, {_text(choice): choice for choice in typing.get_args(inner)}, value)
    if origin in _SEQUENCES:
        return _sequence(inner, value)
    if origin in _MAPPINGS:
        return _mapping(inner, value)
    if isinstance(inner, type) and issubclass(inner, enum.Enum):
        # A value is what a file shows; a name is taken where no value reads the same.
        return _choice(inner, dict(inner.__members__) | {str(m.value): m for m in inner}, value)
    if inner not in _SCALARS:
        raise TypeError(f"a setting cannot have the type {inner!r}; see rlgraph.config.schema")
    if isinstance(value, (str, int, float)):
        try:
            return _SCALARS[inner][1](value if isinstance(value, str) else _text(value))
        except ValueError:
            pass
    raise MismatchError(describe(inner), value)


def describe(hint: Any) -> str:
    """Say in words what a setting of the type holds."""
    inner = _without_none(hint)
    if inner is not hint:
        return f"{describe(inner)} or null"
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return "one of " + ", ".join(map(repr, args))
    if origin in _SEQUENCES:
        if origin is tuple and args[-1] is not ...:
            return f"a list of {len(args)}: " + ", ".join(map(describe, args))
        return f"a list, each item {describe(args[0])}"
    if origin in _MAPPINGS:
        return f"a mapping, each value {describe(args[1])}"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return "one of " + ", ".join(repr(str(member.value)) for member in hint)
    return _SCALARS[hint][0] if hint in _SCALARS else str(hint)


def _sequence(hint: Any, value: Any) -> Any:
    args = typing.get_args(hint)
    fixed = typing.get_origin(hint) is tuple and args[-1] is not ...
    if not isinstance(value, list) or (fixed and len(value) != len(args)):
        raise MismatchError(describe(hint), value)
    hints = args if fixed else (args[0],) * len(value)
    made = [_inside(str(i), h, item) for i, (h, item) in enumerate(zip(hints, value, strict=True))]
    return made if typing.get_origin(hint) is list else tuple(made)


def _mapping(hint: Any, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MismatchError(describe(hint), value)
    return {key: _inside(key, typing.get_args(hint)[1], item) for key, item in value.items()}


def _inside(key: str, hint: Any, value: Any) -> Any:
    try:
        return convert(hint, value)
    except MismatchError as error:
        at = (key, *error.at)
        raise MismatchError(error.expected, error.value, choices=error.choices, at=at) from None


def _choice(hint: Any, choices: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, (str, int)) and _text(value) in choices:
        return choices[_text(value)]
    raise MismatchError(describe(hint), value, choices=list(choices))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bool(text: str) -> bool:
    if text.lower() not in _BOOLS:
        raise ValueError(text)
    return _BOOLS[text.lower()]


def _float(text: str) -> float:
    return float(_NON_FINITE.get(text.lower(), text))


_SCALARS: dict[Any, tuple[str, Any]] = {
    int: ("a whole number", int),
    float: ("a number", _float),
    bool: ("true or false", _bool),
    str: ("text", str),
    Path: ("a path", Path),
}
"""What each is called, and how it is read from text."""


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint
    rest = [arg for arg in typing.get_args(hint) if arg is not types.NoneType]
    return rest[0] if len(rest) == 1 else hint


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return plain(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return plain(field.default_factory())
    return dataclasses.MISSING


def _field_docs(schema: type) -> dict[str, str]:
    """Read the strings that stand under fields; none where there is no source to read."""
    docs: dict[str, str] = {}
    for cls in reversed(schema.__mro__[:-1]):
        try:
            body: Sequence[ast.stmt] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        except (OSError, TypeError, SyntaxError):
            continue
        lines = body[0].body if isinstance(body[0], ast.ClassDef) else []
        for line, under in itertools.pairwise(lines):
            match line, under:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(doc))),
                ):
                    docs[name] = inspect.cleandoc(doc)
    return docs
