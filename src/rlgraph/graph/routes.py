"""What a routing verb does to the rate and the scope of the items that pass it.

Numbers only: a synchronous data flow graph (Lee & Messerschmitt 1987). What is wrong with them is
said in ``check``; here a size of 0, not known yet, counts as 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from rlgraph.graph.node import Node, Scope

ROUTING = frozenset({"fan_out", "group", "batch", "unbatch", "join"})
"""Verbs whose stages call nothing and change what items are siblings, or in pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """What leaves a routing stage."""

    rate: Fraction
    scope: Scope
    length: int = 0


def routed(verb: str, nodes: list[Node], above: Node, size: int) -> Routed:
    """Return what leaves when the next of ``nodes`` applies the verb to what ``above`` gives."""
    return _ROUTES[verb](nodes, above, size)


def opened(above: Scope, index: int) -> Scope:
    """Return the scope of items that are siblings since stage ``index``."""
    return Scope(origin=above.origin, frames=(*above.frames, index), inside=above.inside)


def entered(above: Scope, index: int) -> Scope:
    """Return the scope of items in the body of the iterate ``index``."""
    return Scope(origin=above.origin, frames=above.frames, inside=(*above.inside, index))


def _fan_out(nodes: list[Node], above: Node, size: int) -> Routed:
    scope = opened(above.scope, len(nodes))
    return Routed(rate=above.rate * size, scope=scope, length=above.length)


def _unbatch(nodes: list[Node], above: Node, size: int) -> Routed:
    return Routed(rate=above.rate * max(size, 1), scope=opened(above.scope, len(nodes)))


def _group(nodes: list[Node], above: Node, size: int) -> Routed:  # noqa: ARG001 - one signature
    was = above.scope
    members = nodes[was.frames[-1]].size if was.frames else 0
    scope = Scope(origin=was.origin, frames=was.frames[:-1], inside=was.inside)
    return Routed(rate=above.rate / max(members, 1), scope=scope, length=members)


def _batch(nodes: list[Node], above: Node, size: int) -> Routed:
    scope = Scope(origin=len(nodes), inside=above.scope.inside)
    return Routed(rate=above.rate / size, scope=scope, length=size)


def _join(nodes: list[Node], above: Node, size: int) -> Routed:  # noqa: ARG001 - one signature
    return Routed(rate=above.rate, scope=above.scope)


_ROUTES: Mapping[str, Callable[[list[Node], Node, int], Routed]] = {
    "fan_out": _fan_out,
    "unbatch": _unbatch,
    "group": _group,
    "batch": _batch,
    "join": _join,
}
