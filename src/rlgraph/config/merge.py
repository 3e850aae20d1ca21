"""Lays settings over their defaults and resolves ``${interpolations}``, both by omegaconf.

Knows nothing of schemas, files and overrides: trees of dicts, lists and scalars in, one such out.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

Keys = tuple[str, ...]
"""Path of a setting: ``("optim", "lr")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """Stands in the tree for an interpolation that leads nowhere."""

    reason: str


def merge(base: dict[str, Any], layer: Mapping[str, Any], replaced: Set[Keys]) -> dict[str, Any]:
    """Lay ``layer`` over ``base``: mappings key by key, except those at ``replaced``."""
    from omegaconf import OmegaConf

    kept = _without_replaced(base, layer, replaced, ())
    merged = OmegaConf.to_container(OmegaConf.merge(kept, dict(layer)))
    return dict(merged)  # type: ignore[arg-type]  # a merge of mappings is one


def resolve(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tree without interpolations and without what is still missing (``???``)."""
    from omegaconf import OmegaConf

    return _resolve(OmegaConf.create(dict(tree)))


def literal(text: str) -> str:
    r"""Escape text so that omegaconf does not take ``${`` for an interpolation.

    >>> print(literal("cost: ${price}"))
    cost: \${price}
    """
    parts = text.split("${")
    for i, part in enumerate(parts[:-1]):
        # Backslashes before ${ are themselves escapes, so each is written twice.
        slashes = len(part) - len(part.rstrip("\\"))
        parts[i] = part + "\\" * (slashes + 1)
    return "${".join(parts)


def literal_tree(tree: Any) -> Any:
    """Escape all text of a tree of plain values."""
    if isinstance(tree, str):
        return literal(tree)
    if isinstance(tree, dict):
        return {key: literal_tree(value) for key, value in tree.items()}
    return [literal_tree(value) for value in tree] if isinstance(tree, list) else tree


def _without_replaced(
    base: Mapping[str, Any], layer: Mapping[str, Any], replaced: Set[Keys], at: Keys
) -> dict[str, Any]:
    """Drop what ``layer`` gives whole: omegaconf refuses to lay a list over a dict."""
    kept = dict(base)
    for key in base.keys() & layer.keys():
        old, new = base[key], layer[key]
        if isinstance(old, dict) and isinstance(new, dict) and (*at, key) not in replaced:
            kept[key] = _without_replaced(old, new, replaced, (*at, key))
        elif isinstance(old, (dict, list)):
            del kept[key]
    return kept


def _resolve(node: Any) -> dict[str, Any]:
    from omegaconf import DictConfig, ListConfig, OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    found: dict[str, Any] = {}
    for key in node:
        if OmegaConf.is_missing(node, key):
            continue
        try:
            value = node[key]
            if isinstance(value, ListConfig):
                value = OmegaConf.to_container(value, resolve=True)
        except OmegaConfBaseException as error:
            value = Unresolved(reason=str(error).splitlines()[0])
        found[key] = _resolve(value) if isinstance(value, DictConfig) else value
    return found
