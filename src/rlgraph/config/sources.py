"""Reads YAML files and dotted overrides into trees of text, and remembers where each key stood.

Knows nothing of schemas: every scalar stays the text that was written (null becomes None), so that
``version: 1.10`` is not a number before a schema says that it is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlgraph.config.merge import Keys, literal
from rlgraph.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the files and overrides say; the later layer wins."""

    layers: list[tuple[dict[str, Any], bool]] = field(default_factory=list)
    """Nested settings, and whether a file gave them (else an override)."""
    origins: dict[Keys, str] = field(default_factory=dict)
    """``file:line`` or the override that set each key last."""
    problems: list[Problem] = field(default_factory=list)

    def origin(self, keys: Keys) -> str:
        """Say where the setting, or else the nearest section around it, was set."""
        around = (keys[:length] for length in range(len(keys), 0, -1))
        return next((self.origins[k] for k in around if k in self.origins), ".".join(keys))

    def report(self, what: str, where: str, mend: str) -> None:
        """Collect a problem."""
        what, where, mend = map(_printable, (what, where, mend))
        self.problems.append(Problem(what=what, where=where, mend=mend))


def read_sources(files: Sequence[Path], overrides: Sequence[str]) -> Sources:
    """Read all files, then all overrides; what cannot be read is among ``problems``."""
    sources = Sources()
    for path in files:
        _read_file(path, sources)
    for text in overrides:
        _read_override(text, sources)
    return sources


def _read_file(path: Path, sources: Sources) -> None:
    import yaml  # type: ignore[import-untyped]  # PyYAML ships no stubs

    shown = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        sources.report(f"cannot read the file: {reason}", shown, "check the path and its rights")
        return
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        sources.report("the file is not UTF-8 text", f"{shown}:{line}", "save it as UTF-8")
        return
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        what, line = _yaml_error(error, text)
        sources.report(f"not YAML: {what}", f"{shown}:{line}", "mend the syntax at this line")
        return
    if root is None:
        return
    tree = _Reader(sources, lambda line: f"{shown}:{line}").value(root, ())
    if isinstance(tree, dict):
        sources.layers.append((tree, True))
    else:
        sources.report("the file holds no settings", f"{shown}:1", "write lines of `key: value`")


def _read_override(text: str, sources: Sources) -> None:
    where = f"override {text!r}"
    key, equals, value = text.partition("=")
    keys = tuple(key.strip().split("."))
    if not equals:
        sources.report("the override has no '='", where, f"write {key.strip() + '=VALUE'!a}")
    elif keys[0].startswith("-"):
        mend = f"leave the dashes out: {text.lstrip('-')!a}"
        sources.report("an override starts with a dash", where, mend)
    elif not all(keys):
        mend = "write section.key=VALUE"
        sources.report(f"the key {key!r} of the override has an empty part", where, mend)
    else:
        _read_value(value.strip(), keys, where, sources)


def _read_value(text: str, keys: Keys, where: str, sources: Sources) -> None:
    """Lists, mappings and quoted text are YAML; all else is the text itself."""
    import yaml

    for length in range(1, len(keys)):
        sources.origins.setdefault(keys[:length], where)
    sources.origins[keys] = where
    reader = _Reader(sources, lambda _: where)
    tree: Any
    try:
        if text[:1] in ("[", "{", '"', "'"):
            tree = reader.value(yaml.compose(text, Loader=yaml.SafeLoader), keys)
        else:
            tree = None if text in ("null", "~") else reader.text(text, keys)
    except (yaml.YAMLError, RecursionError) as error:
        what, _ = _yaml_error(error, text)
        mend = f"close the brackets or quotes, or quote it all: {text!a}"
        sources.report(f"the value is not YAML: {what}", where, mend)
        return
    for key in reversed(keys):
        tree = {key: tree}
    sources.layers.append((tree, False))


class _Reader:
    """Turns YAML nodes into dicts, lists and text, noting where each key stood."""

    def __init__(self, sources: Sources, place: Callable[[int], str]) -> None:
        self.sources = sources
        self.place = place
        self.around: list[int] = []

    def value(self, node: Any, keys: Keys) -> Any:
        import yaml

        if isinstance(node, yaml.ScalarNode):
            if node.tag == "tag:yaml.org,2002:null":
                return None
            return self.text(node.value, keys)
        if id(node) in self.around:
            where = self.place(node.start_mark.line + 1)
            self.sources.report("an alias holds itself", where, "write the value out")
            return None
        self.around.append(id(node))
        if isinstance(node, yaml.SequenceNode):
            tree: Any = self.sequence(node, keys)
        else:
            tree = self.mapping(node, keys)
        self.around.pop()
        return tree

    def sequence(self, node: Any, keys: Keys) -> list[Any]:
        tree = []
        for i, item in enumerate(node.value):
            path = (*keys, str(i))
            self.sources.origins[path] = self.place(item.start_mark.line + 1)
            tree.append(self.value(item, path))
        return tree

    def mapping(self, node: Any, keys: Keys) -> dict[str, Any]:
        import yaml

        tree: dict[str, Any] = {}
        for key, value in node.value:
            where = self.place(key.start_mark.line + 1)
            if not isinstance(key, yaml.ScalarNode):
                self.sources.report("a key is not plain text", where, "write `key: value`")
                continue
            if key.value in tree:
                mend = "keep one of the two"
                self.sources.report(f"the key {key.value!r} stands twice", where, mend)
            path = (*keys, key.value)
            self.sources.origins[path] = where
            tree[key.value] = self.value(value, path)
        return tree

    def text(self, text: str, keys: Keys) -> str:
        """Return the text, or report an interpolation that omegaconf cannot parse."""
        from omegaconf import OmegaConf
        from omegaconf.errors import GrammarParseError

        if "${" not in text:
            return text
        try:
            OmegaConf.create({"text": text})
        except GrammarParseError as error:
            what = f"not an interpolation: {str(error).splitlines()[0]}"
            mend = "write ${section.key} to use another setting, \\${ for the characters themselves"
            self.sources.report(what, self.sources.origin(keys), mend)
            return literal(text)
        return text


def _yaml_error(error: Exception, text: str) -> tuple[str, int]:
    """Say what the parser found wrong, and in which line (1 is the first)."""
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return str(getattr(error, "problem", "") or "syntax error"), mark.line + 1
    position = getattr(error, "position", None)
    if position is not None:
        return f"the character {text[position]!a} is not allowed", text.count("\n", 0, position) + 1
    return "nested too deep", 1


def _printable(text: str) -> str:
    """Escape what cannot be printed: bytes of a file name that are not UTF-8, lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode()
