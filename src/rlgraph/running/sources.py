"""Reads a source item by item; what an earlier run has done is skipped.

Must not know how a graph is run: it is told where an earlier run stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rlgraph.errors import RunError
from rlgraph.graph.node import Node
from rlgraph.profile import DEFAULT_DOMAIN
from rlgraph.scheduling import Snapshot


def items_of(node: Node, resume: Snapshot) -> Iterator[tuple[int | None, Any, str]]:
    """Yield what is still to be done: its number where an earlier run has begun it, item, domain.

    The source is opened at the first item. Raises what it raises, with a note that says where;
    RunError where it cannot be read, gives nothing, gives less than the earlier run read, or
    wants to exit: that must not pass for the end of the run.
    """
    cursor = resume.cursors.get(node.name, 0)
    unfinished = frozenset(resume.unfinished.get(node.name, ()))
    number = 0
    try:
        for value in _opened(node):
            number += 1
            if number > cursor:
                yield None, value, _domain(node, number, value)
            elif number - 1 in unfinished:
                yield number - 1, value, _domain(node, number, value)
    except SystemExit as error:
        raise RunError(
            f"source {node.name!r} called for an exit after {number} items; to mend: raise what "
            "is wrong, or return where it ends"
        ) from error
    except Exception as error:
        error.add_note(f"while source {node.name!r} was read, after {number} items")
        raise
    if number == 0:
        raise RunError(f"source {node.name!r} gave no item; to mend: look at what it reads")
    if number < cursor:
        raise RunError(
            f"source {node.name!r} gave {number} items, but the run that is resumed had read "
            f"{cursor}; to mend: let it give the same items in the same order"
        )


def _domain(node: Node, number: int, value: Any) -> str:
    try:
        domain = getattr(value, "domain", DEFAULT_DOMAIN)
    except Exception as error:
        raise RunError(
            f"item {number} of source {node.name!r}, a {type(value).__name__}, raised "
            f"{type(error).__name__} when its domain was read; to mend: return its name there, or "
            "call the attribute something else"
        ) from error
    return domain if isinstance(domain, str) else DEFAULT_DOMAIN


def _opened(node: Node) -> Iterable[Any]:
    items = node.call(*node.args, **node.kwargs)
    if not isinstance(items, Iterable):
        raise RunError(
            f"source {node.name!r} returned {type(items).__name__}, which is not iterable; to "
            "mend: return or yield its items"
        )
    return items
