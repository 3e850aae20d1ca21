"""Which finished items make the next batch: in order, oldest first, or fairly by domain.

Holds the buffer in front of one ``batch`` stage. Whole units (what an ``unbatch`` took apart) go in
and out together, so that a group is not split between batches unless part of it was lost.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rlgraph.graph.node import Node
from rlgraph.scheduling.items import Item, Root
from rlgraph.scheduling.ledger import Ledger

Unit = list[Item]
Queue = str | int
"""A domain; or, where a feedback waits, the version at which an item was admitted."""


@dataclass(slots=True, eq=False, kw_only=True)
class Former:
    """The buffer of a ``batch`` and the rule by which it is emptied."""

    node: Node
    ordered: bool = False
    """Synchronous: batches hold the items in the order of their roots, whoever finished first."""
    waits: Ledger | None = None
    """Feedback for which nothing may become too old: oldest first, and not before it can be."""
    worths: tuple[int, ...] = ()
    """For each feedback: units that one item amounts to."""
    made: int = 0
    """Batches so far: the lineage of the next."""
    count: int = 0
    """Items that could go into the next batch."""
    queues: dict[Queue, deque[Unit]] = field(default_factory=dict)
    """Complete units, first completed first."""
    counts: dict[Queue, int] = field(default_factory=dict)
    """Items in each queue that have not left."""
    admitted: dict[str, int] = field(default_factory=dict)
    """Roots that started, by domain: the shares that batches should have."""
    taken: dict[str, int] = field(default_factory=dict)
    """Items put into batches, by domain."""
    expected: deque[Root] = field(default_factory=deque)
    """Ordered: roots not yet in line, in order."""
    early: dict[Root, list[Unit]] = field(default_factory=dict)
    """Ordered: units whose root, or one before it, is not settled."""
    line: deque[Item] = field(default_factory=deque)
    """Ordered: items whose turn is fixed."""

    def announce(self, root: Root) -> None:
        """Note that a root has started."""
        self.admitted[root.domain] = self.admitted.get(root.domain, 0) + 1
        if self.ordered:
            self.expected.append(root)

    def put(self, unit: Unit) -> None:
        """Buffer items that came out of one ``unbatch``, or a single one."""
        for item in unit:
            item.buffered = True
        if self.ordered:
            self.early.setdefault(unit[0].root, []).append(unit)
            return
        queue = self._queue(unit[0])
        self.queues.setdefault(queue, deque()).append(unit)
        self.counts[queue] = self.counts.get(queue, 0) + len(unit)
        self.count += len(unit)

    def settle(self) -> None:
        """Put in line what is settled and has nothing unsettled before it."""
        while self.expected and self.expected[0].open == 0:
            units = self.early.pop(self.expected.popleft(), [])
            items = [item for unit in units for item in unit if item.exit is None]
            self.line.extend(sorted(items, key=_lineage))
            self.count += len(items)

    def discard(self, item: Item) -> None:
        """Note that a buffered item has left; it is passed over when its turn comes."""
        if self.ordered:
            self.count -= item.root not in self.early
        else:
            self.count -= 1
            self._uncount(item)

    def buffered(self) -> list[Item]:
        """List what is in the buffer."""
        units = [unit for queue in self.queues.values() for unit in queue]
        units += [unit for early in self.early.values() for unit in early]
        items = [*self.line, *(item for unit in units for item in unit)]
        return [item for item in items if item.exit is None and item.buffered]

    def form(self) -> list[Item]:
        """Take the items of the next batch out of the buffer, which holds enough of them."""
        size = self.node.size
        picked: list[Item] = []
        while len(picked) < size:
            unit = [self.line.popleft()] if self.ordered else self._next_unit()
            unit = [item for item in unit if item.exit is None]
            room = size - len(picked)
            picked += unit[:room]
            if unit[room:]:
                self.queues.setdefault(self._queue(unit[0]), deque()).appendleft(unit[room:])
        for item in picked:
            self.taken[item.root.domain] = self.taken.get(item.root.domain, 0) + 1
            if not self.ordered:
                self._uncount(item)
        self.count -= size
        return picked if self.ordered else sorted(picked, key=_lineage)

    def too_early(self) -> bool:
        """Whether a batch now would leave behind what then becomes too old."""
        if self.waits is None:
            return False
        worth = self.worths[self.waits.number]
        arrived = {int(queue): count * worth for queue, count in self.counts.items()}
        return self.waits.must_wait(arrived)

    def _queue(self, item: Item) -> Queue:
        root = item.root
        return root.domain if self.waits is None else root.since[self.waits.number]

    def _next_unit(self) -> Unit:
        if self.waits is not None:
            best = min(self.queues, key=int)
        elif len(self.queues) > 1:
            best = max(self.queues, key=self._deficit)
        else:
            best = next(iter(self.queues))
        unit = self.queues[best].popleft()
        if not self.queues[best]:
            del self.queues[best]
        return unit

    def _uncount(self, item: Item) -> None:
        queue = self._queue(item)
        self.counts[queue] -= 1
        if not self.counts[queue]:
            del self.counts[queue]

    def _deficit(self, queue: Queue) -> float:
        """Items that a domain is short of its share."""
        domain = str(queue)
        share = self.admitted.get(domain, 0) / max(sum(self.admitted.values()), 1)
        return share * (sum(self.taken.values()) + 1) - self.taken.get(domain, 0)


def _lineage(item: Item) -> tuple[int, ...]:
    return item.lineage
