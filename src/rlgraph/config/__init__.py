"""One configuration from a schema's defaults, YAML files and dotted overrides, in that order.

The schema is a dataclass, nested or not, frozen or not; it may hold rules between its fields in a
method ``problems`` (see ``rlgraph.config.rules``). Everything wrong is reported in one error.

A YAML file holds the same nesting; a mapping in a file replaces a ``dict`` field whole, an override
adds to it. An override is ``section.key=VALUE``: lists, mappings and quoted text are YAML, ``null``
is None, all else is taken as it stands. ``${section.key}`` stands for another setting, ``\\${`` for
the characters; ``???`` counts as not given.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from rlgraph.config.merge import Keys, Unresolved, literal_tree, merge, resolve
from rlgraph.config.rules import above, at_least, between, divides
from rlgraph.config.schema import (
    MismatchError,
    Setting,
    convert,
    defaults,
    describe,
    fields_of,
    is_mapping,
    is_required,
    plain,
    section_of,
    settings,
)
from rlgraph.config.sources import Sources, read_sources
from rlgraph.errors import ConfigError, Problem, did_you_mean

__all__ = [
    "above",
    "at_least",
    "between",
    "differences",
    "divides",
    "load_config",
    "override_help",
    "to_yaml",
]

C = TypeVar("C")

_WRONG = object()
"""Stands for a value that could not be made; its problem is reported."""

_ABSENT = object()
"""Stands for the value of a setting that only the other configuration has."""


def load_config(schema: type[C], *, files: Sequence[Path] = (), overrides: Sequence[str] = ()) -> C:
    """Make a configuration; an override wins over a file, a later file over an earlier one.

    Raises ConfigError listing every problem: what cannot be read, unknown keys, wrong types,
    missing values, and the rules of those sections whose own values are sound.
    """
    sources = read_sources(files, overrides)
    known = {setting.key: setting for setting in settings(schema)}
    mappings = {setting.keys for setting in known.values() if is_mapping(setting.hint)}
    tree = literal_tree(defaults(schema))
    for layer, from_file in sources.layers:
        tree = merge(tree, layer, mappings if from_file else frozenset())
    config = _Builder(sources, known).build(schema, resolve(tree), ())
    if sources.problems:
        count = len(sources.problems)
        title = f"{schema.__name__}: {count} problem{'s' if count > 1 else ''} in the configuration"
        raise ConfigError(title, sources.problems)
    return cast("C", config)


def to_yaml(config: object) -> str:
    """Write a configuration so that ``load_config`` of the same schema gives an equal one."""
    import yaml  # type: ignore[import-untyped]  # PyYAML ships no stubs

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML ships no stubs
        """Quotes the line breaks that PyYAML writes bare, and so reads back as spaces."""

    def quoted(dumper: Any, text: str) -> Any:
        style = '"' if any(mark in text for mark in "\x85\u2028\u2029") else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)

    Dumper.add_representer(str, quoted)
    tree = literal_tree(plain(config))
    width = float("inf")
    dumped = yaml.dump(tree, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=width)
    return cast("str", dumped)


def differences(a: object, b: object) -> list[str]:
    """List the settings in which two configurations differ: ``optim.lr: 0.1 -> 0.2``."""
    return list(_differences(plain(a), plain(b), ()))


def override_help(schema: type) -> str:
    """Print a table of what can be set: key, type, default, and the string under the field."""
    rows = [("key", "type", "default", "what it is")]
    for setting in settings(schema):
        required = setting.default is dataclasses.MISSING
        default = "(required)" if required else _shown(setting.default)
        doc = " ".join(setting.doc.split())
        rows.append((setting.key, describe(setting.hint), default, doc))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ("  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in rows)
    return "\n".join(line.rstrip() for line in lines) + "\n"


class _Builder:
    """Makes the dataclasses of a schema from a tree, collecting what is wrong."""

    def __init__(self, sources: Sources, known: Mapping[str, Setting]) -> None:
        self.sources = sources
        self.known = known

    def build(self, schema: type, tree: Mapping[str, Any], at: Keys) -> object:
        """Return the section, or _WRONG where something in it is."""
        fields = fields_of(schema)
        names = [field.name for field, _ in fields]
        for name in tree:
            if name not in names:
                self._unknown((*at, name), names)
        values: dict[str, object] = {}
        for field, hint in fields:
            keys = (*at, field.name)
            if field.name in tree:
                values[field.name] = self._value(hint, tree[field.name], keys)
            elif is_required(field):
                values[field.name] = self._absent(hint, keys)
        return _WRONG if _WRONG in values.values() else self._make(schema, values, at)

    def _make(self, schema: type, values: Mapping[str, object], at: Keys) -> object:
        """Construct the section and ask it for its own rules."""
        try:
            made: object = schema(**values)
        except ValueError as error:
            where = ".".join(at) or schema.__name__
            self.sources.report(str(error), where, "change the settings it names")
            return _WRONG
        rules = getattr(made, "problems", None)
        if callable(rules):
            self.sources.problems.extend(
                dataclasses.replace(problem, where=".".join((*at, problem.where)))
                for problem in cast("Iterable[Problem]", rules())
            )
        return made

    def _value(self, hint: Any, value: Any, keys: Keys) -> object:
        section = section_of(hint)
        if isinstance(value, Unresolved):
            mend = "give the full key of a setting, \\${ for the characters themselves"
            self._report(keys, value.reason, mend)
        elif section is None:
            return self._scalar(hint, value, keys)
        elif isinstance(value, Mapping):
            return self.build(section, value, keys)
        elif value is None and section is not hint:
            return None
        else:
            names = ", ".join(field.name for field, _ in fields_of(section))
            mend = f"write keys under it: {names}"
            self._report(keys, f"expected a section, got {_shown(value)}", mend)
        return _WRONG

    def _scalar(self, hint: Any, value: Any, keys: Keys) -> object:
        try:
            return convert(hint, value)
        except MismatchError as error:
            mend = f"give {error.expected}"
            if isinstance(error.value, str):
                mend += did_you_mean(error.value, error.choices)
            what = f"expected {error.expected}, got {_shown(error.value)}"
            self._report((*keys, *error.at), what, mend)
            return _WRONG

    def _absent(self, hint: Any, keys: Keys) -> object:
        section = section_of(hint)
        if section is not None and section is hint:
            return self.build(section, {}, keys)
        mend = f"add {'.'.join(keys)}=VALUE ({describe(hint)}) or a line of a YAML file"
        self._report(keys, "required, and given nowhere", mend)
        return _WRONG

    def _unknown(self, keys: Keys, names: Sequence[str]) -> None:
        mend = f"known here: {', '.join(names)}{self._nearest(keys, names)}"
        self.sources.report(f"unknown key {'.'.join(keys)!r}", self.sources.origin(keys), mend)

    def _nearest(self, keys: Keys, names: Sequence[str]) -> str:
        """Suggest the key of the same last part, else the most like it, in any section."""
        last_parts = {key.rpartition(".")[2]: key for key in reversed(list(self.known))}
        if keys[-1] in last_parts:
            return f"; did you mean {last_parts[keys[-1]]!r}?"
        around = [".".join((*keys[:-1], name)) for name in names]
        suggestion = did_you_mean(".".join(keys), [*self.known, *around])
        close = difflib.get_close_matches(keys[-1], last_parts, n=1)
        if not suggestion and close:
            return f"; did you mean {last_parts[close[0]]!r}?"
        return suggestion

    def _report(self, keys: Keys, what: str, mend: str) -> None:
        self.sources.report(f"{'.'.join(keys)}: {what}", self.sources.origin(keys), mend)


def _differences(a: Mapping[str, Any], b: Mapping[str, Any], at: Keys) -> Iterator[str]:
    for key in {**a, **b}:
        keys = (*at, key)
        x, y = a.get(key, _ABSENT), b.get(key, _ABSENT)
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            yield from _differences(x, y, keys)
        elif x != y:
            yield f"{'.'.join(keys)}: {_shown(x)} -> {_shown(y)}"


def _shown(value: object) -> str:
    """Write a value short enough for one line."""
    if value is None or value is _ABSENT:
        return "null" if value is None else "not set"
    return f"{value!r:.80}"
