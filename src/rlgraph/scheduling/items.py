"""The scheduler's own records: an item on its way, and whom it shares a fate with.

Mutable, and made by the hundred thousand: slots, no validation, no methods with policy in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rlgraph.graph.node import Node
from rlgraph.scheduling.records import Exit, Failure, Lineage, Task

Pair = tuple[int, Lineage, tuple[int, ...]]
"""Index of a join, lineage and rounds: what two items that belong together agree on."""


@dataclass(slots=True, eq=False, repr=False)
class Root:
    """What lineages are numbered from: one item of a source, or one batch."""

    origin: int
    index: int
    domain: str
    since: dict[int, int] = field(default_factory=dict)
    """Feedback number -> version when its credit was taken up."""
    open: int = 0
    """Items under way that no batch has buffered yet; at 0 the root is settled."""
    live: int = 0
    """Launches that have not left."""
    spent: bool = False
    """Something of it was trained on or handed out: a resumed run must not start it again."""
    pairs: dict[Pair, Item | Exit] = field(default_factory=dict)
    """Who waits in a join for its counterpart, or how a counterpart was lost."""


@dataclass(slots=True, eq=False, repr=False)
class Launch:
    """One trajectory, from its start to its exit."""

    lineage: Lineage
    root: Root
    starts: dict[int, int] = field(default_factory=dict)
    """Feedback number -> version at the first read."""
    taken: dict[int, int] = field(default_factory=dict)
    """Feedback number -> trainer's version when a batch last took of it."""
    items: dict[Item, None] = field(default_factory=dict)
    """Items that carry it: one, or one for each branch and each part."""
    held: bool = False
    """Being made up for: it has not left though nothing carries it."""
    verdict: tuple[bool, int, int] | None = None
    """How it will have left: (a side branch?, rank of the exit, index of the stage), lowest."""
    tokens: int = 0
    stage_s: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(slots=True, eq=False, repr=False)
class Siblings:
    """Items that came out of one ``fan_out`` or ``unbatch``, along one branch."""

    parent: Item
    """The item they came from; its value is what a topped-up sibling starts with."""
    node: Node
    size: int
    grouped: bool
    """A ``group`` brings them together; else they go into batches as a unit."""
    most: int
    """Siblings that may be launched in all."""
    launched: int = 0
    items: dict[int, Item] = field(default_factory=dict)
    """By number among the siblings: the item as it goes."""
    arrived: dict[int, Item] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    closed: bool = False
    """Filled, or given up: who comes later is surplus."""
    twins: dict[int, Siblings] = field(default_factory=dict)
    """By index of the stage where a side branch starts: the same siblings as they go there."""


@dataclass(slots=True, eq=False, repr=False)
class Frame:
    """An item's stay in an ``iterate``."""

    node: Node
    release: Callable[[Any], object] | None
    """Called when nothing holds it any more; None on a side branch."""
    value: Any
    """As it was at the start of this round."""
    lineage: Lineage
    outside: tuple[int, ...]
    """Rounds of the iterates around this one when it was entered."""
    round: int = 0
    holders: int = 1
    """Items inside, and calls of items that left but still run; at 0 it is released."""


@dataclass(slots=True, eq=False, repr=False)
class Item:
    """A value on its way. ``map`` changes the value and keeps the item."""

    value: Any
    lineage: Lineage
    root: Root
    launches: tuple[Launch, ...]
    siblings: tuple[Siblings, ...] = ()
    frames: tuple[Frame, ...] = ()
    counts: tuple[int, ...] = ()
    """Feedbacks whose credit it holds; of a branching item one branch holds it."""
    tickets: tuple[int, ...] = ()
    """Feedbacks whose next version it is to make."""
    main: bool = True
    """Not a side branch: its exit is the trajectory's."""
    came: Node | None = None
    """Stage that gave it last."""
    at: Node | None = None
    """Stage where it waits, runs or is buffered."""
    task: Task | None = None
    """The call that runs; None while it waits."""
    attempt: int = 1
    parts: Siblings | None = None
    """What it was split into; they go on in its place until a group brings them together."""
    buffered: bool = False
    """In the buffer of a batch."""
    exit: Exit | None = None
    """Set when it has left; whoever meets it later passes over it."""

    @property
    def rounds(self) -> tuple[int, ...]:
        """Finished rounds of each iterate around it, outermost first."""
        return tuple([frame.round for frame in self.frames])
