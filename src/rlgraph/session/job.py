"""What ``rlgraph run`` needs of a graph file, beyond the graph itself.

A graph file holds a ``Config`` dataclass and ``build(config) -> Graph``. That is enough to show and
to run it. A file with more to do (a warm start, a held-out evaluation, state to resume from) also
holds ``job(config, directory) -> Job``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

from rlgraph.errors import RlgraphError
from rlgraph.graph import Graph
from rlgraph.hints.callables import owner_of
from rlgraph.metrics import as_float
from rlgraph.running.execution import Executor

RECORDS_BYTES = 200_000_000
"""Timeline, metrics and report of a long run."""


class Job(Protocol):
    """One run of a graph, with what comes before and after."""

    @property
    def graph(self) -> Graph:
        """What is run."""
        ...

    @property
    def needed_bytes(self) -> int:
        """Disk space that the run's records, weights and checkpoints may take."""
        ...

    def prepare(self, executor: Executor) -> Mapping[str, float]:
        """Bring the objects to where training starts; return what was measured on the way.

        Called once, after the graph's objects are set up; not called when a run is resumed.
        """
        ...

    def evaluate(self, executor: Executor) -> Mapping[str, float]:
        """Measure the policy as it stands, on what is never trained on; empty where nothing is."""
        ...

    def measure(self, value: Any) -> Mapping[str, float]:
        """Return the metrics that a published version carries."""
        ...

    def save(self, directory: Path) -> None:
        """Store the state of the graph's objects.

        Called once before training, and right after every version of the first ``latest``: what
        published it is at rest then. Other stages may be at work in other threads. An object of
        theirs that is stored, too, must give a consistent state from amid a call (with a lock
        of its own, say), and what the call under way adds to it is done again on resuming.
        """
        ...

    def load(self, directory: Path) -> None:
        """Go on from what ``save`` stored."""
        ...


class NotResumableError(RlgraphError):
    """A run cannot go on, for an object of its graph stores no state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainJob:
    """A graph with nothing before and after.

    Its objects that have ``save(directory: str)`` and ``load(directory: str)`` are stored. Their
    ``save`` may be called while another thread is in a method of theirs, unless it is the method
    that publishes the first ``latest``.
    """

    graph: Graph

    @property
    def needed_bytes(self) -> int:
        """Enough for the records of a long run; what its objects store is not known."""
        return RECORDS_BYTES

    def prepare(self, executor: Executor) -> Mapping[str, float]:  # noqa: ARG002 - the protocol
        """Do nothing."""
        return {}

    def evaluate(self, executor: Executor) -> Mapping[str, float]:  # noqa: ARG002 - the protocol
        """Measure nothing."""
        return {}

    def measure(self, value: Any) -> Mapping[str, float]:
        """Take the numbers among the ``metrics`` that the value carries itself."""
        metrics = getattr(value, "metrics", None)
        if not isinstance(metrics, Mapping):
            return {}
        numbers: dict[str, Any] = {
            name: each for name, each in metrics.items() if isinstance(each, Real)
        }
        return {name: as_float(number) for name, number in numbers.items()}

    def save(self, directory: Path) -> None:
        """Store the objects, each in a folder of its own; ``Job.save`` says when."""
        for name, stored in self._stored():
            (directory / name).mkdir()
            stored.save(str(directory / name))

    def load(self, directory: Path) -> None:
        """Load the objects. Raises ``NotResumableError`` for a latest that would start anew."""
        objects = dict(self._stored())
        for feedback in self.graph.feedbacks:
            owner = None if feedback.init is None else owner_of(feedback.init)
            if not any(owner is stored for stored in objects.values()):
                raise NotResumableError(
                    f"latest {feedback.name!r} would start anew: its init is no method of an "
                    "object with save(directory) and load(directory); to mend: give it both"
                )
        for name, stored in objects.items():
            stored.load(str(directory / name))

    def _stored(self) -> Iterator[tuple[str, Any]]:
        owners = [node.owner for node in self.graph.nodes]
        owners += [owner_of(f.init) for f in self.graph.feedbacks if f.init is not None]
        distinct = {id(owner): owner for owner in owners if owner is not None}
        for index, owner in enumerate(distinct.values()):
            if callable(getattr(owner, "save", None)) and callable(getattr(owner, "load", None)):
                yield f"{index}-{type(owner).__name__}", owner
