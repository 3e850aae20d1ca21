"""What goes into the scheduler and what comes out of it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rlgraph.profile import DEFAULT_DOMAIN

if TYPE_CHECKING:
    from rlgraph.graph.node import Node
    from rlgraph.scheduling.items import Item

Lineage = tuple[int, ...]
"""Number of the source item (or batch), then the number among the siblings of each fan-out."""


FailureKind = Literal["error", "timeout", "cancelled"]
"""Why a call gave no value: it raised, it took too long, or nobody wanted it any more."""


class Exit(enum.Enum):
    """How a trajectory left. The counts of the exits sum to the launches.

    Where it was taken apart and its parts left in several ways, the first of these counts.
    """

    CONSUMED = "consumed"
    """Trained on, or handed out."""
    FAILED = "failed"
    TIMEOUT = "timeout"
    FILTERED = "filtered"
    STALE = "stale"
    """It, or a sibling that its group could not do without, became too many versions old."""
    SURPLUS = "surplus"
    """Its group or batch was filled without it, or its group was given up."""
    CANCELLED = "cancelled"
    """The run ended before it did."""


@dataclass(slots=True, eq=False)
class Task:
    """One call of a stage. Made by the scheduler, carried out by an executor, never changed."""

    node: Node
    item: Item | None
    """None for the init of a feedback and for a release."""
    lineage: Lineage
    rounds: tuple[int, ...]
    """Finished rounds of each ``iterate`` around the stage, outermost first."""
    attempt: int
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    until: Callable[[Any], bool] | None = None
    """Asked about the result: of the last call of an ``iterate``'s round, and of a filter."""
    version: int = -1
    """Newest version among the feedbacks that the call reads; -1 where it reads none."""

    @property
    def stage(self) -> str:
        """Name of the stage."""
        return self.node.name

    @property
    def domain(self) -> str:
        """Task domain of the item; of a batch, that of its first."""
        return DEFAULT_DOMAIN if self.item is None else self.item.root.domain

    @property
    def deadline_s(self) -> float:
        """Seconds from its start after which the call is given up."""
        return self.node.profile(self.domain).deadline_s

    @property
    def coroutine(self) -> bool:
        """Whether the call is to be awaited."""
        return self.node.verb == "map_async"

    @property
    def key(self) -> str:
        """``stage/lineage/rounds/attempt``: unique in a run, equal on every executor."""
        lineage = ".".join(map(str, self.lineage))
        rounds = ".".join(map(str, self.rounds))
        return f"{self.stage}/{lineage}/r{rounds}/a{self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a call returned. The scheduler passes the value on unread."""

    value: Any
    verdict: bool = False
    """What ``until`` or a filter's predicate said."""
    tokens: int = 0
    """``num_tokens`` of the value, where it has that attribute."""
    start_s: float = 0.0
    end_s: float = 0.0
    """On the executor's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a call gave no value. A failure is a record, never a reward."""

    stage: str
    key: str
    kind: FailureKind
    error: str
    """Type and message of the exception."""
    trace: str = ""
    """Traceback with the user's ``file:line``."""
    start_s: float = 0.0
    end_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """A trajectory left."""

    lineage: Lineage
    domain: str
    exit: Exit
    stage: str
    """Where it stood."""
    start_versions: Mapping[str, int]
    """For each feedback that it read: the version it started at."""
    consumed_versions: Mapping[str, int]
    """For each feedback that it trained: the trainer's version then, published and taken batches
    counted; the last where its parts went into several. The difference is the lag."""
    tokens: int
    stage_s: Mapping[str, float]
    """Seconds in each stage it ran through."""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A new version is there."""

    name: str
    version: int
    value: Any
    lineages: tuple[Lineage, ...] = field(repr=False)
    """Trajectories it was made from, in the order of the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """An item came to a ``collect``."""

    name: str
    lineage: Lineage
    value: Any


Event = Exited | Published | Output


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Where the control plane stood: enough to go on with the same trajectories."""

    versions: Mapping[str, int] = field(default_factory=dict)
    """Of each feedback."""
    cursors: Mapping[str, int] = field(default_factory=dict)
    """Items pulled from each source."""
    unfinished: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of each source: items pulled of which nothing was trained on and something was under way."""
    batches: Mapping[str, int] = field(default_factory=dict)
    """Batches made by each ``batch`` stage."""
    exits: Mapping[str, int] = field(default_factory=dict)
    lags: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of each feedback: trained trajectories by lag, which is text because JSON wants that."""
    launched: int = 0
