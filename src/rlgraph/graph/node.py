"""A stage as it was declared: what it calls, what flows through it, where it stands.

Only data; how nodes are made is in ``declare``, the rules about whole graphs in ``check``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeVar

from rlgraph.errors import GraphError, Problem
from rlgraph.ports import Latest
from rlgraph.profile import DEFAULT_DOMAIN, Profile

T = TypeVar("T")

Verb = Literal[
    "source",
    "map",
    "map_async",
    "filter",
    "fan_out",
    "group",
    "batch",
    "unbatch",
    "join",
    "iterate",
    "entry",
    "publish",
    "collect",
    "init",
]

CALLING: frozenset[str] = frozenset({"map", "map_async", "filter"})
"""Verbs whose stages run as tasks; the others only route items."""

_NO_NEEDS = Profile()
"""Of a stage that says nothing of what it needs."""


def _nothing(*_: Any) -> None:
    """Stand for the call of a stage that makes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Whom an item can meet: two streams join only where their scopes are equal."""

    origin: int
    """Index of the source or batch that numbered the item first."""
    frames: tuple[int, ...] = ()
    """Indices of the ``fan_out`` and ``unbatch`` stages it came through and that are still open."""
    inside: tuple[int, ...] = ()
    """Indices of the ``iterate`` stages around it, outermost first."""


@dataclass(slots=True, eq=False, kw_only=True)
class FeedbackNode:
    """A value that versions are published of: the delayed edge of the graph."""

    name: str
    where: str
    item: Any
    init: Callable[[], Any] | None
    max_staleness: int
    when_stale: Literal["drop", "wait"]
    publishers: list[Node] = field(default_factory=list)
    readers: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """One stage."""

    index: int
    """Position in the order of declaration."""
    verb: Verb
    name: str
    where: str
    """``file:line``"""
    inputs: tuple[Node, ...]
    item: Any
    """Type hint of the items that leave."""
    rate: Fraction
    """Items that leave for each item of the source above."""
    scope: Scope
    length: int = 0
    """Members of each item, where the item is a batch of known size; else 0."""
    call: Callable[..., Any] = _nothing
    """What a source, a calling stage or an init calls; the others only route."""
    owner: object | None = None
    """The object whose method is called: its stages are placed together."""
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    size: int = 1
    """Of a ``fan_out``, ``batch`` or ``unbatch``."""
    redundancy: int = 0
    """Of a ``fan_out``: members beyond ``size``. Of a ``batch``: items beyond ``size``."""
    limit: int = 1
    """Of an ``iterate``: rounds at most."""
    entry: Node | None = None
    exit: Node | None = None
    until: Callable[[Any], bool] | None = None
    release: Callable[[Any], object] | None = None
    feedback: FeedbackNode | None = None
    """Of a ``publish``."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def profile(self, domain: str = DEFAULT_DOMAIN) -> Profile:
        """Return what the stage needs for an item of this domain."""
        found = self.profiles.get(domain) or self.profiles.get(DEFAULT_DOMAIN)
        return found or _NO_NEEDS

    @property
    def concurrency(self) -> int:
        """Calls at once: the largest that a domain's profile allows."""
        return max((p.concurrency for p in self.profiles.values()), default=1)


class Feedback(Latest[T]):
    """A delayed edge: stages read the newest value, a stream publishes the next one.

    Declared with ``graph.latest``; passed to a stage's ``Latest[T]`` parameter. It has no value
    while the graph is declared: each call is given a ``Latest`` as it stood at submission.
    """

    __slots__ = ("node",)
    node: FeedbackNode

    def __init__(self, node: FeedbackNode) -> None:
        object.__setattr__(self, "node", node)
        object.__setattr__(self, "name", node.name)
        object.__setattr__(self, "version", 0)

    @property
    def value(self) -> NoReturn:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Say that there is none yet. Raises GraphError."""
        problem = Problem(
            what=f"latest {self.name!r} has no value while the graph is declared",
            where=self.node.where,
            mend="pass it to a stage as an argument of its own: each call is given the newest",
        )
        raise GraphError("value read too early", [problem])

    def __repr__(self) -> str:
        """Name it."""
        return f"<latest {self.name!r}>"

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same declaration; there is no value to compare."""
        return self is other

    def __hash__(self) -> int:
        """Hash the declaration."""
        return id(self)
